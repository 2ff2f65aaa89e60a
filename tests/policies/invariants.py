"""Invariants of runs under any policy; each check raises AssertionError.

The checks use task records only, not the kernel's own state.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

import sim
from sim.bounds import bound_arrays
from sim.cluster.sizing import queue_shares
from sim.engine.plan import Fit, Plan, World
from sim.result import Result
from tests.sim.bounds.makespan import makespan_bound

SLACK = 1e-9


class Run:
    """A result with shared inputs of the checks: demands in quanta, waiting and running tasks."""

    def __init__(self, result: Result) -> None:
        self.result = result
        c = self.c = result.workload.columns
        cluster = result.cluster
        self.start, self.finish = result.task_start, result.task_finish
        self.machine = result.task_machine
        self.task_stage = np.repeat(np.arange(len(c.stage_job)), np.diff(c.stage_task0))
        self.task_job = c.stage_job[self.task_stage]
        if cluster.unit:
            demand = np.ones((len(c.stage_job), 1))
            self.capacity = cluster.capacity
        else:
            names = list(cluster.resources)
            demand = np.zeros((len(c.stage_job), len(names)))
            scale = np.ones(len(names))
            for i, name in enumerate(c.resources):
                demand[:, names.index(name)] = c.stage_demand[:, i]
                scale[names.index(name)] = c.quantum[i]
            self.capacity = np.floor(cluster.capacity / scale + 1e-6)
        self.stage_demand = demand
        self.demand = demand[self.task_stage]
        self.gang = c.job_min_tasks > 0
        plan = plan_of(result)
        self.overbooked = np.isin(cluster.resources, _may_be_overbooked(result, plan))
        is_fair = plan.fit == Fit.PACK and plan.packing.unfairness < np.inf
        self.holds_back = is_fair or (plan.fit == Fit.SKIP and plan.held_machines > 0)

    @cached_property
    def ready(self) -> np.ndarray:
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
    def instants(self) -> np.ndarray:
        """All instants with an event, (I, 1)."""
        return np.unique(np.concatenate([self.start, self.finish, self.c.job_submit]))[:, None]

    @cached_property
    def running(self) -> np.ndarray:
        """Mask of tasks that run after all events of an instant, (I, T)."""
        return (self.start <= self.instants) & (self.instants < self.finish)

    @cached_property
    def waiting(self) -> np.ndarray:
        """Mask of ready tasks that have not started by an instant, (I, T)."""
        return (self.ready <= self.instants) & (self.instants < self.start)

    def used(self, where: np.ndarray) -> np.ndarray:
        """Return the resources held by the tasks in `where` (T,) at each instant, (I, R)."""
        return (self.running * where) @ self.demand

    def caps(self) -> np.ndarray:
        """Return each queue's limit on resources, (Q, R); inf without hard shares."""
        if self.result.cluster.queue_mode != "hard":
            return np.full((len(self.c.queue_names), self.demand.shape[1]), np.inf)
        share = queue_shares(self.c, self.result.cluster)
        return np.floor(np.outer(share, self.capacity.sum(axis=0)) + 1e-6)

    def allowed_tasks(self, machine: int) -> np.ndarray:
        """Return the mask of tasks that may run on the machine's class, (T,) bool."""
        cluster = self.result.cluster
        machine_class = cluster.classes[cluster.machine_class[machine]] if cluster.classes else ""
        allowed = np.array(
            [text == "" or machine_class in text.split("|") for text in self.c.runs_on]
        )
        return allowed[self.c.stage_runs_on[self.task_stage]]

    def device_room(self, machine: int) -> np.ndarray:
        """Return the mask of tasks that a machine's free devices hold, at each instant."""
        n, part = self.device_demand
        free = 1 - self.devices_used(machine)
        with_room = (free[:, None, :] >= part[None, :, None] - SLACK).sum(axis=2)
        return with_room >= n

    @property
    def device_demand(self) -> tuple[np.ndarray, np.ndarray]:
        """Number of devices that each task takes, and the part of each."""
        demand = self.c.stage_demand_f[self.task_stage]
        demand = demand[:, self.c.resources.index(self.result.cluster.devices)]
        return np.ceil(demand - SLACK).astype(int), np.minimum(demand, 1)

    def devices_used(self, machine: int) -> np.ndarray:
        """Return the used part of a machine's devices at each instant, (instants, devices)."""
        cluster = self.result.cluster
        n = int(cluster.capacity[machine, cluster.resources.index(cluster.devices)])
        bits = self.result.task_devices[:, None] >> np.arange(n) & 1
        part = bits * (self.device_demand[1] * (self.machine == machine))[:, None]
        return self.running.astype(float) @ part


def check(result: Result, fit: str) -> None:
    """Run every check on a result with task records, under a policy with that `fit`."""
    run = Run(result)
    check_every_job_ends(run)
    check_tasks_run_their_duration(run)
    check_pace(run)
    check_inputs_come_first(run)
    check_capacity(run)
    check_hard_shares(run)
    check_gangs(run)
    check_bounds(run)
    check_classes(run)
    if result.cluster.devices:
        check_devices(run)
    if not run.gang.any() and type(result.policy).conserves_work:
        check_work_is_conserved(run, fit)


def check_every_job_ends(run: Run) -> None:
    result = run.result
    assert not result.job_failed.any()
    assert np.isfinite(run.finish).all()
    task0 = run.c.stage_task0[run.c.job_stage0[:-1]]
    np.testing.assert_array_equal(result.job_start, np.minimum.reduceat(run.start, task0))
    np.testing.assert_array_equal(result.job_finish, np.maximum.reduceat(run.finish, task0))
    assert set(result.jobs["outcome"].to_pylist()) == {"done"}


def check_tasks_run_their_duration(run: Run) -> None:
    if run.overbooked.any():
        assert (run.finish - run.start >= run.c.task_duration * (1 - SLACK) - SLACK).all()
    else:
        np.testing.assert_array_equal(run.finish, run.start + run.c.task_duration)


def check_pace(run: Run) -> None:
    """Assert that a task's speed is the minimum of capacity over total demand of its resources."""
    if not run.overbooked.any() or run.gang.any():
        return
    rate = np.ones(run.running.shape)
    for machine, capacity in enumerate(run.capacity):
        on_machine = run.machine == machine
        share = np.minimum(1, np.maximum(capacity, 1) / np.maximum(run.used(on_machine), 1))
        for r in np.flatnonzero(run.overbooked):
            demanding = on_machine & (run.demand[:, r] > 0)
            rate[:, demanding] = np.minimum(rate[:, demanding], share[:, r, None])
    lasts = np.diff(run.instants[:, 0], append=run.instants[-1, 0])
    work = (rate * run.running * lasts[:, None]).sum(axis=0)
    np.testing.assert_allclose(work, run.c.task_duration, rtol=1e-6, atol=1e-6)


def check_inputs_come_first(run: Run) -> None:
    assert (run.start >= run.c.job_submit[run.task_job]).all()
    assert (run.start >= run.ready).all()


def check_capacity(run: Run) -> None:
    for machine, capacity in enumerate(run.capacity):
        over = run.used(run.machine == machine) > capacity
        assert not over[:, ~run.overbooked].any(), machine
    assert ((run.machine >= 0) & (run.machine < len(run.capacity))).all()


def check_classes(run: Run) -> None:
    for machine in range(len(run.capacity)):
        assert run.allowed_tasks(machine)[run.machine == machine].all(), machine


def check_devices(run: Run) -> None:
    """Assert that each task holds its devices, and that no device is overcommitted."""
    bits = [int(b).bit_count() for b in run.result.task_devices]
    assert bits == run.device_demand[0].tolist()
    for machine in range(len(run.capacity)):
        assert (run.devices_used(machine) <= 1 + SLACK).all(), machine


def check_hard_shares(run: Run) -> None:
    queue = run.c.job_queue[run.task_job]
    for q, cap in enumerate(run.caps()):
        assert (run.used(queue == q) <= cap)[:, ~run.overbooked].all(), run.c.queue_names[q]


def check_gangs(run: Run) -> None:
    """Assert that a gang's first tasks start together, and that it holds its slots to its end."""
    c, result = run.c, run.result
    if not run.gang.any():
        return
    waits = c.stage_n_barrier + c.stage_n_o2o
    source = (waits == 0)[run.task_stage]
    at_start = run.start == result.job_start[run.task_job]
    slot = np.maximum.reduceat(run.stage_demand, c.job_stage0[:-1], axis=0)
    reserved = np.zeros((len(run.instants), run.demand.shape[1]))
    for j in np.flatnonzero(run.gang):
        tasks = run.task_job == j
        assert (at_start & tasks).sum() >= min(c.job_min_tasks[j], (source & tasks).sum())
        alive = (result.job_start[j] <= run.instants) & (run.instants < result.job_finish[j])
        reserved += alive * c.job_min_tasks[j] * slot[j]
    used = run.used(~run.gang[run.task_job])
    assert (reserved + used <= run.capacity.sum(axis=0))[:, ~run.overbooked].all()


def check_bounds(run: Run) -> None:
    result, c = run.result, run.c
    jct = result.job_finish - c.job_submit
    for name, bound in bound_arrays(c, result.cluster, tight=True).items():
        assert (jct >= bound - SLACK * (1 + result.job_finish)).all(), name
    makespan = result.job_finish.max() - c.job_submit[0]
    assert makespan >= makespan_bound(result.workload, result.cluster) * (1 - SLACK)


def check_work_is_conserved(run: Run, fit: str) -> None:
    """Assert that no resources are idle while a task that fits waits.

    If tasks that do not fit are skipped: no waiting task fits anywhere. In strict order: if tasks
    of a queue wait, one of them (its head) fits nowhere. With bounded unfairness or held machines:
    a machine that a waiting task fits may be reserved for one that it does not fit.
    """
    c = run.c
    n_queues, shared = len(c.queue_names), run.result.cluster.queue_mode == "global"
    queue = np.zeros(len(c.job_queue), int) if shared else c.job_queue
    free = [cap - run.used(run.machine == m) for m, cap in enumerate(run.capacity)]
    fits_on = [(run.demand[None] <= np.maximum(room, 0)[:, None]).all(axis=2) for room in free]
    if run.result.cluster.devices:
        fits_on = [
            fits_machine & run.allowed_tasks(m) & run.device_room(m)
            for m, fits_machine in enumerate(fits_on)
        ]
    if run.holds_back:
        fits_on = [
            fits_machine & ~(run.waiting & ~fits_machine).any(axis=1)[:, None]
            for fits_machine in fits_on
        ]
    fits = np.any(fits_on, axis=0)
    if not shared:
        queue_room = np.stack(
            [cap - run.used(queue[run.task_job] == q) for q, cap in enumerate(run.caps())], axis=1
        )
        fits &= (run.demand[None] <= queue_room[:, queue[run.task_job]]).all(axis=2)
    if fit != "strict":
        assert not (run.waiting & fits).any()
        return
    for q in range(1 if shared else n_queues):
        waits = run.waiting & (queue[run.task_job] == q)
        stuck = (waits & ~fits).any(axis=1)
        assert (stuck | ~waits.any(axis=1)).all()


def plan_of(result: Result) -> Plan:
    """Return the plan before the run."""
    c = result.workload.columns
    plan = Plan(len(c.job_submit), len(c.stage_job), len(c.task_duration))
    result.policy.begin(World(c, result.cluster, result.seed, {}), plan)
    return plan


def _may_be_overbooked(result: Result, plan: Plan) -> list[str]:
    """Return the fungible resources that the result's policy does not check, or overbooks."""
    cluster = result.cluster
    if plan.fit == Fit.PACK and plan.packing.overbook:
        return list(cluster.fungible)
    checked = plan.fit_resources or cluster.resources
    return [name for name in cluster.fungible if name not in checked]


def same_bits(a: sim.Result, b: sim.Result) -> None:
    """Assert that two runs are equal, as far as both have records."""
    np.testing.assert_array_equal(a.job_start, b.job_start)
    np.testing.assert_array_equal(a.job_finish, b.job_finish)
    if a.task_start is not None and b.task_start is not None:
        np.testing.assert_array_equal(a.task_start, b.task_start)
        np.testing.assert_array_equal(a.task_machine, b.task_machine)
        assert a.metrics.keys() == b.metrics.keys()
        np.testing.assert_array_equal(list(a.metrics.values()), list(b.metrics.values()))
