"""DAGPS, the online half (§5): many DAGs on the machines of one cluster.

Symbols of the paper: m weighs remaining work, rp is the remote penalty, κ bounds unfairness,
priScore is a task's position in the offline order, perfScore the score that machines maximise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from policies.base import FitName, Policy, check_ranges
from policies.dagps.build_schedule import MAX_CANDIDATES, Candidates, build_schedule
from policies.dagps.offline_order import (
    OrdersAtArrival,
    best_list_order,
    offline_order,
    row_priority,
)
from policies.estimates.durations import Truth
from policies.estimates.learnt import learn_durations
from policies.estimates.stage_profiles import StageProfiles
from policies.knows import Knows
from policies.registry import register
from policies.sharing import queue_each
from sim.base import maths
from sim.base.arrays import F8, I8, ranges
from sim.base.parameters import Between, Count, Share
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import machine_capacity, stage_demands, stage_shares
from sim.engine.allocation import allocated
from sim.engine.plan import Batch, Event, Plan, World
from sim.engine.plan.queues import MAX_BUNDLE, Packing
from sim.workload.columns import Columns, task_homes
from sim.workload.paths import stage_depth
from sim.workload.workload import Workload

NO_BOUND = 1e300
"""A finite bound that no deficit reaches, so that groups compete by score."""


@register("dagps")
@dataclass(frozen=True)
class Dagps(Policy):
    """Each machine takes the tasks of highest perfScore, with bounded unfairness between groups.

    Grandl et al., *Do the hard stuff first: scheduling dependent computations in data-analytics
    clusters* (DAGPS, Graphene), MSR-TR-2016-19, §5 and Fig. 8, §7. A task's score is its position
    in its job's offline order (`policies.dagps.build_schedule`) times its packing score on the
    machine, less a weight times its job's remaining work. `sim.engine.plan.queues` defines the
    score, with bundling, overbooking and deficit counters. Remaining work is the L1 norm of
    demands, as fractions of a machine, times the expected duration of tasks. Demands are known,
    because a task's container states them; durations are profiles, one a stage (§7.1, §8.2.1).
    With a `fit` other than "pack" jobs go first come, first served, and the offline order holds
    inside each.

    A workload of a single job has no other job to weigh it against: unless an option says how to
    place tasks, the job follows its best list instead of scores (`candidates`).

    Attributes
    ----------
    m : float
        Weight of remaining work against the other scores, with scales normalised by averages; the
        paper recommends 0.2, within a range from 0.1 to 0.3 (§8.5).
    order_weight : float
        Weight of the offline order against tasks of other jobs: priority is
        1 - order_weight · (1 - priScore). 1 is the paper's; with 0 no schedule is built, and jobs
        go breadth first.
    priority : {"remaining", "printed"}
        Base of priScore. "remaining": the job's remaining tasks; the score is the number of its
        tasks after this one in the offline order, over the number of others that have not started,
        at most 1 (the master of a job keeps reporting its pending work and preferred order, §7,
        Fig. 4). "printed": a fixed score from 1 for the first task of the job to 0 for its last
        (§5), which lets new jobs overtake those about to end
        (policies/dagps/decisions/0013-what-is-left.md).
    srpt : {"pending", "unfinished"}
        Tasks in a job's remaining work: those that have not started, as printed, or running ones,
        too.
    rp : float
        Remote penalty: factor of a task's score on a machine that it does not prefer (§8.5).
    kappa : float
        Bound on unfairness between groups, as a fraction of the cluster; inf for no bound. The
        paper gives no value.
    fairness : {"slots", "drf"}
        Unit of fairness between groups: running tasks or dominant shares.
    groups : {"queue", "user"}
        Groups that share fairly: the workload's queues (the cluster's, if it has any) or its users.
    bundle : int
        Number of best tasks that fit a machine, among which it takes the best set (§7.2).
    overbook : bool
        Overbook fungible resources where the gain exceeds the cost.
    max_candidates : int
        Maximum number of sets of troublesome tasks that the offline half tries for each part of a
        DAG.
    candidates : {"more", "paper"}
        Schedules that the offline half tries. "paper": the paper's alone, without overbooking.
        "more": also schedules that share fungible resources, and list schedules (beyond the
        paper). Then the only job of a workload follows the best list task by task, with fungible
        resources shared if that list shares them, unless `order_weight` is below 1 or `fit` or
        `fit_resources` say how to place tasks.
    knowledge : {"history", "run", "true"}
        Source of expected task durations: runs of the template that have finished, with those that
        the workload records (``training``, ``history``) or without, refined by finished tasks of
        the stage itself; or the true mean of each stage.
    order_from : {"knowledge", "true"}
        Durations that a job's offline order is built from: those of `knowledge`, when the job
        arrives (`policies.dagps.offline_order.OrdersAtArrival`); or the true stage means of the
        template's first job, before it has run.
    refresh_s : float
        Time between refinements, s.
    first_guess_s : float
        Expected task duration before any stage has finished, s.
    prior_tasks : float
        Number of a stage's own finished tasks that weigh as much as its earlier runs.
    """

    fit: FitName = "pack"
    m: Annotated[float, Between(0, 1e6)] = 0.3
    order_weight: Share = 1.0
    priority: Literal["remaining", "printed"] = "remaining"
    srpt: Literal["pending", "unfinished"] = "pending"
    rp: Share = 0.8
    kappa: float = 0.1
    fairness: Literal["slots", "drf"] = "slots"
    groups: Literal["queue", "user"] = "queue"
    bundle: Annotated[int, Between(1, MAX_BUNDLE)] = 16
    overbook: bool = True
    max_candidates: Count = MAX_CANDIDATES
    candidates: Candidates = "more"
    knowledge: Literal["history", "run", "true"] = "history"
    order_from: Literal["knowledge", "true"] = "knowledge"
    refresh_s: float = 10.0
    first_guess_s: Annotated[float, Between(1e-9, 1e12)] = 30.0
    prior_tasks: Annotated[float, Between(1e-9, 1e12)] = 5.0

    events = Event.JOB_ARRIVED

    def __post_init__(self) -> None:
        check_ranges(self, kappa=(0, np.inf), refresh_s=(1e-3, np.inf))

    @property
    def knows(self) -> Knows:
        """Mean durations of stages: learnt, unless expectations or the offline order are true."""
        is_true = self.knowledge == "true" or (self.order_weight > 0 and self.order_from == "true")
        return Knows(durations="true" if is_true else "learnt")

    def prepare(self, world: World, plan: Plan) -> _RunState | None:
        """Order tasks by known durations, weigh the stages, and set up the groups."""
        columns, cluster = world.columns, world.cluster
        profiles = StageProfiles(columns, self.first_guess_s, recorded=self.knowledge == "history")
        if self.knowledge == "true":
            plan.set_stages(expected_s=Truth(columns).expect(np.arange(len(columns.stage_job))))
        else:
            learn_durations(profiles, plan, self.prior_tasks, self.refresh_s)
        follows_list = self._follows_list(columns)
        rebased = self.priority == "remaining" and not follows_list
        orders = None
        if follows_list:
            self._follow_list(world, plan)
        elif self.order_weight == 0:
            plan.set_stages(key=stage_depth(columns))
        else:
            orders = self._order(world, plan)
        plan.task_prefers = task_homes(columns, len(cluster.capacity))
        queue_each(self.groups, world, plan)
        share = stage_shares(columns, cluster)
        dominant = np.maximum(share.max(axis=1), 1e-9)
        by_slots = self.fairness == "slots"
        plan.set_stages(weight=share.sum(axis=1), cost=1.0 if by_slots else dominant)
        size = (
            _n_average_tasks(world)
            if by_slots
            else float(cluster.total[0] / machine_capacity(cluster)[0])
        )
        plan.packing = Packing(
            remaining=self.m,
            order=self.order_weight,
            rebased=rebased,
            pending=self.srpt == "pending",
            remote=self.rp,
            bundle=self.bundle,
            overbook=self.overbook,
            unfairness=min(self.kappa * size, NO_BOUND),
        )
        if follows_list:
            plan.packing = Packing(aligned=False, remote=self.rp)
        if orders is None:
            plan.events = Event.NONE
            return None
        return _RunState(profiles, orders)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Order the tasks of new jobs."""
        assert isinstance(memory, _RunState)
        profiles, orders = memory.profiles, memory.orders
        for job in batch.row[~orders.in_order[batch.row]].tolist():
            stages, tasks = orders.rows(job)
            order = orders.order(job, profiles.expect(stages), profiles.n_runs(stages))
            score = self._scores(order.pri_score, len(order.pri_score))
            plan.set_tasks(tasks, order=order.task_order, priority=score)
            plan.set_stages(stages, jobs=[job], key=1 - order.stage_pri)

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return the makespan of the one job's offline schedule, its tasks' durations known, s.

        As in the paper's simulations (§8.3); runs on a cluster have one profile a stage (§8.2.1).
        """
        own = allocated(workload, cluster, self)
        return build_schedule(
            own, cluster, max_candidates=self.max_candidates, candidates=self.candidates
        ).makespan_s

    def _follows_list(self, columns: Columns) -> bool:
        """Return True if tasks follow a list alone."""
        is_alone = len(columns.job_submit) == 1
        is_free = self.fit == "pack" and not self.fit_resources and self.order_weight == 1
        return is_alone and is_free and self.candidates == "more"

    def _follow_list(self, world: World, plan: Plan) -> None:
        """Let the only job follow the best list by its expected or true durations."""
        columns = world.columns
        expected_s = plan.stages["expected_s"]
        if self.order_from == "true":
            expected_s = Truth(columns).expect(np.arange(len(expected_s)))
        duration = np.repeat(expected_s, columns.stage_n_tasks)
        order, plan.fit_resources = best_list_order(
            columns, world.cluster, duration, self.max_candidates, self.overbook
        )
        plan.task_order, plan.task_priority = order.task_order, order.pri_score
        plan.set_stages(key=1 - order.stage_pri)

    def _order(self, world: World, plan: Plan) -> OrdersAtArrival | None:
        """Order the tasks of all jobs by true durations, or leave it until the jobs arrive."""
        columns, cluster = world.columns, world.cluster
        if "true" not in (self.knowledge, self.order_from):
            return self._order_by_rows(world, plan)
        order = offline_order(columns, cluster, self.max_candidates, self.candidates)
        n_tasks = np.diff(columns.stage_task0[columns.job_stage0])
        plan.task_order = order.task_order
        plan.task_priority = self._scores(order.pri_score, np.repeat(n_tasks, n_tasks))
        plan.set_stages(key=1 - order.stage_pri)
        return None

    def _order_by_rows(self, world: World, plan: Plan) -> OrdersAtArrival | None:
        """Order tasks by row: for good where rows are in order, else until the job arrives."""
        columns = world.columns
        orders = OrdersAtArrival(columns, world.cluster, self.max_candidates, self.candidates)
        n_tasks = np.diff(columns.stage_task0)
        plan.task_order = ranges(np.zeros_like(n_tasks), n_tasks).astype(np.int32)
        pri_score, size = row_priority(columns), np.diff(columns.stage_task0[columns.job_stage0])
        plan.task_priority = self._scores(pri_score, np.repeat(size, size))
        plan.set_stages(key=1 - pri_score[columns.stage_task0[:-1]])
        return None if orders.in_order.all() else orders

    def _scores(self, pri_score: F8, n_tasks: I8 | int) -> F8:
        """Return priScore, or the number of tasks of its job, of `n_tasks`, after each task."""
        if self.priority == "printed":
            return pri_score
        after: F8 = np.rint(pri_score * (n_tasks - 1))
        return after


@dataclass(frozen=True)
class _RunState:
    """State of a run: durations learnt so far, and the orders of jobs that arrive."""

    profiles: StageProfiles
    orders: OrdersAtArrival


def _n_average_tasks(world: World) -> float:
    """Count the average tasks of the workload that the cluster holds at once."""
    columns, cluster = world.columns, world.cluster
    if cluster.unit:
        return float(cluster.total[0])
    n_tasks = np.diff(columns.stage_task0)
    mean = maths.dot(n_tasks, stage_demands(columns, cluster)) / n_tasks.sum()
    demanded = mean > 0
    if not demanded.any():
        return float(n_tasks.sum())
    return max(1.0, float((cluster.capacity[:, demanded] / mean[demanded]).min(axis=1).sum()))
