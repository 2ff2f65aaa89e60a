"""Fairness between users or queues, each first in, first out inside: fair, drf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from policies.base import Policy
from policies.registry import register
from sim.base.errors import InputError, unknown
from sim.engine.plan import Order, Plan, Queues, Share, World


@register("fair")
@dataclass(frozen=True)
class Fair(Policy):
    """The next room goes to the queue with the least use over its weight; FIFO inside a queue.

    Weighted max-min fairness (Bertsekas and Gallager, *Data networks*, 1992, §6.5.2) as the fair
    schedulers of Hadoop and Spark apply it, task by task. Use is counted in slots, in one
    resource, or in the dominant share where `resource` is left empty.

    Attributes
    ----------
    weights : mapping of str to float
        Weight of each queue of the workload, 1 where left out. For a cluster that itself shares
        by queues (weighted, or within hard shares) leave it empty: its own weights count.
    resource : str
        Which resource counts, e.g. ``cpu``; empty for the dominant one.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    resource: str = ""

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if not 0 < weight < float("inf"):
                raise InputError(f"policy fair: the weight of queue {name!r} must be positive")

    def prepare(self, world: World, plan: Plan) -> None:
        """Give each of the workload's queues a queue of its own, with its weight."""
        columns, cluster = world.columns, world.cluster
        if cluster.queue_mode != "global":
            if self.weights:
                raise InputError(
                    f"policy fair: a cluster with {cluster.queue_mode} queues has weights of its "
                    "own; set them there (cluster queue shares), and leave weights empty"
                )
            plan.queues = Queues.make(1, order=Order.FIFO)
        else:
            for name in self.weights:
                if name not in columns.queue_names:
                    raise InputError(unknown("queue in fair weights", name, columns.queue_names))
            weight = [self.weights.get(name, 1.0) for name in columns.queue_names]
            plan.queues = Queues.make(len(weight), weight=weight, order=Order.FIFO)
            plan.set_jobs(queue=columns.job_queue)
        if self.resource:
            if self.resource not in cluster.resources:
                known = cluster.resources
                raise InputError(unknown("resource in fair resource", self.resource, known))
            plan.share = cluster.resources.index(self.resource)


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
        plan.share = Share.DOMINANT
        queue_each(self.by, world, plan)


def queue_each(by: Literal["user", "queue"], world: World, plan: Plan) -> None:
    """Give each user, or each queue of the workload, a queue of its own, FIFO inside.

    Where the cluster has queues, it serves them by their use already, and one is enough.
    """
    columns = world.columns
    if by == "user":
        names, of_job = columns.user_names, columns.job_user
    elif world.cluster.queue_mode == "global":
        names, of_job = columns.queue_names, columns.job_queue
    else:
        plan.queues = Queues.make(1, order=Order.FIFO)
        return
    plan.queues = Queues.make(len(names), order=Order.FIFO)
    plan.set_jobs(queue=of_job)
