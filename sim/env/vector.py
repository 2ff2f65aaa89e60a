"""Many environments side by side, on threads: the event loop runs without Python's lock."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from sim.base.arrays import F8, Mask
from sim.base.errors import InputError
from sim.env.environment import Draw, SchedulingEnv
from sim.env.observer import Observation


class SchedulingVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Any]):
    """Environments that step together, each in a workload of its own; on the next step after its
    last one, an environment begins anew.

    Parameters
    ----------
    draw : function from int to (Workload, Cluster)
        As of `SchedulingEnv`.
    num_envs : int
        Number of environments.
    threads : int
        Number of threads among which they are divided.
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
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._shares = [range(first, num_envs, threads) for first in range(threads)]

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
        drawn = []
        for i, env in enumerate(self.envs):
            observed, info = env.reset(seed=seeds[i])
            self._show(i, observed)
            drawn.append(info["seed"])
        self._is_over[:] = False
        return self._copied(), {"seed": np.array(drawn)}

    def step(self, actions: Any) -> tuple[Observation, F8, Mask, Mask, dict[str, Any]]:
        """Step each; one that was over begins anew, and its action is not taken."""

        def step_share(share: range) -> None:
            for i in share:
                env = self.envs[i]
                if self._is_over[i]:
                    observed, _ = env.reset()
                    self._rewards[i], self._is_over[i] = 0.0, False
                else:
                    observed, self._rewards[i], self._is_over[i], *_ = env.step(actions[i])
                self._show(i, observed)

        if self._pool is None:
            step_share(self._shares[0])
        else:
            for _ in self._pool.map(step_share, self._shares):
                pass
        never = np.zeros(self.num_envs, np.bool_)
        return self._copied(), self._rewards.copy(), self._is_over.copy(), never, {}

    def close_extras(self, **options: Any) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def _show(self, i: int, observed: Observation) -> None:
        for name, values in observed.items():
            self._observed[name][i] = values

    def _copied(self) -> Observation:
        return {name: values.copy() for name, values in self._observed.items()}
