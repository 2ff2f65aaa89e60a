"""Steps of many environments in a compiled loop, as far as its actions and observations go."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import PolicyError
from sim.base.jit import compiled, specialised
from sim.engine.kernels.features import INTERPRETED
from sim.engine.kernels.run import DONE, FULL, NEEDS_POLICY
from sim.env.environment import SchedulingEnv
from sim.env.kernels import stepping
from sim.env.observer import Observation


class Together:
    """Environments that are stepped by the loop of their variant (`sim.engine.kernels.features`).

    Parameters
    ----------
    envs : sequence of SchedulingEnv
        Of one form, with keys as actions, no stages and the default reward.
    observed : dict
        The observations of all, which steps fill.
    rewards : (N,) float64
    is_over : (N,) bool
        Filled by steps, too.
    threads : int
        Number of threads among which the environments are divided.
    """

    def __init__(
        self,
        envs: Sequence[SchedulingEnv],
        observed: Observation,
        rewards: F8,
        is_over: Mask,
        threads: int,
    ) -> None:
        n = len(envs)
        self._threads, self._pool = threads, ThreadPoolExecutor(threads)
        self._envs, self._rewards, self._is_over = envs, rewards, is_over
        self._codes, self._ended = np.zeros(n, np.int64), np.zeros(n, np.int64)
        names = ("n_jobs", "time_s", "jobs", "free")
        self._out = (self._codes, self._ended, *(observed[name] for name in names))
        self._n_jobs, self._time_s = (observed[name][:, 0] for name in names[:2])
        self._states: list[Any] = [None] * n
        self._observers: list[Any] = [None] * n
        self._features: list[frozenset[str]] = [frozenset()] * n
        self._n_total = np.zeros(n, np.int64)
        self._compiled: dict[frozenset[str], Any] = {}
        self._loops: list[tuple[I8, Any]] = []

    def arrange(self, fresh: Sequence[int]) -> bool:
        """Bind environments that have begun anew; tell whether the loops can step all of them."""
        for i in fresh:
            env = self._envs[i]
            self._states[i] = env.session.kernel_state
            self._observers[i] = stepping.make(env.observer.arrays)
            self._features[i] = env.session.opened.features
            self._n_total[i] = len(env.session.opened.world.columns.job_submit)
        if any(INTERPRETED in features for features in self._features):
            return False
        self._bound = stepping.listed(self._states), stepping.listed(self._observers)
        self._loops = []
        for features in dict.fromkeys(self._features):
            rows = np.flatnonzero([features == other for other in self._features])
            if features not in self._compiled:
                self._compiled[features] = self._compile(features, rows)
            self._loops.append((rows, self._compiled[features]))
        return True

    def _compile(self, features: frozenset[str], rows: I8) -> Any:
        keys = np.zeros(self._out[4].shape[:2], np.float32)
        args = (rows, True, *self._bound, keys, self._out, np.zeros(1, np.int32))
        message = "sim: compiling the loop of environments side by side, once for this version"
        return compiled(specialised(stepping.step_rows, features), *args, message=message)

    def step(self, chosen: Mask, actions: Any) -> None:
        """Step the chosen environments.

        Raises
        ------
        PolicyError, DeadlockError, AccountError
            As the step of one.
        """
        keys = np.ascontiguousarray(actions, np.float32).reshape(len(self._envs), -1)
        rows = np.flatnonzero(chosen)
        waited, since = self._n_jobs[rows], self._time_s[rows]
        for members, loop in self._loops:
            going, acts = members[chosen[members]], True
            while len(going):
                self._share(loop, going, acts, keys)
                going, acts = going[self._codes[going] == FULL], False
                for i in going.tolist():
                    self._envs[i].session.recorder.empty()
        codes = self._codes[rows]
        self._rewards[rows] = -waited * (self._time_s[rows] - since) / self._envs[0].scale_s
        self._is_over[rows] = (codes == DONE) | (self._ended[rows] == self._n_total[rows])
        for i in rows[self._is_over[rows]].tolist():
            self._envs[i].end(self._time_s[i].item())
        for i in rows[(codes != DONE) & (codes != NEEDS_POLICY)].tolist():
            if self._codes[i] < 0:
                raise PolicyError(f"keys must be -1 to 1, not {keys[i, -1 - self._codes[i]]}")
            next(self._envs[i].batches)  # raises the loop's error

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _share(self, loop: Any, rows: I8, acts: bool, keys: NDArray[np.float32]) -> None:
        """Let each thread step a part of the environments; parts share no cache lines of results.

        Threads do nothing else: Python's lock would have them wait for each other.
        """
        n, changed = len(rows), np.zeros((self._threads, keys.shape[1]), np.int32)
        parts = [
            (rows[n * t // self._threads : n * (t + 1) // self._threads], acts, *self._bound)
            for t in range(self._threads)
        ]
        running = [
            self._pool.submit(partial(loop, *part, keys, self._out, changed[t]))
            for t, part in enumerate(parts[1:], 1)
        ]
        loop(*parts[0], keys, self._out, changed[0])
        for future in running:
            future.result()
