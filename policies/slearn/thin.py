"""Thin jobs: those of so few tasks that they go first, without pilots; the limit may adapt."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sim.base.arrays import I8
from sim.engine.plan import World


class ThinLimit:
    """Limit on tasks of thin jobs, by the load at a job's arrival (`thin_limit_at`)."""

    def __init__(self, world: World, max_limit: int) -> None:
        from policies.slearn.kernels import pilots  # numba is loaded where a kernel runs

        self._view, self._max_limit = world.view, max_limit
        self._n_tasks: list[int] = job_widths(world).tolist()
        self._unfinished = np.zeros(len(self._n_tasks), np.int64), np.zeros(2, np.int64)
        self._count: Callable[..., tuple[int, int]] = pilots.count_unfinished

    def is_thin(self, job: int) -> bool:
        """Return True if a job that arrives now is thin."""
        view = self._view
        left, running = self._count(view["left"], view["running"], *self._unfinished, job)
        return self._n_tasks[job] < thin_limit_at(left / max(1, running), self._max_limit)


def thin_limit_at(load: float, max_limit: int) -> int:
    """Return the limit on tasks of thin jobs at a load, at most `max_limit`.

    The limit is `max_limit` while all unfinished tasks run at once, half of it at twice that load,
    and so on down to 2. The more jobs wait, the more it costs to let a large job of few tasks pass
    unmeasured; without waiting jobs, measuring costs more than it is worth. SLearn (NSDI 2022, §7)
    leaves the dependence of the limit on the load open.
    """
    return min(max_limit, max(2, math.ceil(max_limit / max(1.0, load))))


def job_widths(world: World) -> I8:
    """Return the number of tasks of each job, (J,)."""
    columns = world.columns
    return np.diff(columns.stage_task0[columns.job_stage0])
