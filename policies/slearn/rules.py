"""Rules in which the simulator that SLearn's authors published differs from their paper.

Each is a parameter, by default as the paper has it, with its effect in
policies/slearn/decisions/0029-slearn-published-simulator.md. `policies.slearn.published` has the
policies with the simulator's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from policies.attained_service import MultilevelQueues
from policies.knows import Knows
from policies.slearn.estimators import Estimator
from policies.slearn.gs import GenericScheduler, RunState
from policies.slearn.history import History, Placing
from policies.slearn.pilots import Pilots
from sim.base.arrays import I4, Mask
from sim.base.parameters import Whole
from sim.engine.plan import Order, Plan, Queues, World
from sim.workload.history import NAMES


@dataclass(frozen=True)
class PublishedQueues(MultilevelQueues):
    """The N queues, shared by weights or with strict priorities (simulator of NSDI 2022).

    Attributes
    ----------
    between : {"weights", "strict"}
        Sharing between queues: by weights, or strict priority, where a queue is served only when
        no earlier queue has a task that can start.
    """

    between: Literal["weights", "strict"] = "weights"

    fixed: ClassVar[Mapping[str, object]] = {}

    def make_queues(self, extra_positions: Sequence[float] = ()) -> Queues:
        """Build `Plan.queues`; with strict priority each queue is a tier."""
        queues = super().make_queues(extra_positions)
        if self.between == "weights":
            return queues
        return replace(queues, tier=np.arange(len(queues.tier), dtype=np.int32))


@dataclass(frozen=True)
class PublishedScheduler(PublishedQueues, GenericScheduler):
    """GS with the rules of the simulator that its authors published (Jajoo et al., NSDI 2022).

    Attributes
    ----------
    turns : {"submitted", "entered"}
        Order inside a queue: by submission time, or by the time of entry into the queue.
    sampling_queue : {"own", "second"}
        Queue of pilots: one of their own between the first and the second, or the second queue,
        shared with the jobs of its size.
    pilots_up : bool
        Round the number of pilots up instead of down.
    pilot_order : {"random", "given"}
        Order of the tasks of a stage: random, or as in the trace.
    evidence : {"pilots", "ended"}
        Tasks that the estimate waits for and uses: the first ones to start, or the first to end.
    features : {"all", "user"}
        Features by which jobs are similar.
    judged_by : {"statistic", "points"}
        Past estimates that rank groups: those by `statistic`, or those of the best point estimator
        (`policies.slearn.history.History`).
    unscored : {"last", "first", "never"}
        Rank of a group without past estimates: after the others, before them, or unused.
    unknown : {"all", "first", "last"}
        Treatment of a job without a usable group: by the distribution of all jobs, or in the first
        queue, or in the last.
    leak_every : int
        Jobs whose number (the digits at the end of ``job_id``) is a multiple of this are part of
        history from their arrival, which leaks the truth. 0 for none.
    """

    turns: Literal["submitted", "entered"] = "submitted"
    sampling_queue: Literal["own", "second"] = "own"
    pilots_up: bool = False
    pilot_order: Literal["random", "given"] = "random"
    evidence: Literal["pilots", "ended"] = "pilots"
    features: Literal["all", "user"] = "all"
    judged_by: Literal["statistic", "points"] = "statistic"
    unscored: Literal["last", "first", "never"] = "last"
    unknown: Literal["all", "first", "last"] = "all"
    leak_every: Whole = 0

    @property
    def knows(self) -> Knows:
        """As of GS; true, too, where the truth leaks."""
        leaks = self.estimator == "history" and self.leak_every > 0
        return Knows(durations="true") if leaks else super().knows

    @property
    def n_sampling_queues(self) -> int:
        """Number of queues for pilots alone."""
        return super().n_sampling_queues if self.sampling_queue == "own" else 0

    def hold_jobs(self, world: World, plan: Plan, thin: Mask) -> None:
        """Hold jobs that are not `thin` until the evidence is there."""
        super().hold_jobs(world, plan, thin)
        plan.first_ended = self.evidence == "ended"

    def order_tasks(self, world: World) -> I4 | None:
        """Return the order of tasks within each stage; None for that of the trace."""
        return super().order_tasks(world) if self.pilot_order == "random" else None

    def make_state(self, world: World, plan: Plan) -> RunState:
        """Make the state of a run; jobs may be ordered by the time of entry into their queue."""
        if self.turns == "submitted" or not self.samples:
            return super().make_state(world, plan)
        plan.queues = replace(plan.queues, order=np.full_like(plan.queues.tier, Order.KEY))
        plan.set_jobs(key=world.columns.job_submit)
        return _ByEntry(self, world, plan)

    def make_estimator(self, world: World) -> Estimator:
        """Make the estimator of one run; it rounds the number of pilots."""
        estimator = super().make_estimator(world)
        if isinstance(estimator, Pilots):
            estimator.rounds_up = self.pilots_up
        return estimator

    def make_history(self, world: World, placing: Placing | None = None) -> History:
        """Make the predictor from similar past jobs."""
        return History(
            world.columns.features, self.statistic, self.window_days, self.bins,
            predictors=("user",) if self.features == "user" else NAMES,
            judged_by=self.judged_by, unscored=self.unscored, falls_back=self.unknown == "all",
            learns=self._learns, placing=placing,
        )  # fmt: skip

    def make_placing(self, world: World, plan: Plan, thin: Mask) -> Placing:
        """Make the columns from which history's kernel places jobs."""
        unknown = self.queues - 1 if self.unknown == "last" else 0
        return Placing.make(
            world, plan, thin, self.thresholds_s, unknown, self.leak_every, self._learns
        )


class _ByEntry(RunState):
    """State of a run in which jobs are ordered by the time of entry into their queue."""

    def __init__(self, policy: GenericScheduler, world: World, plan: Plan) -> None:
        super().__init__(policy, world, plan)
        self._key = plan.jobs["key"]

    def place(self, job: int, now: float) -> None:
        """Move a job to the end of the queue of its estimated size."""
        self._key[job] = now
        super().place(job, now)
