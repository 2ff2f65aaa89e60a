"""GS, the generic scheduler of SLearn: queues by estimated job size, with any estimator.

Each combination of GS with an estimator is a policy with a name of its own: GS with other defaults
and no other code.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from policies.attained_service import MultilevelQueues
from policies.estimates.priors import Priors
from policies.knows import Knows
from policies.registry import register
from policies.slearn.estimators import Estimator, Oracle
from policies.slearn.history import History, HistoryQueues, Placing, Statistic
from policies.slearn.pilots import Pilots, TruthAfterPilots
from policies.slearn.posterior import Posterior
from policies.slearn.thin import ThinLimit, job_widths
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.parameters import Between, NotNegative, Whole
from sim.engine.plan import NO_LIMIT, Batch, Event, Plan, World

EstimatorName = Literal["oracle", "history", "pilots", "truth_after_pilots", "posterior"]
LaterStages = Literal["pilots", "history"]

MAX_REPAIRS = 100
"""Tasks out of order up to which they are put in order one by one."""

# plain integers: comparing with a flag takes longer than the rest of a callback's dispatch
_ARRIVED, _TASKS_DONE, _STAGE_DONE = (
    int(event) for event in (Event.JOB_ARRIVED, Event.TASKS_DONE, Event.STAGE_DONE)
)


@register("gs")
@register("oracle")
@dataclass(frozen=True)
class GenericScheduler(MultilevelQueues):
    """Jobs wait in the queue of their estimated total size (SLearn, NSDI 2022, §5.1.1).

    The estimator gives a job's size at once, or after some of its tasks, the pilots, have run.
    Pilots wait in the sampling queue, which comes after the first. Meanwhile the other tasks of
    their job may use resources that no other queue can use, first come, first served. A thin job
    goes to the first queue without an estimate, and so does a job of unknown size.

    Attributes
    ----------
    estimator : {"oracle", "history", "pilots", "truth_after_pilots", "posterior"}
        Estimator of job sizes (`policies.slearn.estimators`). "oracle": true sizes;
        "truth_after_pilots": true sizes once pilots have ended.
    thin_limit : int
        A job with fewer tasks than this is thin: it goes first, without pilots.
    adaptive_thin : bool
        Lower the limit as the load rises (`policies.slearn.thin`), with ``thin_limit`` as the
        maximum.
    sampling_percent : float
        Pilots as a percentage of a job's tasks; 0 for the adaptive ratio, or, with "posterior",
        for the number with the highest expected gain.
    later_stages : {"pilots", "history"}
        Estimate of later stages: the pilots' mean, or history's, corrected by the pilots.
    statistic : {"utility", "median", "quantile", "mean"}
        Statistic of history's distribution that is the estimate; "quantile" is the median as Hive
        interpolates it (`policies.slearn.kernels.histogram`).
    window_days : float
        Length of history; 0 for as many days as the workload's own history covers.
    bins : int
        Maximum number of bins in a histogram of history.
    """

    estimator: EstimatorName = "oracle"
    thin_limit: Whole = 0
    adaptive_thin: bool = False
    sampling_percent: Annotated[float, Between(0, 100)] = 0.0
    later_stages: LaterStages = "pilots"
    statistic: Statistic = "utility"
    window_days: NotNegative = 0.0
    bins: Annotated[int, Between(2)] = 80

    fixed: ClassVar[Mapping[str, object]] = {
        **MultilevelQueues.fixed,
        "turns": "submitted",
        "sampling_queue": "own",
        "pilots_up": False,
        "pilot_order": "random",
        "evidence": "pilots",
        "features": "all",
        "judged_by": "statistic",
        "unscored": "last",
        "unknown": "all",
        "leak_every": 0,
    }

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Arrivals, and the events that the estimator learns from."""
        events = Event.JOB_ARRIVED
        if self.samples:
            events |= Event.TASKS_DONE
        if self.samples and self.sampling_percent == 0:
            events |= Event.JOB_DONE
        if self._uses_history:
            events |= Event.STAGE_DONE
        return events

    @property
    def samples(self) -> bool:
        """True if some jobs have pilots."""
        return self.estimator in ("pilots", "truth_after_pilots", "posterior")

    @property
    def learns_from(self) -> tuple[str, ...]:
        """The workload's history and features, if the estimator uses them."""
        return ("history", "features") if self._uses_history else ()

    @property
    def knows(self) -> Knows:
        """Durations learnt from pilots and history; true for oracles."""
        is_oracle = self.estimator in ("oracle", "truth_after_pilots")
        return Knows(durations="true" if is_oracle else "learnt")

    @property
    def n_sampling_queues(self) -> int:
        """Number of queues for pilots alone."""
        return int(self.samples)

    @property
    def _uses_history(self) -> bool:
        return self.estimator in ("history", "posterior") or (
            self.samples and self.later_stages == "history"
        )

    def prepare(self, world: World, plan: Plan) -> RunState | HistoryQueues:
        """Set up the queues; with pilots, hold every job until its own have run."""
        plan.deferred = Event.STAGE_DONE | Event.JOB_DONE  # nothing follows from them at once
        thin = job_widths(world) < (0 if self.adaptive_thin else self.thin_limit)
        if self.samples:
            self.hold_jobs(world, plan, thin)
        else:
            plan.queues = self.make_queues()
        if self.estimator != "history":
            return self.make_state(world, plan)
        placing = self.make_placing(world, plan, thin)
        limit = ThinLimit(world, self.thin_limit) if self.adaptive_thin else None
        return HistoryQueues(plan, self.make_history(world, placing), placing, limit)

    def hold_jobs(self, world: World, plan: Plan, thin: Mask) -> None:
        """Set up the queues with those of pilots and surplus; hold jobs that are not `thin`."""
        n_own = self.n_sampling_queues
        plan.queues = self.make_queues((*[0.5] * n_own, math.inf))
        plan.task_order = self.order_tasks(world)
        plan.set_jobs(
            queue=np.where(thin, 0, min(1, self.queues - 1 + n_own)),
            start_gate=np.where(thin, NO_LIMIT, 1),
            notify_at=np.where(thin, 0, 1),
            overflow_queue=self.queues + n_own,
        )

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Pass events to the estimator, and move jobs to the queues of their sizes."""
        assert isinstance(memory, RunState | HistoryQueues)
        memory.react(batch)

    def make_state(self, world: World, plan: Plan) -> RunState:
        """Make the state of a run whose estimator is not history alone."""
        return RunState(self, world, plan)

    def make_estimator(self, world: World) -> Estimator:
        """Make the estimator of one run."""
        if self.estimator == "posterior":
            priors = Priors(world.columns.features)
            return Posterior(world, self.sampling_percent, priors, self.thresholds_s.tolist())
        if self.estimator == "pilots":
            history = self.make_history(world) if self._uses_history else None
            return Pilots(world, self.sampling_percent, history)
        if self.estimator == "truth_after_pilots":
            return TruthAfterPilots(world, self.sampling_percent)
        return Oracle(world)

    def make_history(self, world: World, placing: Placing | None = None) -> History:
        """Make the predictor from similar past jobs."""
        return History(
            world.columns.features, self.statistic, self.window_days, self.bins, placing=placing
        )

    def make_placing(self, world: World, plan: Plan, thin: Mask) -> Placing:
        """Make the columns from which history's kernel places jobs."""
        return Placing.make(world, plan, thin, self.thresholds_s)

    def order_tasks(self, world: World) -> I4 | None:
        """Return the order of tasks within each stage, of which the first are pilots."""
        return random_turns(world)


class RunState:
    """State of a run: the estimator, and the thresholds of the queues."""

    def __init__(self, policy: GenericScheduler, world: World, plan: Plan) -> None:
        self._estimator = policy.make_estimator(world)
        self._plan = plan
        columns = plan.jobs  # written in place, since `Plan.set_jobs` takes as long as the rest
        self._queue, self._start_gate = columns["queue"], columns["start_gate"]
        self._notify_at = columns["notify_at"]
        self._estimate_s = plan.estimate_s
        self._thresholds = policy.thresholds_s.tolist()
        self._n_sampling_queues = policy.n_sampling_queues
        self._width = job_widths(world).tolist()
        self._thin_limit = policy.thin_limit
        self._samples = policy.samples
        self._limit = ThinLimit(world, policy.thin_limit) if policy.adaptive_thin else None

    def react(self, batch: Batch) -> None:
        """Pass events to the estimator in their order, and place jobs that have an estimate."""
        assert batch.time_s is not None
        estimator, kinds, rows = self._estimator, batch.kind.tolist(), batch.row.tolist()
        for kind, row, now in zip(kinds, rows, batch.time_s.tolist()):  # noqa: B905  # faster
            if kind == _ARRIVED:
                self._arrived(row, now)
            elif kind == _TASKS_DONE:
                self.place(row, now)
            elif kind == _STAGE_DONE:
                estimator.stage_done(row, now)
            else:
                estimator.job_done(row, now)

    def _arrived(self, job: int, now: float) -> None:
        limit = self._limit
        thin = limit.is_thin(job) if limit else self._width[job] < self._thin_limit
        n_pilots = self._estimator.arrived(job, now, thin)
        if thin:
            if limit:
                self._plan.set_jobs(job, queue=0, start_gate=NO_LIMIT, notify_at=0)
        elif n_pilots == 0:
            if self._samples:
                self._notify_at[job] = 0
            self.place(job, now)
        elif n_pilots > 1:
            self._start_gate[job] = self._notify_at[job] = n_pilots
            self._plan.note_jobs(job)

    def place(self, job: int, now: float) -> None:
        """Move a job to the queue of its estimated size."""
        self._estimate_s[job] = size = self._estimator.size_s(job, now)
        queue = 0 if math.isnan(size) else bisect_right(self._thresholds, size)
        if self._samples:
            self._queue[job] = queue + (queue > 0) * self._n_sampling_queues
            self._start_gate[job] = NO_LIMIT
        elif queue > 0:  # jobs begin in the first queue
            self._queue[job] = queue
        else:
            return
        self._plan.note_jobs(job)


def random_turns(world: World) -> I4:
    """Return a random order of tasks within each stage, for `Plan.task_order`."""
    task0 = world.columns.stage_task0
    sizes = np.diff(task0)
    stage = np.repeat(np.arange(len(sizes)), sizes)
    key = stage + world.rng("pilots").random(len(stage))
    return (_order(key, stage, task0) - task0[stage]).astype(np.int32)


def _order(key: F8, stage: I8, task0: I8) -> I8:
    """Return the rows of tasks by `key`, from its stage to the next, equal ones by row, (T,).

    Whole numbers of a stage, the first bits of the fraction and the index in the stage are sorted,
    which takes a fraction of the time of a stable sort of keys; rows of which those bits are the
    same are put in order afterwards.
    """
    n_bits = int(np.diff(task0).max(initial=1) - 1).bit_length()
    scale = 62 - len(task0).bit_length() - n_bits
    packed = (key * 2.0**scale).astype(np.int64)
    np.minimum(packed, (stage + 1 << scale) - 1, out=packed)  # a sum may round to the next stage
    packed = (packed << n_bits) + np.arange(len(key)) - task0[stage]
    packed.sort()
    order = (packed & (1 << n_bits) - 1) + task0[stage]
    turns = key[order]
    wrong = np.flatnonzero(turns[1:] < turns[:-1])
    if len(wrong) > MAX_REPAIRS:
        return np.argsort(key, kind="stable")
    while len(wrong):
        for i in wrong.tolist():
            order[[i, i + 1]] = order[[i + 1, i]]
        turns = key[order]
        wrong = np.flatnonzero(turns[1:] < turns[:-1])
    return order


@register("slearn")
@dataclass(frozen=True)
class SLearn(GenericScheduler):
    """Learning in space: a few tasks of each job run first (SLearn, NSDI 2022, §5.1.2)."""

    estimator: EstimatorName = "pilots"
    thin_limit: Whole = 3


@register("slearn_dag")
@dataclass(frozen=True)
class SLearnDag(SLearn):
    """SLearn for DAGs: the sampled first stage corrects history's estimates of later ones.

    SLearn-DAG of NSDI 2022, §6.
    """

    later_stages: LaterStages = "history"


@register("adaptive_thin")
@dataclass(frozen=True)
class AdaptiveThin(SLearn):
    """SLearn whose limit for thin jobs falls as the load rises (open in NSDI 2022, §7)."""

    thin_limit: Whole = 6
    adaptive_thin: bool = True


@register("threesigma")
@register("threesigma_dag")
@dataclass(frozen=True)
class ThreeSigma(GenericScheduler):
    """Learning in time as 3Sigma does, with the utility 1/r² (SLearn, NSDI 2022, §4.3, §5.1.3).

    Each stage is predicted separately, and a job's size is the sum. So it is 3Sigma-DAG (§6) too.
    """

    estimator: EstimatorName = "history"


@register("threesigma_tl")
@dataclass(frozen=True)
class ThreeSigmaThin(ThreeSigma):
    """3Sigma that treats thin jobs as SLearn does (NSDI 2022, §5.1.3)."""

    thin_limit: Whole = 3


@register("point")
@register("point_dag")
@dataclass(frozen=True)
class PointEstimate(ThreeSigma):
    """3Sigma with the median of history as the estimate.

    Point-Est and Point-Est-DAG of SLearn (NSDI 2022, §5.1.3, §6).
    """

    statistic: Statistic = "median"
