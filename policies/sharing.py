"""Fair sharing between users or queues, FIFO inside each: fair, drf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.base.errors import InputError, unknown
from sim.engine.plan import Order, Plan, Queues, Share, World


@register("fair")
@dataclass(frozen=True)
class Fair(Policy):
    """Free resources go to the queue with the least usage over its weight; FIFO inside a queue.

    Weighted max-min fairness (Bertsekas and Gallager, *Data networks*, 1992, §6.5.2) as the fair
    schedulers of Hadoop and Spark apply it, task by task. Usage is counted in slots, in one
    resource, or in the dominant share where `resource` is left empty. Spark's own rule
    (``org.apache.spark.scheduler.FairSchedulingAlgorithm``, 3.5) is this one with ``ties="name"``,
    a queue being a pool; its minimum shares are not modelled.

    Attributes
    ----------
    weights : mapping of str to float
        Weight of each queue of the workload, 1 by default. Leave it empty for a cluster that
        shares between queues itself (weighted, or within hard shares): its own weights count.
    resource : str
        Resource that usage is counted in, e.g. ``cpu``; empty for the dominant one.
    ties : {"first", "name"}
        Of queues with equal usage over weight, the one that is first: in the workload's jobs, or by
        name. Only where the policy has queues of its own.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    resource: str = ""
    ties: Literal["first", "name"] = "first"

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
                    f"policy fair: the cluster has {cluster.queue_mode} queues with weights of "
                    "their own; set weights in the cluster's queue shares, and leave the policy's "
                    "weights empty"
                )
            plan.queues = Queues.make(1, order=Order.FIFO)
        else:
            for name in self.weights:
                if name not in columns.queue_names:
                    raise InputError(unknown("queue in fair weights", name, columns.queue_names))
            names = list(columns.queue_names)
            order = sorted(names) if self.ties == "name" else names
            weight = [self.weights.get(name, 1.0) for name in order]
            plan.queues = Queues.make(len(weight), weight=weight, order=Order.FIFO)
            position = {name: i for i, name in enumerate(order)}
            plan.set_jobs(queue=np.array([position[name] for name in names])[columns.job_queue])
        if self.resource:
            if self.resource not in cluster.resources:
                resources = cluster.resources
                raise InputError(unknown("resource in fair resource", self.resource, resources))
            plan.share = cluster.resources.index(self.resource)


@register("drf")
@dataclass(frozen=True)
class DominantResourceFairness(Policy):
    """Free resources go to the user with the least dominant share; FIFO among a user's jobs.

    Ghodsi et al., *Dominant resource fairness: fair allocation of multiple resource types*, NSDI
    2011, Algorithm 1. A user's dominant share is the maximum over resources of the user's share of
    the cluster's capacity.

    Attributes
    ----------
    by : {"user", "queue"}
        Groups that share fairly: users, or queues.
    """

    by: Literal["user", "queue"] = "user"

    def prepare(self, world: World, plan: Plan) -> None:
        """Give each user (or queue) a queue of its own."""
        plan.share = Share.DOMINANT
        queue_each(self.by, world, plan)


def queue_each(by: Literal["user", "queue"], world: World, plan: Plan) -> None:
    """Give each user, or each queue of the workload, a queue of its own, FIFO inside.

    A cluster with queues shares between them itself, and then one queue is enough.
    """
    columns = world.columns
    if by == "user":
        names, job_queue = columns.user_names, columns.job_user
    elif world.cluster.queue_mode == "global":
        names, job_queue = columns.queue_names, columns.job_queue
    else:
        plan.queues = Queues.make(1, order=Order.FIFO)
        return
    plan.queues = Queues.make(len(names), order=Order.FIFO)
    plan.set_jobs(queue=job_queue)
