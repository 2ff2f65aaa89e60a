"""Jockey's control law (§4.3): a job's next allocation from the predicted times left.

`policies.jockey.policy` applies it every period.

`raw_allocation` chooses A^r, `next_allocation` smooths it; `tokens_needed` and `is_admissible`
decide admission. The rest is state and set-up.

The law maximises a utility that is piecewise linear in a job's lateness (§2.2, §5.1). It also
decides admission (§1): one more job is accepted if all accepted jobs still meet their deadlines.
Jobs without a deadline, and tasks beyond a job's tokens, run on spare tokens.

Symbols of the paper: S is slack, α hysteresis, D the dead zone, A^r the raw and A_t the smoothed
allocation, U the utility, C(p, a) the time left at progress p with a tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from policies.estimates.profile import Profile, Records, build_profile, job_shape
from policies.jockey.model import Model
from sim.base import maths
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.cluster.sizing import stage_demands
from sim.engine.plan import NO_LIMIT, Fit, Order, Plan, Queues, World
from sim.workload.columns import Columns
from sim.workload.utility import Utility

NEVER: Final = 2**31 - 1
"""Tokens needed by a job that misses its deadline with any allocation."""


@dataclass(frozen=True)
class Law:
    """The constants of the control law."""

    slack: float = 1.2  # S: factor on predictions
    hysteresis: float = 0.2  # α: fraction of the step to the raw allocation taken each period
    # D: margin before the deadline at which a job should finish, and delay behind schedule from
    # which on it gets more tokens, s
    dead_zone_s: float = 180.0
    gate: bool = True  # False if D only shifts the deadline


def raw_allocation(
    law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8
) -> int:
    """Return A^r, the fewest tokens with the greatest utility U(t_r + S C(p, a) + D)."""
    late = elapsed_s + law.slack * left_s - deadline_s
    return 1 + int(np.argmax(utility(late + law.dead_zone_s)))


def behind_s(
    law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8, tokens: float
) -> float:
    """Return the delay behind schedule of a job with `tokens` tokens, s; negative if ahead.

    The schedule is the latest finish with the greatest utility, of the utility shifted left by D:
    d - D, even if no allocation reaches it.
    """
    n_tokens = min(max(math.ceil(tokens - 1e-9), 1), len(left_s))
    late = elapsed_s + law.slack * left_s[n_tokens - 1] - deadline_s
    return float(late - (utility.latest(float(utility.value[0])) - law.dead_zone_s))


def next_allocation(law: Law, previous: float, raw: int, behind: float) -> float:
    """Return A_t = A_{t-1} + α (A^r - A_{t-1}); with the gate raised only if at least D behind."""
    if law.gate and raw > previous and behind < law.dead_zone_s:
        return previous
    return previous + law.hysteresis * (raw - previous)


def whole_tokens(allocation: float) -> int:
    """Return an allocation in whole tokens, rounded up, with a tolerance for rounding errors."""
    return math.ceil(allocation - 1e-9)


def tokens_needed(law: Law, deadline_s: ArrayLike, elapsed_s: ArrayLike, left_s: F8) -> I8:
    """Return the fewest tokens with which each job is predicted to meet its deadline: (...).

    Jobs have a deadline and a time since their submission (...), and times left (..., A), s.
    """
    deadline_s, elapsed_s = np.asarray(deadline_s), np.asarray(elapsed_s)
    meets = elapsed_s[..., None] + law.slack * left_s + law.dead_zone_s <= deadline_s[..., None]
    return np.where(meets.any(axis=-1), 1 + np.argmax(meets, axis=-1), NEVER)


def is_admissible(needs: Sequence[int], new: int, capacity: int) -> bool:
    """Return True if a job that needs `new` tokens fits beside jobs that need `needs`.

    An accepted job that can no longer meet its deadline counts as the whole capacity.
    """
    return new <= capacity and sum(min(n, capacity) for n in needs) + new <= capacity


GUARANTEED, SPARE = 0, 1
"""The queues: tasks within their job's tokens, and tasks that wait for spare tokens."""


@dataclass(eq=False)
class Job:
    """A job with a deadline, and its current allocation."""

    row: int  # in the workload
    stage0: int  # its stages
    stage1: int
    n_tasks: F8  # tasks of each stage
    profile: Profile  # of earlier runs
    model: Model  # of the time left
    deadline_s: float  # from its submission, s
    new_deadline_s: float  # the deadline from new_deadline_at_s on; NaN if it never changes
    new_deadline_at_s: float
    submit_s: float = np.nan  # submission, s; NaN before
    raw: float = 0.0  # the last raw allocation A^r, before smoothing
    allocation: float = 0.0  # its tokens, before rounding up
    tick_s: float = np.inf  # time of its next update, s
    notes: object = None  # further state of a policy

    def done(self, world: World) -> F8:
        """Return f_s, the fraction of finished tasks of each stage: (S,)."""
        left = world.view["stage_left"][self.stage0 : self.stage1]
        return np.asarray(1.0 - left / self.n_tasks)

    def deadline_at(self, elapsed_s: float) -> float:
        """Return the deadline that holds at a time after the submission, s."""
        changed = elapsed_s >= self.new_deadline_at_s  # never, where that is NaN
        return self.new_deadline_s if changed else self.deadline_s


@dataclass(eq=False)
class Running:
    """The jobs with a deadline by row: all of them, and the live ones."""

    jobs: dict[int, Job]
    live: dict[int, Job] = field(default_factory=dict)


def cluster_tokens(world: World) -> int:
    """Return the tokens of the cluster: its slots; on machines, tasks of the mean demand that fit.

    The mean is over the tasks of the jobs with a deadline, whose demands are declared.
    """
    cluster, columns = world.cluster, world.columns
    if cluster.unit:
        return int(cluster.total[0])
    stages = np.flatnonzero(np.isin(columns.stage_job, deadline_rows(world)))
    n_tasks = columns.stage_n_tasks[stages].astype(np.float64)
    mean = maths.dot(n_tasks, stage_demands(columns, cluster)[stages]) / max(n_tasks.sum(), 1.0)
    needed = mean > 0
    if not needed.any():
        return NO_LIMIT
    return max(1, int((cluster.total[needed] / mean[needed]).min()))


def deadline_rows(world: World) -> I4:
    """Return the rows of jobs with a deadline; gangs count as jobs without one."""
    columns = world.columns
    counts = np.isfinite(columns.job_deadline) & (columns.job_min_tasks == 0)
    return np.flatnonzero(counts).astype(np.int32)


def set_up_queues(world: World, plan: Plan, spare: bool) -> None:
    """Set up both queues: no job has tokens of its own yet, and all share spare tokens equally.

    Without `spare`, jobs with a deadline get no spare tokens.

    Tasks beyond a job's tokens are evicted for jobs that run fewer tasks than their tokens, where
    the kernel supports that: tasks fit strictly, and there are no gangs.
    """
    plan.queues = Queues.make(2, tier=[GUARANTEED, SPARE], order=[Order.KEY, Order.SHARE])
    plan.set_jobs(queue=GUARANTEED, run_limit=0, overflow_queue=SPARE)
    if not spare:
        plan.set_jobs(deadline_rows(world), overflow_queue=-1)
    gangs = np.flatnonzero(world.columns.job_min_tasks)  # which start as a whole or not at all
    plan.set_jobs(gangs, queue=SPARE, run_limit=NO_LIMIT, overflow_queue=-1)
    strict = world.cluster.unit or plan.fit == Fit.STRICT
    plan.evict = strict and not len(gangs) and len(deadline_rows(world)) > 0


def training_profile(columns: Columns, row: int, waits: bool = False) -> Profile:
    """Build the profile of a job from the training records of its template (`build_profile`)."""
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
    return build_profile(job_shape(columns, row), records, name, waits)


def make_job(columns: Columns, row: int, profile: Profile, model: Model, allow_late: bool) -> Job:
    """Build the state of a job; raise InputError for one that must be late, unless `allow_late`."""
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
    if not allow_late and job.deadline_s < model.shortest_s:
        raise InputError(
            f"job {row} (template {columns.template_names[columns.job_template[row]]!r}) has a "
            f"deadline of {job.deadline_s:g} s, but with unlimited tokens it takes "
            f"{model.shortest_s:g} s at least, by its training: give it a deadline of "
            f"{model.shortest_s:g} s or more, or set infeasible=run to allow it to be late",
            rule="infeasible deadline",
        )
    return job
