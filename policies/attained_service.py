"""Least attained service, by multi-level feedback queues: las."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8
from sim.base.parameters import Between, Factor, Positive
from sim.engine.plan import Order, Plan, Queues, World


@dataclass(frozen=True)
class MultilevelQueues(Policy):
    """The queues of the scheduler GS of SLearn (NSDI 2022, §5.1.1): N of them, FIFO inside.

    Queue q is for jobs of less than ``first_threshold_s · growth^q`` task seconds, the last for
    all others. Room goes to the queue with the least use over weight, which keeps long jobs from
    starving, unless priorities are strict. The defaults are those of §5.2.1: 10^6 ms, 10, 10, 10.

    Attributes
    ----------
    first_threshold_s : float
        Threshold of the first queue, task seconds.
    growth : float
        Each threshold over the one before.
    queues : int
        Number of queues.
    weight_decay : float
        Each queue's weight over that of the next.
    between : {"weights", "strict"}
        Whether queues share by their weights, or each is served only when those before it have
        nothing that can start.
    """

    first_threshold_s: Positive = 1000.0
    growth: Factor = 10.0
    queues: Annotated[int, Between(1, 1000)] = 10
    weight_decay: Factor = 10.0
    between: Literal["weights", "strict"] = "weights"

    @property
    def thresholds_s(self) -> F8:
        """Sizes from which on a job belongs to the next queue, (N,) task s; inf for the last."""
        queue = np.arange(self.queues, dtype=np.float64)
        threshold: F8 = self.first_threshold_s * maths.power(self.growth, queue)
        threshold[-1] = np.inf
        return threshold

    def make_queues(self, more: Sequence[float] = ()) -> Queues:
        """Make the queues, for `Plan.queues`, and `more` of them, each at its place among them.

        One at 0.5 comes second and has a weight between those of its neighbours; one at inf takes
        what no other wants. Of queues of equal use over weight the first goes.
        """
        place = np.sort(np.append(np.arange(self.queues, dtype=np.float64), more))
        last = place == np.inf
        weight = maths.power(self.weight_decay, -np.where(last, 0.0, place))
        tier = np.arange(len(place)) if self.between == "strict" else last
        return Queues.make(len(place), weight=weight, tier=tier, order=Order.FIFO)


@register("las")
@register("las_dag")
@dataclass(frozen=True)
class LeastAttainedService(MultilevelQueues):
    """Jobs sink through queues as they are served; higher queues have greater weights.

    A job enters queue 0 and leaves queue q for q + 1 once its tasks have run for
    ``first_threshold_s · growth^q`` seconds in all; the last queue keeps what reaches it. Inside a
    queue jobs come first, served first: no size needs to be known. The discipline is that of Aalo
    and Kairos, which SLearn (NSDI 2022, §5.1.3) compares itself to as LAS. Since what all stages
    of a job were served counts, it is LAS-DAG (§6) too.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Set up the queues; the kernel moves the jobs."""
        queue = np.arange(self.queues)
        plan.queues = replace(
            self.make_queues(),
            demote_at=self.thresholds_s,
            demote_to=np.where(queue + 1 < self.queues, queue + 1, -1).astype(np.int32),
        )
