"""Many environments side by side, on threads: the event loop runs without Python's lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from sim.base.arrays import F8, Mask
from sim.base.errors import InputError
from sim.env.environment import Draw, SchedulingEnv
from sim.env.observer import Observation
from sim.env.together import Together


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Any]):
    """Environments that step together, each in a workload of its own; on the next step after its
    last one, an environment begins anew.

    With keys as actions, no stages in the form and the default reward, a step of all is a call of a
    compiled loop in each thread; otherwise it is a call of each environment in turn.

    Parameters
    ----------
    draw : function from int to (Workload, Cluster)
        As of `SchedulingEnv`.
    num_envs : int
        Number of environments.
    threads : int
        Number of threads of the compiled loop.
    **options
        As of `SchedulingEnv`; the form has fixed numbers.
    """  # noqa: D205

    def __init__(self, draw: Draw, num_envs: int, *, threads: int = 1, **options: Any) -> None:
        if num_envs < 1 or not 1 <= threads <= num_envs:
            raise InputError(
                f"num_envs must be at least 1, and threads 1 to {num_envs}, not {threads}"
            )
        self.envs = [SchedulingEnv(draw, **options) for _ in range(num_envs)]
        form = self.envs[0].form
        if None in (form.jobs, form.stages, form.edges):
            raise InputError("environments side by side need fixed numbers in the form, not None")
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observed: Observation = {
            name: np.zeros(space.shape or (), space.dtype)
            for name, space in self.observation_space.items()  # type: ignore[attr-defined]
        }
        self._rewards, self._is_over = np.zeros(num_envs), np.zeros(num_envs, np.bool_)
        self._together = Together(self.envs, self._observed, self._rewards, self._is_over, threads)
        self._are_together = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin all anew; an int seeds the first, each other one more."""
        if isinstance(seed, int):
            seeds: Sequence[int | None] = range(seed, seed + self.num_envs)
        else:
            seeds = [None] * self.num_envs if seed is None else seed
        drawn = self._begin(range(self.num_envs), seeds)
        return self._copied(), {"seed": np.array(drawn)}

    def step(self, actions: Any) -> tuple[Observation, F8, Mask, Mask, dict[str, Any]]:
        """Step each; one that was over begins anew, and its action is not taken."""
        goes_on = ~self._is_over
        if not goes_on.all():
            fresh = np.flatnonzero(self._is_over).tolist()
            self._begin(fresh, [None] * len(fresh))
        if self._are_together:
            self._together.step(goes_on, actions)
        else:
            for i in np.flatnonzero(goes_on).tolist():
                observed, self._rewards[i], self._is_over[i], *_ = self.envs[i].step(actions[i])
                self._show(i, observed)
        never = np.zeros(self.num_envs, np.bool_)
        return self._copied(), self._rewards.copy(), self._is_over.copy(), never, {}

    def close_extras(self, **options: Any) -> None:
        """End the threads."""
        self._together.close()

    def _begin(self, rows: Sequence[int], seeds: Sequence[int | None]) -> list[int]:
        """Begin environments anew; return their seeds."""
        drawn = []
        for i, seed in zip(rows, seeds, strict=True):
            observed, info = self.envs[i].reset(seed=seed)
            self._show(i, observed)
            drawn.append(info["seed"])
        self._rewards[rows], self._is_over[rows] = 0.0, False
        self._are_together = self.envs[0].is_plain and self._together.arrange(rows)
        return drawn

    def _show(self, i: int, observed: Observation) -> None:
        for name, values in observed.items():
            self._observed[name][i] = values

    def _copied(self) -> Observation:
        return {name: values.copy() for name, values in self._observed.items()}
