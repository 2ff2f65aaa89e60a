"""Mean task durations by stage, learnt from the runs that have finished: DAGPS's profiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.workload.columns import Columns


class StageProfiles:
    """Mean task durations by stage, learnt while jobs run (DAGPS, MSR-TR-2016-19, §7.1).

    Stages correspond by their index in the job across the runs of a template. The expected
    duration of a stage's tasks is the mean over all runs that have finished the stage. Without any,
    it is the mean over all stages that have finished so far, and before the first of these a
    guess. Finished tasks of the stage itself refine the expectation, which weighs as much as
    `prior_tasks` tasks.
    """

    def __init__(self, columns: Columns, first_guess_s: float, prior_tasks: float) -> None:
        self._stage_class = stage_classes(columns)
        n = int(self._stage_class.max(initial=-1)) + 1
        self._work, self._tasks = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._mean = np.full(n, np.nan)
        self._all_work = self._all_tasks = 0.0
        self._size = np.diff(columns.stage_task0)
        self._guess, self._prior = first_guess_s, prior_tasks

    def learn(self, stages: NDArray[Any], view: Mapping[str, NDArray[Any]]) -> None:
        """Add the finished `stages` to the means of their stages' earlier runs."""
        classes = self._stage_class[stages]
        work, tasks = view["stage_done_work"][stages], self._size[stages]
        for i, done_s, n in zip(classes.tolist(), work.tolist(), tasks.tolist(), strict=True):
            self._work[i] += done_s  # one by one: several may be of one class
            self._tasks[i] += n
            self._all_work += done_s
            self._all_tasks += n
        self._mean[classes] = self._work[classes] / self._tasks[classes]

    def expect(self, stages: NDArray[Any], view: Mapping[str, NDArray[Any]] | None = None) -> F8:
        """Return the expected task duration of each of `stages`, (n,) s."""
        classes = self._stage_class[stages]
        mean = self._all_work / self._all_tasks if self._all_tasks else self._guess
        prior: F8 = self._mean[classes]
        prior[np.isnan(prior)] = mean
        if view is None:
            return prior
        done = self._size[stages] - view["stage_left"][stages]
        work = prior * self._prior + view["stage_done_work"][stages]
        refined: F8 = work / (self._prior + done)
        return refined


def stage_classes(columns: Columns) -> I8:
    """Assign class numbers to stages by template and index in the job, (G,).

    The stages of a job without a template have numbers of their own.
    """
    n_stages = len(columns.stage_job)
    template = columns.job_template[columns.stage_job].astype(np.int64)
    unnamed = np.array([name == "" for name in columns.template_names], dtype=bool)
    alone = unnamed[template] if len(unnamed) else np.ones(n_stages, dtype=bool)
    place = np.arange(n_stages) - columns.job_stage0[columns.stage_job]
    group = np.where(alone, -1 - columns.stage_job.astype(np.int64), template)
    pairs = np.stack([group, place], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
