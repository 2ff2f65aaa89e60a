"""Least attained service, by multi-level feedback queues: las."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.base import maths
from sim.base.arrays import F8
from sim.base.parameters import Between, Factor, Positive
from sim.engine.plan import Order, Plan, Queues, World


@dataclass(frozen=True)
class MultilevelQueues(Policy):
    """The N queues of SLearn's generic scheduler GS (NSDI 2022, §5.1.1), each FIFO inside.

    Queue q is for jobs of less than ``first_threshold_s · growth^q`` task seconds, the last queue
    for all others. Free resources go to the queue with the least usage over weight, which keeps
    long jobs from starving. The defaults are those of §5.2.1: 10^6 ms, 10, 10, 10.

    Attributes
    ----------
    first_threshold_s : float
        Threshold of the first queue, task seconds.
    growth : float
        Ratio of each threshold to the one before.
    queues : int
        Number of queues.
    weight_decay : float
        Ratio of each queue's weight to that of the next.
    """

    first_threshold_s: Positive = 1000.0
    growth: Factor = 10.0
    queues: Annotated[int, Between(1, 1000)] = 10
    weight_decay: Factor = 10.0

    fixed: ClassVar[Mapping[str, object]] = {"between": "weights"}

    @property
    def thresholds_s(self) -> F8:
        """Upper limits of job sizes by queue, (N,) task s; inf for the last."""
        queue = np.arange(self.queues, dtype=np.float64)
        threshold: F8 = self.first_threshold_s * maths.power(self.growth, queue)
        threshold[-1] = np.inf
        return threshold

    def make_queues(self, extra_positions: Sequence[float] = ()) -> Queues:
        """Build `Plan.queues`: the N queues, and extra ones at `extra_positions` among them.

        A queue at 0.5 comes second, with a weight between those of its neighbours. A queue at inf
        takes the resources that no other queue can use. On equal usage over weight the first queue
        goes.
        """
        position = np.sort(np.append(np.arange(self.queues, dtype=np.float64), extra_positions))
        last = position == np.inf
        weight = maths.power(self.weight_decay, -np.where(last, 0.0, position))
        return Queues.make(len(position), weight=weight, tier=last, order=Order.FIFO)


@register("las")
@register("las_dag")
@dataclass(frozen=True)
class LeastAttainedService(MultilevelQueues):
    """Least attained service: jobs are demoted through queues of falling weight as they run.

    A job enters queue 0 and moves from queue q to q + 1 once its tasks have run for
    ``first_threshold_s · growth^q`` seconds in total; the last queue keeps its jobs. Inside a queue
    jobs go first come, first served. No duration is known or estimated: attained service is
    observed. The discipline is that of Aalo and Kairos, which SLearn (NSDI 2022, §5.1.3) uses as
    its baseline LAS. It is LAS-DAG (§6) too, since the service of all stages of a job counts.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Set up the queues; the kernel moves the jobs."""
        queue = np.arange(self.queues)
        plan.queues = replace(
            self.make_queues(),
            demote_at=self.thresholds_s,
            demote_to=np.where(queue + 1 < self.queues, queue + 1, -1).astype(np.int32),
        )
