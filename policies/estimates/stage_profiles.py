"""Mean task durations by stage, learnt from the runs that have finished: DAGPS's profiles."""

from __future__ import annotations

import numpy as np

from policies.estimates.similar import (
    NO_GROUP,
    AdHoc,
    find,
    job_groups,
    past_groups,
    stage_classes,
)
from sim.base.arrays import F8, I4, I8
from sim.workload.columns import Columns


class StageProfiles:
    """Mean task durations of stages, over finished stages of similar jobs; a guess before any.

    In DAGPS (MSR-TR-2016-19, §7.1) stages correspond by their index in the job across the runs of a
    template. The expected duration of a stage's tasks is the mean over all runs that have finished
    the stage. Without any, it is the mean over all stages that have finished so far, and before the
    first of these a guess.

    With ``ad_hoc="user"`` jobs without a template are similar if they have the same user, and a
    stage without a finished run is expected to last as the finished stages of similar jobs; else
    their stages have no class, because no other stage could learn from it. With
    `recorded` the means begin with the recorded tasks of earlier runs (the table ``training``) and
    with the past jobs that ended before the first submission (``history``).
    """

    def __init__(
        self,
        columns: Columns,
        first_guess_s: float,
        *,
        ad_hoc: AdHoc = "alone",
        recorded: bool = False,
    ) -> None:
        classes = stage_classes(columns, ad_hoc)
        by_class = Means(classes.stage_class, len(classes.code))
        overall = Means(np.zeros(len(columns.stage_job), np.int32), 1)
        self.levels = [by_class, overall]
        if ad_hoc == "user":
            groups, job_group = np.unique(job_groups(columns, ad_hoc), return_inverse=True)
            by_group = Means(job_group.astype(np.int32)[columns.stage_job], len(groups))
            self.levels.insert(1, by_group)
        self.guess_s = first_guess_s
        self.runs = np.zeros(len(classes.code), dtype=np.int64)  # finished or recorded, by class
        self._size = columns.stage_n_tasks
        if recorded:
            training = columns.training
            tasks = training.column("finish_s") - training.column("start_s")
            template = np.where(training.template < 0, NO_GROUP, training.template)
            trained = classes.find(template, training.column("stage").astype(np.int64))
            by_class.add(trained, tasks, np.ones(len(tasks)))
            runs = np.unique(np.stack([trained, training.column("run")], axis=1), axis=0)[:, 0]
            np.add.at(self.runs, runs[runs >= 0], 1)
            jobs_s, n_tasks = _past_work(columns)
            rows = np.concatenate([template, past_groups(columns)])
            work = np.concatenate([tasks, jobs_s])
            number = np.concatenate([np.ones(len(tasks)), n_tasks])
            if ad_hoc == "user":
                by_group.add(find(groups, rows), work, number)
            overall.add(np.zeros(len(rows), dtype=np.int64), work, number)

    def expect(self, stages: I8, now: float = 0.0) -> F8:
        """Return the expected task duration of each of `stages`, (n,) s."""
        expected_s: F8 = np.full(len(stages), np.nan)
        for level in self.levels:
            group = level.group[stages]
            known = np.isnan(expected_s) & (group >= 0)
            expected_s[known] = level.mean[group[known]]
        return np.where(np.isnan(expected_s), self.guess_s, expected_s)

    def learn(self, stages: I8, work_s: F8, now: float = 0.0) -> None:
        """Add finished stages, with the total durations of their tasks, (n,) s."""
        for level in self.levels:
            level.add(level.group[stages], work_s, self._size[stages])
        classes = self.levels[0].group[stages]
        np.add.at(self.runs, classes[classes >= 0], 1)

    def n_runs(self, stages: I8) -> int:
        """Return the number of known runs of all of `stages`, which are one job's."""
        classes = self.levels[0].group[stages]
        return 0 if (classes < 0).any() else int(self.runs[classes].min())


class Means:
    """Mean task durations of groups of stages, s; NaN for a group without any."""

    def __init__(self, group: I4, n: int) -> None:
        self.group = group  # of each stage, (G,); -1 for none
        self.mean = np.full(n, np.nan)
        self.work, self.tasks = np.zeros(n), np.zeros(n)

    def add(self, groups: I4 | I8, work_s: F8, n_tasks: F8 | I8) -> None:
        """Add work to the groups, row by row in order; -1 for none of them."""
        known = (groups >= 0) & (n_tasks > 0)
        groups = groups[known]
        np.add.at(self.work, groups, work_s[known])
        np.add.at(self.tasks, groups, n_tasks[known])
        self.mean[groups] = self.work[groups] / self.tasks[groups]


def _past_work(columns: Columns) -> tuple[F8, F8]:
    """Return work and number of tasks of the past jobs, 0 of those that end during the run."""
    features = columns.features
    mean_s = features.history_column("mean_task_s").astype(np.float64)
    n_tasks = np.maximum(features.history_column("n_tasks").astype(np.float64), 1.0)
    begin_s = columns.job_submit.min(initial=np.inf)
    n_tasks = np.where(features.history_column("finish_s") <= begin_s, n_tasks, 0.0)
    return mean_s * n_tasks, n_tasks
