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
from sim.engine import layout
from sim.engine.plan import Order, Plan, Queues, World
from sim.engine.simulate import variant
from tests.sim.engine.test_kernel import Unheard, assert_same

N_WORLDS = 60 if JIT else 20


def like_jobs(rng, n_jobs, n_tasks, whole=False):
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
            parents = [f"s{p}" for p in range(s) if rng.random() < 0.4]
            stages.append({"name": f"s{s}", "durations_s": durations.tolist(), "parents": parents})
        user = f"u{rng.integers(0, 3)}"
        jobs.append({"submit_s": clock, "stages": stages, "user": user})
    return sim.Workload.from_jobs(jobs)


@dataclass(frozen=True)
class AnyQueues(Policy):
    """Queues of any order, weights, tiers and demotions, and nothing that needs single tasks."""

    order: int = 0
    plan_seed: int = 0

    name: ClassVar[str] = "any-queues"

    def prepare(self, world: World, plan: Plan) -> None:
        rng = np.random.default_rng(self.plan_seed)
        n = int(rng.integers(1, 4))
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
        single = sim.simulate(workload, cluster, Unheard(policy))
        for name in ("task_start", "task_finish", "task_machine", "job_start", "job_finish"):
            np.testing.assert_array_equal(getattr(batches, name), getattr(single, name), name)
        assert batches.batches is not None
        assert single.batches is None
        assert len(batches.batches.task) < workload.n_tasks


def test_records_are_emptied_when_they_are_full(monkeypatch):
    workload = like_jobs(np.random.default_rng(1), 9, 20)
    cluster, policy = sim.Cluster.slots(7), AnyQueues(plan_seed=3)
    once = sim.simulate(workload, cluster, policy)
    monkeypatch.setattr(layout, "MIN_RECORDS", 1)
    often = sim.simulate(workload, cluster, policy)
    for name in ("task_start", "task_finish", "task_machine"):
        np.testing.assert_array_equal(getattr(once, name), getattr(often, name), name)


def test_a_job_that_never_starts_has_no_record():
    batches = sim.simulate(
        like_jobs(np.random.default_rng(2), 1, 9), sim.Cluster.slots(3), AnyQueues()
    ).batches
    n_tasks = int(batches.count.sum())
    columns = batches.by_task(n_tasks + 2)
    assert np.isnan(columns["task_start"][n_tasks:]).all()
    assert columns["task_machine"].tolist() == [0] * n_tasks + [-1, -1]


def test_remaining_work_is_rounded_task_by_task():
    jobs = [(0.0, [0.1] * 10), (0.05, [0.7])]  # 1 - 0.1 - 0.1 - 0.1 > 0.7 = 1 - 3 * 0.1
    workload = sim.Workload.from_jobs(
        [{"submit_s": s, "stages": [{"durations_s": tasks_s}]} for s, tasks_s in jobs]
    )
    result, _ = assert_same(workload, sim.Cluster.slots(3), policies.build("srpt"))
    assert result.job_start[1] == 0.1
