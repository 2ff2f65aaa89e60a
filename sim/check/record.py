"""A finished run as the checks of it need it: demands in quanta, waiting and running tasks."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask
from sim.check.domains import crossing
from sim.cluster.allowed import allowed_codes
from sim.cluster.components import Machines, gang_components, needs_at_once
from sim.cluster.flavors import Flavors, flavors_of
from sim.cluster.quotas import QuotaTree, quota_tree
from sim.cluster.sizing import queue_shares
from sim.cluster.speeds import class_speeds
from sim.engine.plan import Fit, Plan, World
from sim.engine.session import views_before
from sim.result import Result

SLACK = 1e-9
"""Relative tolerance of times and shares."""


class Record:
    """A result with task records, and what is derived of it once for all checks.

    Only the records of tasks are used, not the kernel's own state.

    Attributes
    ----------
    start, finish : (T,) float64
        Times of the tasks, s.
    machine : (T,) int32
        Machine of each task.
    demand : (T, R) float64
        Demand of each task, quanta.
    capacity : (M, R) float64
        Capacity of each machine, quanta.
    scale : (R,) float64
        Size of a quantum, in the resource's unit.
    overbooked : (R,) bool
        Resources that the policy may overbook.
    """

    start: F8
    finish: F8
    machine: I4

    def __init__(self, result: Result) -> None:
        """Raise ValueError if the result has no records of tasks."""
        if result.task_start is None or result.task_finish is None or result.task_machine is None:
            raise ValueError('the result has no records of tasks: simulate with record="tasks"')
        self.result = result
        c = self.c = result.allocated
        cluster = result.cluster
        self.start, self.finish = result.task_start, result.task_finish
        self.machine = result.task_machine
        self.task_stage = np.repeat(np.arange(len(c.stage_job)), np.diff(c.stage_task0))
        self.task_job = c.stage_job[self.task_stage]
        self.scale = np.ones(len(cluster.resources))
        if cluster.unit:
            demand = np.ones((len(c.stage_job), 1))
            self.capacity = cluster.capacity
        else:
            names = list(cluster.resources)
            demand = np.zeros((len(c.stage_job), len(names)))
            for i, name in enumerate(c.resources):
                demand[:, names.index(name)] = c.stage_demand[:, i]
                self.scale[names.index(name)] = c.quantum[i]
            self.capacity = np.floor(cluster.capacity / self.scale + 1e-6)
        self.stage_demand = demand
        self.demand = demand[self.task_stage]
        self.gang = c.job_min_tasks > 0
        plan = plan_of(result)
        self.overbooked = np.isin(cluster.resources, _may_be_overbooked(result, plan))
        is_fair = plan.fit == Fit.PACK and plan.packing.unfairness < np.inf
        self.holds_back = is_fair or (plan.fit == Fit.SKIP and plan.held_machines > 0)

    @cached_property
    def gang_needs(self) -> I8:
        """Return the room of all slots of each gang, (J, R) quanta."""
        demand, cluster = self.stage_demand.astype(np.int64), self.result.cluster
        components = None
        if not cluster.unit:
            code = cluster.machine_class if cluster.classes else np.zeros(len(self.capacity))
            machines = Machines(self.capacity.astype(np.int64), code.astype(np.int64))
            allowed = allowed_codes(self.c, cluster)
            components = gang_components(self.c, demand, allowed, machines)
        return needs_at_once(self.c, demand, components)

    @cached_property
    def duration(self) -> F8:
        """Duration of each task at the speed of its machine's class, (T,) s.

        Gangs run slower across domains; of one whose slots the records do not show, the time for
        which its tasks ran.
        """
        if not self.result.cluster.topology.slows:
            return self.c.task_duration / self._own_speed
        factor = crossing(self.result)[self.task_job]
        seconds: F8 = self.c.task_duration / (self._own_speed / factor)
        return np.where(np.isnan(factor), self.finish - self.start, seconds)

    @cached_property
    def work_done(self) -> F8:
        """Work of the last attempt of each task and that kept of those before, (T,) s at speed 1.

        More than its duration if it restarted, or lost what was kept, in between.
        """
        done: F8 = (self.finish - self.start) * self._own_speed
        stopped = self.result.stopped
        if stopped is not None:
            saved = stopped.kept_s * self._speed_on(stopped.task, stopped.machine)
            np.add.at(done, stopped.task, saved)
        return done

    @property
    def _own_speed(self) -> F8:
        return self._speed_on(np.arange(len(self.start)), self.machine)

    def _speed_on(self, task: I4 | I8, machine: I4) -> F8:
        """Return the speed of tasks on the classes of some machines."""
        speed = class_speeds(self.c, self.result.cluster)
        if speed is None:
            return np.ones(len(task))
        kind = self.result.cluster.machine_class[machine]
        own: F8 = speed[self.task_stage[task], kind]
        return own

    @cached_property
    def ready(self) -> F8:
        """Time at which each task is ready, (T,)."""
        c = self.c
        ready_s = c.job_submit[self.task_job].copy()
        for parent in range(len(c.stage_job)):
            p0, p1 = c.stage_task0[parent], c.stage_task0[parent + 1]
            for e in range(c.edge0[parent], c.edge0[parent + 1]):
                c0, c1 = c.stage_task0[c.edge_child[e] : c.edge_child[e] + 2]
                if c.edge_kind[e] == 0:
                    ready_s[c0:c1] = np.maximum(ready_s[c0:c1], self.finish[p0:p1].max())
                else:
                    n = min(p1 - p0, c1 - c0)
                    ready_s[c0 : c0 + n] = np.maximum(
                        ready_s[c0 : c0 + n], self.finish[p0 : p0 + n]
                    )
        return ready_s

    @cached_property
    def instants(self) -> F8:
        """All instants with an event, (I, 1)."""
        return np.unique(np.concatenate([self.start, self.finish, self.c.job_submit]))[:, None]

    @cached_property
    def running(self) -> Mask:
        """Mask of tasks that run after all events of an instant, (I, T)."""
        return (self.start <= self.instants) & (self.instants < self.finish)

    @cached_property
    def waiting(self) -> Mask:
        """Mask of ready tasks that have not started by an instant, (I, T)."""
        return (self.ready <= self.instants) & (self.instants < self.start)

    def used(self, where: Mask) -> F8:
        """Return the resources held by the tasks in `where` (T,) at each instant, (I, R)."""
        return (self.running * where) @ self.demand

    @cached_property
    def flavors(self) -> Flavors:
        """Columns of quotas: resources, or pairs of a resource and a flavor."""
        cluster, capacity = self.result.cluster, self.capacity.astype(np.int64)
        return flavors_of(
            cluster.quotas, cluster.resources, cluster.classes, cluster.machine_class, capacity
        )

    def column_on(self, machine: int) -> I8:
        """Return the column of the quotas in which each resource of a machine counts, (R,)."""
        sets = self.flavors.sets(self.result.cluster.machine_class, len(self.capacity))
        column: I8 = self.flavors.column[sets[machine]]
        return column

    @cached_property
    def queue_room(self) -> F8:
        """Room in the quota of each queue beyond its use, at each instant, (I, Q, K) quanta.

        By column of the quotas; of each resource where there are none. inf without hard shares or
        quotas; negative where it uses too much.
        """
        cluster, queue = self.result.cluster, self.c.job_queue[self.task_job]
        n_queues = len(self.c.queue_names)
        if cluster.queue_mode == "quota":
            total, flavors = self.capacity.sum(axis=0).astype(np.int64), self.flavors
            used = np.zeros((len(self.instants), n_queues, len(flavors.resource)))
            for machine in np.unique(self.machine[self.machine >= 0]).tolist():
                for q in range(n_queues):
                    amount = self.used((queue == q) & (self.machine == machine))
                    used[:, q, self.column_on(machine)] += amount
            tree = quota_tree(
                cluster.quotas, self.c.queue_names, cluster.resources, total, self.scale, flavors
            )
            return _available(tree, used)
        used = np.stack([self.used(queue == q) for q in range(n_queues)], axis=1)
        if cluster.queue_mode != "hard":
            return np.full(used.shape, np.inf)
        share = queue_shares(self.c, cluster)
        room: F8 = np.floor(np.outer(share, self.capacity.sum(axis=0)) + 1e-6) - used
        return room

    def allowed_tasks(self, machine: int) -> Mask:
        """Return the mask of tasks that may run on the machine's class, (T,) bool."""
        cluster = self.result.cluster
        code = int(cluster.machine_class[machine]) if cluster.classes else 0
        allowed: Mask = (allowed_codes(self.c, cluster) >> code & 1).astype(bool)
        return allowed[self.task_stage]

    def device_room(self, machine: int) -> Mask:
        """Return the mask of tasks that a machine's free devices hold, at each instant."""
        n, part = self.device_demand
        free = 1 - self.devices_used(machine)
        with_room: NDArray[np.int_] = (free[:, None, :] >= part[None, :, None] - SLACK).sum(axis=2)
        return with_room >= n

    @property
    def device_demand(self) -> tuple[NDArray[np.int_], F8]:
        """Number of devices that each task takes, and the part of each."""
        demand = self.c.stage_demand_f[self.task_stage]
        demand = demand[:, self.c.resources.index(self.result.cluster.devices)]
        return np.ceil(demand - SLACK).astype(int), np.minimum(demand, 1)

    def devices_used(self, machine: int) -> F8:
        """Return the used part of a machine's devices at each instant, (instants, devices)."""
        cluster = self.result.cluster
        n = int(cluster.capacity[machine, cluster.resources.index(cluster.devices)])
        devices = self.result.task_devices
        if devices is None:
            raise ValueError("the cluster has no devices")
        bits = devices[:, None] >> np.arange(n) & 1
        part = bits * (self.device_demand[1] * (self.machine == machine))[:, None]
        used: F8 = self.running.astype(float) @ part
        return used


def plan_of(result: Result) -> Plan:
    """Return the plan before the run."""
    c = result.allocated
    plan = Plan(len(c.job_submit), len(c.stage_job), len(c.task_duration))
    views = views_before(c, result.cluster)
    result.policy.begin(World(c, result.cluster, result.seed, views), plan)
    return plan


def _may_be_overbooked(result: Result, plan: Plan) -> list[str]:
    """Return the fungible resources that the result's policy does not check, or overbooks."""
    cluster = result.cluster
    if plan.fit == Fit.PACK and plan.packing.overbook:
        return list(cluster.fungible)
    checked = plan.fit_resources or cluster.resources
    return [name for name in cluster.fungible if name not in checked]


def _available(tree: QuotaTree, used: F8) -> F8:
    """Return what quotas let each queue use beyond `used`, (I, Q, K) quanta."""
    n_nodes = len(tree.parent)
    taken = np.zeros((len(used), n_nodes, used.shape[2]))
    taken[:, : used.shape[1]] = used
    for node, parent in enumerate(tree.parent):
        if parent >= 0:
            taken[:, parent] += np.maximum(taken[:, node] - tree.local[node], 0)
    room = np.empty_like(taken)
    for node in reversed(range(n_nodes)):
        parent, own = tree.parent[node], taken[:, node]
        room[:, node] = tree.limit[node] - own
        if parent >= 0:
            beyond = tree.limit[node] - np.maximum(own, tree.local[node])
            reserved = np.maximum(tree.local[node] - own, 0)
            room[:, node] = reserved + np.minimum(room[:, parent], beyond)
    return room[:, : used.shape[1]]
