"""What holds of every run, whatever the policy; each check raises AssertionError.

The checks look at task records only, not at how the kernel keeps its books.
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
    """A result with what the checks share: demands in quanta, and who waits and runs when."""

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
        plan = _plan(result)
        self.loose = np.isin(cluster.resources, _may_be_overbooked(result, plan))
        self.holds_back = plan.fit == Fit.PACK and plan.packing.unfairness < np.inf

    @cached_property
    def ready(self) -> np.ndarray:
        """When each task's inputs are all there, (T,)."""
        c = self.c
        at = c.job_submit[self.task_job].copy()
        for parent in range(len(c.stage_job)):
            p0, p1 = c.stage_task0[parent], c.stage_task0[parent + 1]
            for e in range(c.edge0[parent], c.edge0[parent + 1]):
                c0, c1 = c.stage_task0[c.edge_child[e] : c.edge_child[e] + 2]
                if c.edge_kind[e] == 0:
                    at[c0:c1] = np.maximum(at[c0:c1], self.finish[p0:p1].max())
                else:
                    n = min(p1 - p0, c1 - c0)
                    at[c0 : c0 + n] = np.maximum(at[c0 : c0 + n], self.finish[p0 : p0 + n])
        return at

    @cached_property
    def instants(self) -> np.ndarray:
        """All instants at which something happens, (I, 1)."""
        return np.unique(np.concatenate([self.start, self.finish, self.c.job_submit]))[:, None]

    @cached_property
    def running(self) -> np.ndarray:
        """Which tasks run once all of an instant has happened, (I, T)."""
        return (self.start <= self.instants) & (self.instants < self.finish)

    @cached_property
    def waiting(self) -> np.ndarray:
        """Which tasks could have started by then and have not, (I, T)."""
        return (self.ready <= self.instants) & (self.instants < self.start)

    def used(self, where: np.ndarray) -> np.ndarray:
        """What the tasks that are `where` (T,) hold at each instant, (I, R)."""
        return (self.running * where) @ self.demand

    def caps(self) -> np.ndarray:
        """What the jobs of each queue may use in all, (Q, R); inf where nothing is hard."""
        if self.result.cluster.queue_mode != "hard":
            return np.full((len(self.c.queue_names), self.demand.shape[1]), np.inf)
        share = queue_shares(self.c, self.result.cluster)
        return np.floor(np.outer(share, self.capacity.sum(axis=0)) + 1e-6)

    def may_run(self, machine: int) -> np.ndarray:
        """Which tasks ask for the class of the machine, or for none: (T,) bool."""
        cluster = self.result.cluster
        of = cluster.classes[cluster.machine_class[machine]] if cluster.classes else ""
        allowed = np.array([text == "" or of in text.split("|") for text in self.c.runs_on])
        return allowed[self.c.stage_runs_on[self.task_stage]]

    def device_room(self, machine: int) -> np.ndarray:
        """Whether a machine's devices have room for each task, at each instant."""
        n, part = self.of_devices
        free = 1 - self.devices_held(machine)
        with_room = (free[:, None, :] >= part[None, :, None] - SLACK).sum(axis=2)
        return with_room >= n

    @property
    def of_devices(self) -> tuple[np.ndarray, np.ndarray]:
        """How many devices each task takes, and what part of each."""
        wanted = self.c.stage_demand_f[self.task_stage]
        wanted = wanted[:, self.c.resources.index(self.result.cluster.devices)]
        return np.ceil(wanted - SLACK).astype(int), np.minimum(wanted, 1)

    def devices_held(self, machine: int) -> np.ndarray:
        """What of each device of a machine is taken at each instant, (instants, devices)."""
        cluster = self.result.cluster
        n = int(cluster.capacity[machine, cluster.resources.index(cluster.devices)])
        bits = self.result.task_devices[:, None] >> np.arange(n) & 1
        held = bits * (self.of_devices[1] * (self.machine == machine))[:, None]
        return self.running.astype(float) @ held


def check(result: Result, fit: str) -> None:
    """Run every check on a result with task records, made under a policy of that fit."""
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
    if run.loose.any():
        assert (run.finish - run.start >= run.c.task_duration * (1 - SLACK) - SLACK).all()
    else:
        np.testing.assert_array_equal(run.finish, run.start + run.c.task_duration)


def check_pace(run: Run) -> None:
    """A task goes at the least, over the resources it demands, of capacity over demanded."""
    if not run.loose.any() or run.gang.any():
        return
    rate = np.ones(run.running.shape)
    for machine, capacity in enumerate(run.capacity):
        here = run.machine == machine
        share = np.minimum(1, np.maximum(capacity, 1) / np.maximum(run.used(here), 1))
        for r in np.flatnonzero(run.loose):
            mine = here & (run.demand[:, r] > 0)
            rate[:, mine] = np.minimum(rate[:, mine], share[:, r, None])
    lasts = np.diff(run.instants[:, 0], append=run.instants[-1, 0])
    got = (rate * run.running * lasts[:, None]).sum(axis=0)
    np.testing.assert_allclose(got, run.c.task_duration, rtol=1e-6, atol=1e-6)


def check_inputs_come_first(run: Run) -> None:
    assert (run.start >= run.c.job_submit[run.task_job]).all()
    assert (run.start >= run.ready).all()


def check_capacity(run: Run) -> None:
    for machine, capacity in enumerate(run.capacity):
        over = run.used(run.machine == machine) > capacity
        assert not over[:, ~run.loose].any(), machine
    assert ((run.machine >= 0) & (run.machine < len(run.capacity))).all()


def check_classes(run: Run) -> None:
    for machine in range(len(run.capacity)):
        assert run.may_run(machine)[run.machine == machine].all(), machine


def check_devices(run: Run) -> None:
    """Each task has what it takes: whole devices, or a part of one that is not given twice."""
    bits = [int(b).bit_count() for b in run.result.task_devices]
    assert bits == run.of_devices[0].tolist()
    for machine in range(len(run.capacity)):
        assert (run.devices_held(machine) <= 1 + SLACK).all(), machine


def check_hard_shares(run: Run) -> None:
    queue = run.c.job_queue[run.task_job]
    for q, cap in enumerate(run.caps()):
        assert (run.used(queue == q) <= cap)[:, ~run.loose].all(), run.c.queue_names[q]


def check_gangs(run: Run) -> None:
    """A gang's first tasks start together, and its slots are its own until it ends."""
    c, result = run.c, run.result
    if not run.gang.any():
        return
    waits = c.stage_n_barrier + c.stage_n_o2o
    source = (waits == 0)[run.task_stage]
    at_start = run.start == result.job_start[run.task_job]
    slot = np.maximum.reduceat(run.stage_demand, c.job_stage0[:-1], axis=0)
    held = np.zeros((len(run.instants), run.demand.shape[1]))
    for j in np.flatnonzero(run.gang):
        mine = run.task_job == j
        assert (at_start & mine).sum() >= min(c.job_min_tasks[j], (source & mine).sum())
        alive = (result.job_start[j] <= run.instants) & (run.instants < result.job_finish[j])
        held += alive * c.job_min_tasks[j] * slot[j]
    others = run.used(~run.gang[run.task_job])
    assert (held + others <= run.capacity.sum(axis=0))[:, ~run.loose].all()


def check_bounds(run: Run) -> None:
    result, c = run.result, run.c
    jct = result.job_finish - c.job_submit
    for name, bound in bound_arrays(c, result.cluster, tight=True).items():
        assert (jct >= bound - SLACK * (1 + result.job_finish)).all(), name
    makespan = result.job_finish.max() - c.job_submit[0]
    assert makespan >= makespan_bound(result.workload, result.cluster) * (1 - SLACK)


def check_work_is_conserved(run: Run, fit: str) -> None:
    """No room stays empty that a task wants.

    Where what does not fit is skipped: no waiting task fits anywhere. In strict order: wherever
    tasks of a queue of the cluster wait, one of them (its head) fits nowhere. Where unfairness is
    bounded: a machine that a waiting task fits is kept for one that it does not fit.
    """
    c = run.c
    n_queues, shared = len(c.queue_names), run.result.cluster.queue_mode == "global"
    queue = np.zeros(len(c.job_queue), int) if shared else c.job_queue
    free = [cap - run.used(run.machine == m) for m, cap in enumerate(run.capacity)]
    fits_on = [(run.demand[None] <= np.maximum(room, 0)[:, None]).all(axis=2) for room in free]
    if run.result.cluster.devices:
        fits_on = [here & run.may_run(m) & run.device_room(m) for m, here in enumerate(fits_on)]
    if run.holds_back:
        fits_on = [here & ~(run.waiting & ~here).any(axis=1)[:, None] for here in fits_on]
    fits = np.any(fits_on, axis=0)
    if not shared:
        left = np.stack(
            [cap - run.used(queue[run.task_job] == q) for q, cap in enumerate(run.caps())], axis=1
        )
        fits &= (run.demand[None] <= left[:, queue[run.task_job]]).all(axis=2)
    if fit != "strict":
        assert not (run.waiting & fits).any()
        return
    for q in range(1 if shared else n_queues):
        waits = run.waiting & (queue[run.task_job] == q)
        stuck = (waits & ~fits).any(axis=1)
        assert (stuck | ~waits.any(axis=1)).all()


def _plan(result: Result) -> Plan:
    c = result.workload.columns
    plan = Plan(len(c.job_submit), len(c.stage_job), len(c.task_duration))
    result.policy.begin(World(c, result.cluster, result.seed, {}), plan)
    return plan


def _may_be_overbooked(result: Result, plan: Plan) -> list[str]:
    """Name the fungible resources that the result's policy does not look at, or overbooks."""
    cluster = result.cluster
    if plan.fit == Fit.PACK and plan.packing.overbook:
        return list(cluster.fungible)
    looked_at = plan.fit_resources or cluster.resources
    return [name for name in cluster.fungible if name not in looked_at]


def same_bits(a: sim.Result, b: sim.Result) -> None:
    """Assert that two runs are one, as far as both kept records."""
    np.testing.assert_array_equal(a.job_start, b.job_start)
    np.testing.assert_array_equal(a.job_finish, b.job_finish)
    if a.task_start is not None and b.task_start is not None:
        np.testing.assert_array_equal(a.task_start, b.task_start)
        np.testing.assert_array_equal(a.task_machine, b.task_machine)
        assert a.metrics.keys() == b.metrics.keys()
        np.testing.assert_array_equal(list(a.metrics.values()), list(b.metrics.values()))
