"""One profile a stage: what its tasks are expected to last, from earlier runs and its own tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.workload.columns import Columns


class StageProfiles:
    """The average of a stage's tasks, learnt while jobs run (DAGPS, MSR-TR-2016-19, §7.1).

    A stage is the same in every run of its template: the stage of the same place in the job. What
    it is expected to last is the mean over the tasks of the runs that have finished it; where
    there is none, over those of all stages that have finished so far; before the first of all, a
    guess. Its own finished tasks refine that, which counts as `prior_tasks` tasks of it.
    """

    def __init__(self, columns: Columns, first_guess_s: float, prior_tasks: float) -> None:
        self._stage_class = _classes(columns)
        n = int(self._stage_class.max(initial=-1)) + 1
        self._work, self._tasks = np.zeros(n), np.zeros(n)
        self._all_work = self._all_tasks = 0.0
        self._size = np.diff(columns.stage_task0)
        self._guess, self._prior = first_guess_s, prior_tasks

    def learn(self, stage: int, view: Mapping[str, NDArray[Any]]) -> None:
        """Add the run of `stage`, which has finished, to what is known of its like."""
        of = self._stage_class[stage]
        work, tasks = float(view["stage_done_work"][stage]), float(self._size[stage])
        self._work[of] += work
        self._tasks[of] += tasks
        self._all_work += work
        self._all_tasks += tasks

    def expect(self, stages: NDArray[Any], view: Mapping[str, NDArray[Any]] | None = None) -> F8:
        """Return what a task of each of `stages` is expected to last, (n,) s."""
        of = self._stage_class[stages]
        mean = self._all_work / self._all_tasks if self._all_tasks else self._guess
        known = self._tasks[of] > 0
        prior: F8 = np.where(known, self._work[of] / np.maximum(self._tasks[of], 1), mean)
        if view is None:
            return prior
        done = self._size[stages] - view["stage_left"][stages]
        work = prior * self._prior + view["stage_done_work"][stages]
        refined: F8 = work / (self._prior + done)
        return refined


def _classes(columns: Columns) -> I8:
    """Give stages of one template and one place in the job one number, (G,).

    Jobs without a template have no like.
    """
    n_stages = len(columns.stage_job)
    template = columns.job_template[columns.stage_job].astype(np.int64)
    unnamed = np.array([name == "" for name in columns.template_names], dtype=bool)
    alone = unnamed[template] if len(unnamed) else np.ones(n_stages, dtype=bool)
    place = np.arange(n_stages) - columns.job_stage0[columns.stage_job]
    group = np.where(alone, -1 - columns.stage_job.astype(np.int64), template)
    pairs = np.stack([group, place], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
