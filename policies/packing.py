"""Multi-resource packing with little remaining work first (Tetris), and DAGPS's online baselines.

The baselines are Tez breadth first, by critical path, with Tetris and with dominant resource
fairness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from policies.base import FitName, Policy
from policies.estimates.by_duration import ByDuration, Knowledge
from policies.estimates.durations import Durations, Truth
from policies.estimates.paths import order_by_paths
from policies.estimates.stage_profiles import StageProfiles
from policies.knows import Knows
from policies.registry import register
from policies.sharing import queue_each
from sim.base.arrays import F8, I4, I8
from sim.base.parameters import Between
from sim.cluster.sizing import stage_shares
from sim.engine.plan import Event, Order, Plan, Queues, Share, World
from sim.engine.plan.queues import Packing
from sim.workload.columns import Columns, task_homes
from sim.workload.paths import stage_depth, stage_tail_s


@register("tetris")
@dataclass(frozen=True)
class Tetris(ByDuration):
    """Each machine takes the ready task of greatest alignment and least remaining work of its job.

    Grandl et al., *Multi-resource packing for cluster schedulers* (Tetris), SIGCOMM 2014, §3.2 to
    3.4: of the tasks that fit in all resources a machine takes the one of greatest a - ε · p.
    Alignment a is the dot product of the task's demand and the machine's free resources, both as
    fractions of the machine. Remaining work p is the sum over the job's unfinished tasks of their
    expected duration times the sum of their demands, as fractions of a machine. ε is m times the
    average a over the average p of the tasks that have started (`sim.engine.plan.queues`). Ties go
    first come, first served.

    Assumed here: averages are over the whole run, and a running task counts whole in remaining
    work. Left out: the fairness knob, which keeps a share of the jobs from competing, and the
    preference for the last tasks before a barrier. Durations are learnt by DAGPS's estimator
    (MSR-TR-2016-19, §7.1), from earlier runs of the template and finished tasks of the stage.

    Attributes
    ----------
    m : float
        Weight of remaining work, with scales normalised by averages; 0 packs by alignment alone.
    rp : float
        Factor of a task's alignment on a machine that it does not prefer: Tetris's remote penalty
        of 10 %. With 1 the places of inputs do not count.
    """

    fit: FitName = "pack"
    m: Annotated[float, Between(0, 1e6)] = 1.0
    rp: Annotated[float, Between(0, 1)] = 0.9
    knowledge: Knowledge = "history"

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Refinements, where an order of stages follows from them."""
        return super().events if self.m > 0 else Event.NONE

    @property
    def knows(self) -> Knows:
        """Durations of tasks, unless alignment alone decides."""
        return super().knows if self.m > 0 else Knows()

    @property
    def learns_from(self) -> tuple[str, ...]:
        """Nothing that must be there: without a history it learns from the run alone."""
        return ()

    def prepare(self, world: World, plan: Plan) -> object:
        """Weigh remaining work, and say which machines tasks prefer."""
        if self.rp < 1:
            plan.task_prefers = task_homes(world.columns, len(world.cluster.capacity))
        plan.packing = Packing(remaining=self.m, remote=self.rp)
        if self.m == 0:
            return None
        plan.set_stages(weight=stage_shares(world.columns, world.cluster).sum(axis=1))
        return super().prepare(world, plan)

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Expect the true mean duration of each stage."""
        stages = np.arange(len(world.columns.stage_job))
        plan.set_stages(expected_s=Truth(world.columns).expect(stages))

    def _estimator(self, columns: Columns) -> Durations:
        if self.knowledge == "declared":
            return super()._estimator(columns)
        recorded = self.knowledge == "history"
        return StageProfiles(columns, self.first_guess_s, recorded=recorded)


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

    fit: FitName = "skip"
    queues: Literal["queue", "none"] = "queue"

    def prepare(self, world: World, plan: Plan) -> object:
        """Key the stages by their depth, and give each queue its capacity."""
        self._order_stages(world, plan)
        plan.task_prefers = task_homes(world.columns, len(world.cluster.capacity))
        self._share(world, plan)
        return None

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
class TezCriticalPath(ByDuration, Tez):
    """The longest path first inside each job, over the capacity scheduler.

    DAGPS (MSR-TR-2016-19, §8.1).
    """

    fit: FitName = "skip"

    def prepare(self, world: World, plan: Plan) -> object:
        """Key the stages by their paths, and give each queue its capacity."""
        Tez.prepare(self, world, plan)
        return super().prepare(world, plan)

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Key each stage by its true path."""
        plan.set_stages(key=-stage_tail_s(world.columns))

    def order_by_estimates(self, world: World, plan: Plan, jobs: I4 | I8, work_s: F8) -> None:
        """Key the stages of `jobs` by their expected paths."""
        order_by_paths(world.columns, plan, jobs)


@register("tez_tetris")
@dataclass(frozen=True)
class TezTetris(Tetris, Tez):
    """Tetris inside each queue; on equal scores breadth first inside each job.

    DAGPS (MSR-TR-2016-19, §8.1). Tetris checks all resources and never overbooks. On a tie the
    task of least depth goes first. The queues keep their capacities.
    """

    def prepare(self, world: World, plan: Plan) -> object:
        """Give each queue its capacity, and weigh remaining work."""
        Tez.prepare(self, world, plan)
        return Tetris.prepare(self, world, plan)

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
