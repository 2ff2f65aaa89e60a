"""Learnt durations in the plan: refined with every job that arrives, and at a timer."""

from __future__ import annotations

import numpy as np

from policies.estimates.durations import Durations
from sim.base.arrays import F8, I4, I8, ranges
from sim.engine.plan import Batch, Plan, World
from sim.workload.columns import Columns


class LearntDurations:
    """State of a run: an estimator, and the unfinished stages of the jobs that have arrived.

    Finished tasks of a stage refine its expected duration, which weighs as much as `prior_tasks`
    tasks (DAGPS, MSR-TR-2016-19, §7.1).
    """

    def __init__(self, estimator: Durations, columns: Columns, prior_tasks: float) -> None:
        self._estimator, self._prior_tasks = estimator, prior_tasks
        self._size = columns.stage_n_tasks
        self._unfinished = np.zeros(len(columns.stage_job), dtype=bool)

    def begin(self, world: World, plan: Plan) -> None:
        """Set the expected durations of all stages before the run."""
        stages = np.arange(len(self._size))
        now = float(world.columns.job_submit.min(initial=0.0))
        plan.set_stages(expected_s=self._estimator.expect(stages, now))

    def refresh(self, batch: Batch, world: World, plan: Plan, refresh_s: float) -> I4 | I8:
        """Learn from finished stages; refine the expected durations of jobs, and return these.

        Refines new jobs at once, and all running jobs every `refresh_s` seconds.
        """
        columns = world.columns
        self._learn(world, batch.now)
        jobs = batch.row[batch.row >= 0]
        if len(jobs):
            stages = ranges(columns.job_stage0[jobs], columns.job_stage0[jobs + 1])
            self._unfinished[stages] = True
        if len(jobs) < len(batch.row):  # a timer: refresh all jobs
            stages = self._unfinished.nonzero()[0]
            stage_jobs = columns.stage_job[stages]
            jobs = stage_jobs[:1]
            if len(stages) > 1:  # unique jobs, in ascending order
                jobs = np.append(jobs, stage_jobs[1:][stage_jobs[1:] > stage_jobs[:-1]])
        if len(jobs):
            expected_s = self._refined_s(stages, world, batch.now)
            plan.set_stages(stages, jobs=jobs, expected_s=expected_s)
            plan.timer_s = min(plan.timer_s, batch.now + refresh_s)
        return jobs

    def _refined_s(self, stages: I8, world: World, now: float) -> F8:
        """Return the expected task durations, given the finished tasks of the stages, (n,) s."""
        done = self._size[stages] - world.view["stage_left"][stages]
        prior_s = self._estimator.expect(stages, now)
        work_s = prior_s * self._prior_tasks + world.view["stage_done_work"][stages]
        refined_s: F8 = work_s / (self._prior_tasks + done)
        return refined_s

    def _learn(self, world: World, now: float) -> None:
        """Learn from the stages that have finished since the last update."""
        stages = self._unfinished.nonzero()[0]
        done = stages[world.view["stage_left"][stages] == 0]
        if len(done):
            self._estimator.learn(done, world.view["stage_done_work"][done], now)
            self._unfinished[done] = False
