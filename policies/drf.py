"""Dominant resource fairness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Order, Plan, Queues, Share, World


@register("drf")
@dataclass(frozen=True)
class DominantResourceFairness(Policy):
    """The next room goes to the user with the least dominant share; FIFO among a user's jobs.

    Ghodsi et al., *Dominant resource fairness: fair allocation of multiple resource types*, NSDI
    2011, Algorithm 1. A user's dominant share is the largest, over resources, of what its tasks
    hold over what the cluster has.

    Attributes
    ----------
    by : {"user", "queue"}
        Between whom it is fair.
    """

    by: Literal["user", "queue"] = "user"

    def prepare(self, world: World, plan: Plan) -> None:
        """Give each user (or queue) a queue of its own."""
        columns = world.columns
        plan.share = Share.DOMINANT
        if self.by == "user":
            names, of_job = columns.user_names, columns.job_user
        elif world.cluster.queue_mode == "global":
            names, of_job = columns.queue_names, columns.job_queue
        else:  # the cluster serves its queues by their use already
            plan.queues = Queues.make(1, order=Order.FIFO)
            return
        plan.queues = Queues.make(len(names), order=Order.FIFO)
        plan.set_jobs(queue=of_job)
