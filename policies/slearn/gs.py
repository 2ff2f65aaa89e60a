"""GS, the generic scheduler of SLearn: queues by estimated size, whoever estimates it.

Its pairings with estimators, each a policy of its own name, are GS with other defaults and nothing
else.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from policies.attained_service import MultilevelQueues
from policies.registry import register
from policies.slearn.estimators import Estimator, Oracle
from policies.slearn.history import History, HistoryEstimator
from policies.slearn.pilots import Pilots, TruthAfterPilots
from policies.slearn.posterior import Posterior
from policies.slearn.priors import Priors
from sim.base.arrays import I4, I8
from sim.base.parameters import Between, NotNegative, Whole
from sim.engine.plan import NO_LIMIT, Batch, Event, Order, Plan, World
from sim.workload.history import NAMES

EstimatorName = Literal["oracle", "history", "pilots", "truth_after_pilots", "posterior"]
Statistic = Literal["utility", "median", "quantile", "mean"]
LaterStages = Literal["pilots", "history"]

# plain numbers: comparing with a flag takes longer than the rest of a callback's dispatch
_ARRIVED, _TASKS_DONE, _STAGE_DONE = (
    int(event) for event in (Event.JOB_ARRIVED, Event.TASKS_DONE, Event.STAGE_DONE)
)


@register("gs")
@register("oracle")
@dataclass(frozen=True)
class GenericScheduler(MultilevelQueues):
    """Jobs wait in the queue of their estimated total size (SLearn, NSDI 2022, §5.1.1).

    The estimator says how large a job is: at once, or after some of its tasks, the pilots, have
    run. Pilots wait in the sampling queue, which comes after the first, in their turn; what else
    their job has may take room that nothing else wants, first come, first served. A thin job goes
    to the first queue unasked, and so does one of whose size nothing is known.

    Attributes
    ----------
    estimator : {"oracle", "history", "pilots", "truth_after_pilots", "posterior"}
        Who says how large a job is (`policies.slearn.estimators`); told the truth by default, and
        with "truth_after_pilots" once pilots have ended.
    thin_limit : int
        Jobs of fewer tasks are thin.
    adaptive_thin : bool
        Whether the limit falls as the load rises (`thin_limit_at`), ``thin_limit`` being the most.
    sampling_percent : float
        How many percent of a job's tasks are pilots; 0 for the adaptive ratio, or, with
        "posterior", for the number of greatest expected gain.
    turns : {"submitted", "entered"}
        What first come, first served is inside a queue: by when jobs were submitted, or by when
        they came to that queue.
    sampling_queue : {"own", "second"}
        Whether pilots have a queue of their own between the first and the second, or share the
        second with the jobs of its size.
    pilots_up : bool
        Whether that percentage is rounded up rather than down.
    pilot_order : {"random", "given"}
        Whether the tasks of a stage come in a random order or in that of the trace.
    evidence : {"pilots", "ended"}
        What the estimate is made of, and waits for: the first tasks to start, or the first to end.
    later_stages : {"pilots", "history"}
        Whether pilots speak for all stages of a job, or correct what history says of later ones.
    statistic : {"utility", "median", "quantile", "mean"}
        What of the history's distribution is the estimate (`policies.slearn.histogram`; `quantile`
        is the median as Hive interpolates it).
    window_days : float
        How far back history reaches; 0 for as many days as the workload's own history covers.
    bins : int
        Most bins of a histogram of history.
    features : {"all", "user"}
        By which features jobs are alike.
    judged_by : {"statistic", "points"}
        By which of their past estimates groups are ranked: `statistic`, or the best of
        `policies.slearn.history.Points`.
    unscored : {"last", "first", "never"}
        Whether a group that never gave an estimate ranks after the others, before them, or is not
        asked.
    unknown : {"all", "first", "last"}
        A job that no group is asked about counts as any job, or goes to the first queue, or to the
        last.
    leak_every : int
        Jobs whose number (the digits at the end of ``job_id``) is a multiple of this are part of
        history from when they come: truth that leaks. 0 for none.
    """

    estimator: EstimatorName = "oracle"
    thin_limit: Whole = 0
    adaptive_thin: bool = False
    sampling_percent: Annotated[float, Between(0, 100)] = 0.0
    turns: Literal["submitted", "entered"] = "submitted"
    sampling_queue: Literal["own", "second"] = "own"
    pilots_up: bool = False
    pilot_order: Literal["random", "given"] = "random"
    evidence: Literal["pilots", "ended"] = "pilots"
    later_stages: LaterStages = "pilots"
    statistic: Statistic = "utility"
    window_days: NotNegative = 0.0
    bins: Annotated[int, Between(2)] = 80
    features: Literal["all", "user"] = "all"
    judged_by: Literal["statistic", "points"] = "statistic"
    unscored: Literal["last", "first", "never"] = "last"
    unknown: Literal["all", "first", "last"] = "all"
    leak_every: Whole = 0

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Arrivals, and what the estimator learns from."""
        events = Event.JOB_ARRIVED
        if self.samples:
            events |= Event.TASKS_DONE
        if self.samples and self.sampling_percent == 0:
            events |= Event.JOB_DONE
        if self._remembers:
            events |= Event.STAGE_DONE
        return events

    @property
    def samples(self) -> bool:
        """Whether some jobs have pilots."""
        return self.estimator in ("pilots", "truth_after_pilots", "posterior")

    @property
    def learns_from(self) -> tuple[str, ...]:
        """What history predicts by."""
        return ("history", "features") if self._remembers else ()

    @property
    def _remembers(self) -> bool:
        return self.estimator in ("history", "posterior") or (
            self.samples and self.later_stages == "history"
        )

    def prepare(self, world: World, plan: Plan) -> _Memory:
        """Set up the queues; where there will be pilots, let every job wait for its own."""
        thin = job_widths(world) < (0 if self.adaptive_thin else self.thin_limit)
        if not self.samples:
            plan.queues = self.make_queues()
            return _Memory(self, world, plan)
        own = self.sampling_queue == "own"
        plan.queues = self.make_queues((0.5, math.inf) if own else (math.inf,))
        if self.turns == "entered":
            plan.queues = replace(plan.queues, order=np.full_like(plan.queues.tier, Order.KEY))
            plan.set_jobs(key=world.columns.job_submit)
        plan.first_ended = self.evidence == "ended"
        if self.pilot_order == "random":
            plan.task_order = random_turns(world)
        plan.set_jobs(
            queue=np.where(thin, 0, 1 if own else min(1, self.queues - 1)),
            start_gate=np.where(thin, NO_LIMIT, 1),
            notify_at=np.where(thin, 0, 1),
            overflow_queue=self.queues + own,
        )
        return _Memory(self, world, plan)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Hand on what happened, and put jobs where they belong now."""
        assert isinstance(memory, _Memory)
        memory.react(batch)

    def make_estimator(self, world: World) -> Estimator:
        """Make the estimator of one run."""
        if self.estimator == "posterior":
            priors = Priors(world.columns.features)
            return Posterior(world, self.sampling_percent, priors, self.thresholds_s.tolist())
        history = None
        if self._remembers:
            history = History(
                world.columns.features, self.statistic, self.window_days, self.bins,
                asked=("user",) if self.features == "user" else NAMES,
                judged_by=self.judged_by, unscored=self.unscored, falls_back=self.unknown == "all",
            )  # fmt: skip
        if self.estimator == "oracle":
            return Oracle(world)
        if self.estimator == "pilots":
            return Pilots(world, self.sampling_percent, history, up=self.pilots_up)
        if self.estimator == "truth_after_pilots":
            return TruthAfterPilots(world, self.sampling_percent, up=self.pilots_up)
        assert history is not None
        return HistoryEstimator(world, history, self.leak_every)


class _Memory:
    """What a run of the scheduler keeps: its estimator, and where the thresholds are."""

    def __init__(self, policy: GenericScheduler, world: World, plan: Plan) -> None:
        self._estimator = policy.make_estimator(world)
        self._plan = plan
        self._thresholds = policy.thresholds_s.tolist()
        self._enters = policy.turns == "entered" and policy.samples
        self._unknown = policy.queues - 1 if policy.unknown == "last" else 0
        self._sampling = policy.samples and policy.sampling_queue == "own"
        self._width = job_widths(world).tolist()
        self._thin_limit, self._adaptive = policy.thin_limit, policy.adaptive_thin
        self._view, self._samples = world.view, policy.samples

    def react(self, batch: Batch) -> None:
        estimator, now = self._estimator, batch.now
        for kind, row in zip(batch.kind.tolist(), batch.row.tolist(), strict=True):
            if kind == _ARRIVED:
                self._arrived(row, now)
            elif kind == _TASKS_DONE:
                self._place(row, now)
            elif kind == _STAGE_DONE:
                estimator.stage_done(row, now)
            else:
                estimator.job_done(row, now)

    def _arrived(self, job: int, now: float) -> None:
        thin = self._width[job] < self._limit(job)
        n_pilots = self._estimator.arrived(job, now, thin)
        if thin:
            if self._adaptive:
                self._plan.set_jobs(job, queue=0, start_gate=NO_LIMIT, notify_at=0)
        elif n_pilots == 0:
            self._place(job, now)
            if self._samples:
                self._plan.set_jobs(job, notify_at=0)
        elif n_pilots > 1:
            self._plan.set_jobs(job, start_gate=n_pilots, notify_at=n_pilots)

    def _limit(self, job: int) -> int:
        if not self._adaptive:
            return self._thin_limit
        left = int(self._view["left"][:job].sum())  # jobs come in the order of their rows
        running = int(self._view["running"][:job].sum())
        return thin_limit_at(left / max(1, running), self._thin_limit)

    def _place(self, job: int, now: float) -> None:
        size = self._estimator.size_s(job, now)
        self._plan.estimate_s[job] = size
        queue = self._unknown if math.isnan(size) else bisect_right(self._thresholds, size)
        if queue > 0 and self._sampling:
            queue += 1
        self._plan.set_jobs(job, queue=queue, start_gate=NO_LIMIT)
        if self._enters:
            self._plan.set_jobs(job, key=now)


def thin_limit_at(load: float, most: int) -> int:
    """Return the number of tasks below which a job is thin at a load, at most `most`.

    Where all that has come runs at once, it is `most`; at twice that load half of it, and so on
    down to 2. The more jobs wait for each other, the more it costs to let a large job of few tasks
    pass unmeasured; where none waits, measuring costs more than it tells. SLearn (NSDI 2022, §7)
    leaves open how the limit follows the load.
    """
    return min(most, max(2, math.ceil(most / max(1.0, load))))


def job_widths(world: World) -> I8:
    """Return the number of tasks of each job, (J,)."""
    columns = world.columns
    return np.diff(columns.stage_task0[columns.job_stage0])


def random_turns(world: World) -> I4:
    """Return a random order of tasks within each stage, for `Plan.task_order`."""
    task0 = world.columns.stage_task0
    sizes = np.diff(task0)
    stage = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(stage + world.rng("pilots").random(len(stage)), kind="stable")
    return (order - task0[stage]).astype(np.int32)


@register("slearn")
@dataclass(frozen=True)
class SLearn(GenericScheduler):
    """Learning in space: a few tasks of each job run first (SLearn, NSDI 2022, §5.1.2)."""

    estimator: EstimatorName = "pilots"
    thin_limit: Whole = 3


@register("slearn_dag")
@dataclass(frozen=True)
class SLearnDag(SLearn):
    """SLearn for DAGs: the sampled first stage corrects what history says of later ones.

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

    Each stage is predicted by itself, and a job is their sum: so it is 3Sigma-DAG (§6) too.
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
    """3Sigma that goes by the median of history.

    Point-Est and Point-Est-DAG of SLearn (NSDI 2022, §5.1.3, §6).
    """

    statistic: Statistic = "median"


@register("bayes")
@dataclass(frozen=True)
class Bayes(GenericScheduler):
    """Learning in time and space: history is the prior, pilots are the evidence.

    The posterior is that of SLearn, NSDI 2022, §4.1.2; whether pilots run, and how many, is chosen
    by expected gain (`policies.slearn.posterior`), which the paper leaves open (§7). What history
    says, and how sure it is, is `policies.slearn.priors`; `statistic` and the like don't count.
    """

    estimator: EstimatorName = "posterior"
    thin_limit: Whole = 3
