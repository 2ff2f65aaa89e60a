"""Multi-resource packing (tetris), and DAGPS's online baselines (tez, tez_cp, ...)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.base import Policy
from policies.knows import Knows
from policies.registry import register
from policies.sharing import queue_each
from sim.engine.plan import Order, Plan, Queues, Share, World
from sim.workload.columns import task_homes
from sim.workload.paths import stage_depth, stage_tail_s


@register("tetris")
@dataclass(frozen=True)
class Tetris(Policy):
    """Each machine takes the ready task that fits with the greatest alignment.

    Grandl et al., *Multi-resource packing for cluster schedulers* (Tetris), SIGCOMM 2014, §3.2:
    alignment is the dot product of the task's demand and the machine's free resources, both as
    fractions of the machine. Ties go first come, first served. Tetris's second half, a preference
    for jobs of little remaining work, is left to policies that combine the two.
    """

    fit: Literal["strict", "skip", "pack"] = "pack"


@register("tez")
@dataclass(frozen=True)
class Tez(Policy):
    """Breadth first inside each job, over the capacity scheduler.

    DAGPS (MSR-TR-2016-19, §8.1): Tez orders the tasks of a job breadth first. YARN's capacity
    scheduler serves the queue with the least usage of its capacity, is work conserving, and goes
    first come, first served inside each queue. It checks cores and memory alone: unless
    `fit_resources` says otherwise, fungible resources are not checked.

    Attributes
    ----------
    queues : {"queue", "none"}
        Queues on a cluster that defines none: the workload's, with equal capacities, or a single
        one.
    """

    fit: Literal["strict", "skip", "pack"] = "skip"
    queues: Literal["queue", "none"] = "queue"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key the stages by their depth, and give each queue its capacity."""
        self._order_stages(world, plan)
        plan.task_prefers = task_homes(world.columns, len(world.cluster.capacity))
        self._share(world, plan)

    def _order_stages(self, world: World, plan: Plan) -> None:
        plan.set_stages(key=stage_depth(world.columns))
        cluster = world.cluster
        if not self.fit_resources and not cluster.unit:
            rigid = [name for name in cluster.resources if name not in cluster.fungible]
            plan.fit_resources = tuple(rigid)

    def _share(self, world: World, plan: Plan) -> None:
        plan.share = Share.DOMINANT
        if self.queues == "queue":
            queue_each("queue", world, plan)
        else:
            plan.queues = Queues.make(1, order=Order.FIFO)


@register("tez_cp")
@dataclass(frozen=True)
class TezCriticalPath(Tez):
    """The longest path first inside each job, over the capacity scheduler.

    DAGPS (MSR-TR-2016-19, §8.1).
    """

    @property
    def knows(self) -> Knows:
        """True durations."""
        return Knows(durations="true")

    def _order_stages(self, world: World, plan: Plan) -> None:
        super()._order_stages(world, plan)
        plan.set_stages(key=-stage_tail_s(world.columns))


@register("tez_tetris")
@dataclass(frozen=True)
class TezTetris(Tez):
    """Tetris packing; on equal alignment breadth first inside each job.

    DAGPS (MSR-TR-2016-19, §8.1). Tetris checks all resources and never overbooks. On a tie the
    task of least depth goes first. The queues keep their capacities.
    """

    fit: Literal["strict", "skip", "pack"] = "pack"

    def _order_stages(self, world: World, plan: Plan) -> None:
        plan.set_stages(key=stage_depth(world.columns))


@register("tez_drf")
@dataclass(frozen=True)
class TezDominantResourceFairness(Tez):
    """Breadth first inside each job; the job of least dominant share goes first in its queue.

    Tez over dominant resource fairness (DAGPS, MSR-TR-2016-19, §8.2.3, Table 4), both between
    queues and between the jobs of each queue.
    """

    def _share(self, world: World, plan: Plan) -> None:
        super()._share(world, plan)
        plan.queues = Queues.make(len(plan.queues.weight), order=Order.SHARE)
