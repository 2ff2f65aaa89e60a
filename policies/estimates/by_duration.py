"""Policies by durations, which are true, learnt from history or from the run, or declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from policies.base import Policy
from policies.estimates.durations import Declared, Durations
from policies.estimates.learnt import learn_durations
from policies.estimates.stage_profiles import StageProfiles
from policies.knows import Knows, Source
from sim.base.arrays import F8, I4, I8, ranges
from sim.base.parameters import Between
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.columns import Columns

Knowledge = Literal["true", "history", "run", "declared"]
"""Sources of durations: the truth; what was recorded before the run, and finished since; what
finished during the run; what the job's user requested."""

SOURCES: dict[str, Source] = {
    "true": "true", "history": "learnt", "run": "learnt", "declared": "declared",
}  # fmt: skip
"""The declaration (`policies.knows.Knows`) that follows from a source."""


@dataclass(frozen=True)
class ByDuration(Policy):
    """Policy that uses durations of tasks.

    Attributes
    ----------
    knowledge : {"true", "history", "run", "declared"}
        Source of durations. "true": the truth. "history": recorded history before the run, and
        what finished since. "run": only what finished during this run. "declared": requested run
        times; a job without one counts as endless. Learnt durations are means over finished stages
        of similar jobs (`policies.estimates.stage_profiles`): those of the template, or for an ad
        hoc job those of the user.
    refresh_s : float
        Time between refinements of learnt durations, s.
    first_guess_s : float
        Learnt task duration before any stage has finished, s.
    prior_tasks : float
        Number of a stage's own finished tasks that weigh as much as earlier runs.
    """

    knowledge: Knowledge = "true"
    refresh_s: Annotated[float, Between(1e-3, 1e12)] = 10.0
    first_guess_s: Annotated[float, Between(1e-9, 1e12)] = 30.0
    prior_tasks: Annotated[float, Between(1e-9, 1e12)] = 5.0

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Refinements of learnt durations, if they change the order."""
        is_ordered = type(self).order_by_estimates is not ByDuration.order_by_estimates
        learns = SOURCES[self.knowledge] == "learnt"
        return Event.REFINED if learns and is_ordered else Event.NONE

    @property
    def knows(self) -> Knows:
        """Durations, from the source that `knowledge` names."""
        return Knows(durations=SOURCES[self.knowledge])

    @property
    def learns_from(self) -> tuple[str, ...]:
        """The workload's history, if durations come from it."""
        return ("history",) if self.knowledge == "history" else ()

    def prepare(self, world: World, plan: Plan) -> object:
        """Order by the truth, or by what is expected before the run."""
        if self.knowledge == "true":
            self.order_by_truth(world, plan)
            return None
        columns, estimator = world.columns, self._estimator(world.columns)
        jobs = np.arange(len(columns.job_submit))
        if isinstance(estimator, StageProfiles):
            prior_tasks, refresh_s = self.prior_tasks, self.refresh_s
            learn_durations(estimator, plan, prior_tasks, refresh_s, estimates=True)
        else:
            plan.set_stages(expected_s=estimator.expect(np.arange(len(columns.stage_job)), 0.0))
        work_s = plan.stages["expected_s"] * columns.stage_n_tasks
        plan.estimate_s[:] = np.bincount(columns.stage_job, work_s, len(jobs))
        self.order_by_estimates(world, plan, jobs, plan.estimate_s.copy())
        if self.knowledge == "declared":
            plan.estimate_s[np.isnan(columns.job_requested)] = np.nan  # endless: no estimate
        return None

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Update the order that follows from refined durations."""
        self.order_by_estimates(world, plan, batch.row, expected_work_s(world, plan, batch.row))

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Fill the plan before the run, all durations known; by default nothing."""

    def order_by_estimates(self, world: World, plan: Plan, jobs: I4 | I8, work_s: F8) -> None:
        """Set the order of `jobs`, whose work is expected to be `work_s` in all.

        The expected task durations of their stages are ``plan.stages["expected_s"]``. Called
        before the run for all jobs, and later for those whose expectations have changed. By default
        it does nothing.
        """

    def _estimator(self, columns: Columns) -> Durations:
        if self.knowledge == "declared":
            return Declared(columns)
        is_recorded = self.knowledge == "history"
        return StageProfiles(columns, self.first_guess_s, ad_hoc="user", recorded=is_recorded)


def expected_work_s(world: World, plan: Plan, jobs: I4 | I8) -> F8:
    """Return the work of the finished tasks of jobs, and the expected work of the others, s."""
    columns, view = world.columns, world.view
    begin, end = columns.job_stage0[jobs], columns.job_stage0[jobs + 1]
    stages = ranges(begin, end)
    work_s = (
        view["stage_done_work"][stages]
        + view["stage_left"][stages] * plan.stages["expected_s"][stages]
    )
    job = np.repeat(np.arange(len(jobs)), end - begin)
    return np.bincount(job, work_s, len(jobs)).astype(np.float64)
