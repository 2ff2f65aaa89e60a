"""Learnt durations in the plan: refined with every job that arrives, and at a timer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.estimates.stage_profiles import StageProfiles
from sim.base.arrays import Mask, ranges
from sim.engine.plan import Batch, Plan, World


@dataclass(frozen=True)
class LearntDurations:
    """State of a run: learnt profiles, and the unfinished stages of the jobs that have arrived."""

    profiles: StageProfiles
    unfinished: Mask

    def refresh(self, batch: Batch, world: World, plan: Plan, refresh_s: float) -> None:
        """Learn from finished stages, and refine the expected durations of running jobs.

        Refines new jobs at once, and all jobs every `refresh_s` seconds.
        """
        columns = world.columns
        self._learn(world)
        jobs = batch.row[batch.row >= 0]
        if len(jobs):
            stages = ranges(columns.job_stage0[jobs], columns.job_stage0[jobs + 1])
            self.unfinished[stages] = True
        if len(jobs) < len(batch.row):  # a timer: refresh all jobs
            stages = self.unfinished.nonzero()[0]
            stage_jobs = columns.stage_job[stages]
            jobs = stage_jobs[:1]
            if len(stages) > 1:  # unique jobs, in ascending order
                jobs = np.append(jobs, stage_jobs[1:][stage_jobs[1:] > stage_jobs[:-1]])
        if len(jobs):
            expected = self.profiles.expect(stages, world.view)
            plan.set_stages(stages, jobs=jobs, expected_s=expected)
            plan.timer_s = min(plan.timer_s, batch.now + refresh_s)

    def _learn(self, world: World) -> None:
        """Learn from the stages that have finished since the last update."""
        stages = self.unfinished.nonzero()[0]
        done = stages[world.view["stage_left"][stages] == 0]
        if len(done):
            self.profiles.learn(done, world.view)
            self.unfinished[done] = False
