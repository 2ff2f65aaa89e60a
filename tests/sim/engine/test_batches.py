"""Batches of like tasks: the same bits as tasks that move one by one, in many-task worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from sim.base.jit import JIT
from sim.cluster.faults import Slowdowns
from sim.engine import layout
from sim.engine.plan import NO_LIMIT, Batch, Event, Fit, Order, Plan, Queues, World
from sim.engine.plan.queues import Packing
from sim.engine.simulate import variant
from tests.sim.engine.strategies import AnyPlan
from tests.sim.engine.test_kernel import FITS, assert_same

N_WORLDS = 60 if JIT else 20


def singly(cluster):
    """Return the cluster with a slow period after the end: then each task moves by itself."""
    return cluster.with_slowdowns(Slowdowns.from_columns([1e9], [1e9 + 1], [0.5]))


def like_jobs(rng, n_jobs, n_tasks, whole=False, edges=("barrier",)):
    """Make jobs of up to three stages whose tasks have one to three durations, in runs or mixed."""
    jobs, clock = [], 0.0
    for _ in range(n_jobs):
        clock += float(rng.choice([0.0, 0.5, 1.7, 6.0]))
        stages = []
        for s in range(int(rng.integers(1, 4))):
            values = rng.integers(0, 4, rng.integers(1, 4)) if whole else rng.uniform(0.1, 4, 3)
            durations = rng.choice(values, rng.integers(1, n_tasks + 1)).astype(float)
            if rng.random() < 0.7:
                durations.sort()
            parents = {f"s{p}": str(rng.choice(edges)) for p in range(s) if rng.random() < 0.4}
            stage = {"name": f"s{s}", "durations_s": durations.tolist(), "parents": parents}
            demand = {"cpu": int(rng.integers(0, 4)), "mem": float(rng.choice([0.0, 0.1, 0.3]))}
            stages.append(stage | {"demand": demand})
        names = {"user": f"u{rng.integers(0, 3)}", "queue": f"q{rng.integers(0, 2)}"}
        jobs.append({"submit_s": clock, "stages": stages, **names})
    return sim.Workload.from_jobs(jobs)


@dataclass(frozen=True)
class AnyQueues(Policy):
    """Queues of any order, weights, tiers and demotions, and nothing that needs single tasks.

    With `callbacks` also limits and gates, which it raises; with `packs` scores that one queue
    packs by.
    """

    order: int = 0
    plan_seed: int = 0
    fit: str = "strict"
    callbacks: bool = False
    packs: bool = False

    name: ClassVar[str] = "any-queues"

    @property
    def events(self) -> Event:  # type: ignore[override]
        kinds = Event.TASKS_DONE | Event.STAGE_DONE | Event.JOB_DONE
        return kinds if self.callbacks else Event.NONE

    def prepare(self, world: World, plan: Plan) -> object:
        rng = np.random.default_rng(self.plan_seed)
        plan.fit = Fit[self.fit.upper()]
        n = 1 if self.packs else int(rng.integers(1, 4))
        order = np.where(rng.random(n) < 0.8, self.order, rng.integers(0, len(Order), n))
        demote_to = np.where(np.arange(n) + 1 < n, np.arange(n) + 1, -1)
        demotes = (demote_to > 0) & (rng.random(n) < 0.6)
        plan.queues = Queues.make(
            n,
            weight=rng.choice([0.3, 1.0, 2.0, 10.0], n),
            tier=np.sort(rng.integers(0, 2, n)) if rng.random() < 0.3 else 0,
            order=order,
            demote_at=np.where(demotes, rng.uniform(0.5, 30.0, n), np.inf),
            demote_to=demote_to.astype(np.int32),
        )
        jobs, stages = len(world.columns.job_submit), len(world.columns.stage_job)
        plan.set_jobs(
            key=rng.integers(0, 3, jobs).astype(float),
            queue=rng.integers(0, n, jobs),
            service_at=np.where(rng.random(jobs) < 0.3, rng.uniform(0, 20, jobs), np.inf),
        )
        plan.set_stages(
            key=rng.integers(0, 2, stages).astype(float), weight=rng.choice([1.0, 0.7], stages)
        )
        if self.callbacks:
            gate = rng.choice([2, 5, NO_LIMIT], jobs)
            plan.set_jobs(
                run_limit=rng.choice([1, 3, 7, NO_LIMIT], jobs),
                start_gate=gate,
                overflow_queue=rng.integers(-1, n, jobs) if rng.random() < 0.5 else -1,
                notify_at=np.minimum(gate, rng.integers(1, 6, jobs)),
            )
            plan.first_ended = bool(rng.random() < 0.5)
        if self.packs:
            plan.packing = Packing(
                remaining=float(rng.choice([0.0, 0.3, 2.0])),
                aligned=bool(rng.random() < 0.8),
                pending=bool(rng.random() < 0.2),
                bundle=int(rng.choice([1, 1, 1, 3])),
                unfairness=float(rng.choice([np.inf, 0.0, 2.0])),
            )
            if rng.random() < 0.2:
                plan.task_priority = rng.choice([0.3, 1.0], world.columns.n_tasks)
        if rng.random() < 0.3:  # stages of like tasks run in the order of rows, and it is mended
            sizes = np.diff(world.columns.stage_task0)
            plan.task_order = np.concatenate([rng.permutation(n) for n in sizes]).astype(np.int32)
        return rng

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        opened = batch.rows(Event.TASKS_DONE)
        if len(opened):
            plan.set_jobs(opened, start_gate=NO_LIMIT, run_limit=9)


@pytest.mark.parametrize("order", list(Order))
def test_same_bits_as_the_naive_simulator(order):
    for seed in range(N_WORLDS):
        rng = np.random.default_rng([seed, order])
        workload = like_jobs(rng, 5, 12, whole=seed % 3 == 0)
        cluster = sim.Cluster.slots(int(rng.integers(2, 15)))
        policy = AnyQueues(order=order, plan_seed=seed)
        assert "BATCHES" in variant(workload, cluster, policy)
        assert_same(workload, cluster, policy)


@pytest.mark.parametrize("order", list(Order))
def test_same_bits_as_single_tasks(order):
    for seed in range(3):
        rng = np.random.default_rng([seed, order, 1])
        workload = like_jobs(rng, 60 if JIT else 8, 400 if JIT else 40, whole=seed == 0)
        cluster = sim.Cluster.slots(int(rng.choice([20, 150, 900])))
        policy = AnyQueues(order=order, plan_seed=seed)
        batches = sim.simulate(workload, cluster, policy)
        single = sim.simulate(workload, singly(cluster), policy)
        for name in ("task_start", "task_finish", "task_machine", "job_start", "job_finish"):
            np.testing.assert_array_equal(getattr(batches, name), getattr(single, name), name)
        assert single.records.task is None
        assert "BATCHES" in variant(workload, cluster, policy)
        if batches.records.task is not None:  # else in an order of its own
            assert len(batches.records.task) < workload.n_tasks


def sharing(rng, workload, cluster):
    """Let the workload's queues share the cluster in some mode, mostly none."""
    mode = str(rng.choice(["global", "global", "weighted", "hard"]))
    names = workload.columns.queue_names
    shares = {name: 1 / len(names) for name in names}
    return cluster if mode == "global" else cluster.with_queues(mode, shares)


@pytest.mark.parametrize("callbacks", [False, True], ids=["columns", "callbacks"])
@pytest.mark.parametrize("fit", FITS)
def test_same_bits_on_machines(fit, callbacks):
    for seed in range(N_WORLDS):
        rng = np.random.default_rng([seed, 2])
        workload = like_jobs(rng, 4, 16, whole=seed % 2 == 0)
        cluster = sim.Cluster.machines(int(rng.integers(1, 4)), cpu=16, mem=1.5)
        if callbacks and fit == "strict" and seed % 2:
            cluster = sim.Cluster.slots(int(rng.integers(4, 20)))
        order = int(rng.integers(0, len(Order)))
        policy = AnyQueues(order=order, plan_seed=seed, fit=fit, callbacks=callbacks)
        assert "BATCHES" in variant(workload, cluster, policy)
        assert_same(workload, sharing(rng, workload, cluster), policy)


@pytest.mark.parametrize("callbacks", [False, True], ids=["columns", "callbacks"])
def test_same_bits_packing_by_score(callbacks):
    for seed in range(N_WORLDS):
        rng = np.random.default_rng([seed, 4])
        workload = like_jobs(rng, 5, 12, whole=seed % 2 == 0)
        cluster = sim.Cluster.machines(int(rng.integers(1, 4)), cpu=16, mem=1.5)
        order = int(rng.integers(0, len(Order)))
        policy = AnyQueues(order=order, plan_seed=seed, fit="pack", callbacks=callbacks, packs=True)
        assert "BATCHES" in variant(workload, cluster, policy)
        assert_same(workload, cluster, policy)


def test_same_bits_packing_by_scores_that_are_nearly_equal():
    for seed in (*range(10), 36, 118, 121, 129, 168, 186, 214, 273, 284):  # ties by rounding alone
        rng = np.random.default_rng([seed, 5])
        n_tasks, jobs = int(rng.integers(2, 7)), []
        for _ in range(6):
            tasks_s = [1 + 2.0**-52 * float(rng.integers(0, 4))] * n_tasks
            demand = {"cpu": int(rng.integers(1, 3)), "mem": float(rng.choice([0.0, 0.1]))}
            jobs.append({"submit_s": 0.0, "stages": [{"durations_s": tasks_s, "demand": demand}]})
        cluster = sim.Cluster.machines(int(rng.integers(1, 3)), cpu=16, mem=1.5)
        policy = AnyQueues(order=int(rng.integers(0, 2)), plan_seed=seed, fit="pack", packs=True)
        assert_same(sim.Workload.from_jobs(jobs), cluster, policy)


@pytest.mark.parametrize("fit", FITS)
def test_same_bits_with_any_plan(fit):
    for seed in range(N_WORLDS // 4):
        rng = np.random.default_rng([seed, 3])
        workload = like_jobs(rng, 4, 9, edges=("barrier", "barrier", "one_to_one"))
        cluster = sim.Cluster.machines(int(rng.integers(3, 6)), cpu=8, mem=1.0)
        policy = AnyPlan(fit=fit, plan_seed=seed, callbacks=bool(seed % 2))
        assert_same(workload, sharing(rng, workload, cluster), policy)


def test_records_are_emptied_when_they_are_full(monkeypatch):
    workload = like_jobs(np.random.default_rng(1), 9, 20)
    cluster, policy = sim.Cluster.slots(7), AnyQueues(plan_seed=3)
    once = sim.simulate(workload, cluster, policy)
    monkeypatch.setattr(layout, "MIN_RECORDS", 1)
    often = sim.simulate(workload, cluster, policy)
    for name in ("task_start", "task_finish", "task_machine"):
        np.testing.assert_array_equal(getattr(once, name), getattr(often, name), name)


@pytest.mark.skipif(not JIT, reason="tasks on more machines than two bytes number")
@pytest.mark.parametrize("n", [2**15 - 1, 2**15 + 1])
def test_records_name_machines_beyond_two_bytes(n):
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [1.0] * n}]}]
    cluster = sim.Cluster.machines(n, cpu=1)
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build("fifo"))
    assert result.task_machine.dtype == np.int32
    np.testing.assert_array_equal(result.task_machine, np.arange(n))


def test_remaining_work_is_rounded_task_by_task():
    jobs = [(0.0, [0.1] * 10), (0.05, [0.7])]  # 1 - 0.1 - 0.1 - 0.1 > 0.7 = 1 - 3 * 0.1
    workload = sim.Workload.from_jobs(
        [{"submit_s": s, "stages": [{"durations_s": tasks_s}]} for s, tasks_s in jobs]
    )
    result, _ = assert_same(workload, sim.Cluster.slots(3), policies.build("srpt"))
    assert result.job_start[1] == 0.1


def test_what_opens_at_an_instant_goes_before_what_ends_then_make_room_for():
    """At 2 the first and the third stage end; the fourth opens, and goes before the last."""
    stages = [
        {"durations_s": [2.0]},
        {"durations_s": [5.0]},
        {"name": "third", "durations_s": [2.0]},
        {"durations_s": [1.0, 1.0], "parents": ["third"]},
        {"durations_s": [3.0] * 4},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    policy = policies.build("fifo")
    assert "POOL" in variant(workload, sim.Cluster.slots(4), policy)
    result, _ = assert_same(workload, sim.Cluster.slots(4), policy)
    assert result.task_start.tolist() == [0, 0, 0, 2, 2, 0, 3, 3, 3]


def test_like_tasks_of_queues_of_equal_weight_take_turns():
    for seed in range(N_WORLDS):
        rng = np.random.default_rng([seed, 6])
        n_queues = int(rng.integers(2, 5))
        jobs = [
            {
                "submit_s": float(rng.choice([0.0, 0.0, 1.0])),
                "queue": f"q{rng.integers(0, n_queues)}",
                "stages": [{"durations_s": [float(rng.choice([1.0, 1.5, 2.0]))] * 20}],
            }
            for _ in range(6)
        ]
        workload = sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))
        policy = policies.build("fair")
        cluster = sim.Cluster.slots(int(rng.integers(3, 12)))
        assert variant(workload, cluster, policy) >= {"POOL", "USAGE"}
        assert_same(workload, cluster, policy)
