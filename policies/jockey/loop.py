"""Jobs with deadlines and their tokens; other jobs, and what goes beyond, take spare ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policies.jockey.model import Model
from policies.jockey.profile import Profile, Records, profile_of, shape_of
from sim.base.arrays import F8, I4
from sim.base.errors import InputError
from sim.engine.plan import NO_LIMIT, Fit, Order, Plan, Queues, World
from sim.workload.columns import Columns

GUARANTEED, SPARE = 0, 1
"""The queues: of jobs within their tokens, and of all that wait for spare ones."""


@dataclass(eq=False)
class Job:
    """A job with a deadline, and what it has now."""

    row: int  # in the workload
    stage0: int  # its stages
    stage1: int
    n_tasks: F8  # their tasks
    profile: Profile  # of earlier runs
    model: Model  # what is predicted of it
    deadline_s: float  # from its submission, s
    new_deadline_s: float  # the deadline from a time on; NaN if it stays
    new_deadline_at_s: float
    submit_s: float = np.nan  # when it was submitted, s; NaN before
    raw: float = 0.0  # the tokens that were wanted for it last, before they were smoothed
    allocation: float = 0.0  # its tokens, before they are rounded up
    tick_s: float = np.inf  # when it is looked at next, s
    notes: object = None  # what a policy keeps of it beside

    def done(self, world: World) -> F8:
        """Return f_s, the fraction of finished tasks of each stage: (S,)."""
        left = world.view["stage_left"][self.stage0 : self.stage1]
        return np.asarray(1.0 - left / self.n_tasks)

    def deadline_at(self, elapsed_s: float) -> float:
        """Return the deadline that holds so long after the submission, s."""
        changed = elapsed_s >= self.new_deadline_at_s  # never, where that is NaN
        return self.new_deadline_s if changed else self.deadline_s


@dataclass(eq=False)
class Running:
    """The jobs with a deadline: all by row, and those that run."""

    jobs: dict[int, Job]
    live: dict[int, Job] = field(default_factory=dict)


def with_deadline(world: World) -> I4:
    """Return the rows of the jobs that have a deadline; gangs count as jobs without."""
    columns = world.columns
    counts = np.isfinite(columns.job_deadline) & (columns.job_min_tasks == 0)
    return np.flatnonzero(counts).astype(np.int32)


def share_out(world: World, plan: Plan, spare: bool) -> None:
    """Set up both queues: no job has tokens of its own yet, and all share what is spare alike.

    Unless `spare`, jobs with a deadline do not.

    What a job runs beyond its tokens makes way for jobs that run fewer than theirs, where the
    kernel can do that: tasks fit strictly, and there are no gangs.
    """
    plan.queues = Queues.make(2, tier=[GUARANTEED, SPARE], order=[Order.KEY, Order.SHARE])
    plan.set_jobs(queue=GUARANTEED, run_limit=0, overflow_queue=SPARE)
    if not spare:
        plan.set_jobs(with_deadline(world), overflow_queue=-1)
    gangs = np.flatnonzero(world.columns.job_min_tasks)  # which start whole, or not at all
    plan.set_jobs(gangs, queue=SPARE, run_limit=NO_LIMIT, overflow_queue=-1)
    strict = world.cluster.unit or plan.fit == Fit.STRICT
    plan.evict = strict and not len(gangs)


def profile_of_job(columns: Columns, row: int) -> Profile:
    """Build the profile of a job from the training records of its template."""
    training, template = columns.training, int(columns.job_template[row])
    picked = np.flatnonzero(training.template == template)
    name = f"job {row} (template {columns.template_names[template]!r})"
    if not len(picked):
        raise InputError(
            f"{name} has a deadline but no training records: give the workload a table 'training' "
            "of an earlier run of its template, drop its deadline, or use policy max_allocation",
            rule="no training",
        )
    records = Records(*(training.column(name)[picked] for name in Records.__dataclass_fields__))
    return profile_of(shape_of(columns, row), records, name)


def job_of(columns: Columns, row: int, profile: Profile, model: Model, may_be_late: bool) -> Job:
    """Describe a job before it is submitted; refuse one that must be late, unless it may be."""
    job = Job(
        row,
        int(columns.job_stage0[row]),
        int(columns.job_stage0[row + 1]),
        profile.shape.n_tasks.astype(np.float64),
        profile,
        model,
        float(columns.job_deadline[row]),
        float(columns.job_new_deadline[row]),
        float(columns.job_new_deadline_at[row]),
    )
    if not may_be_late and job.deadline_s < model.shortest_s:
        raise InputError(
            f"job {row} (template {columns.template_names[columns.job_template[row]]!r}) has a "
            f"deadline of {job.deadline_s:g} s, but with unlimited tokens it takes "
            f"{model.shortest_s:g} s at least, by its training: give it a deadline of "
            f"{model.shortest_s:g} s or more, or set infeasible=run to let it be late",
            rule="infeasible deadline",
        )
    return job
