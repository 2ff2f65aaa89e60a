"""Equal machines, few demands and durations: almost every placement is decided by a tie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sim
from sim.engine.plan import Order, Plan, Queues, World
from sim.engine.plan.queues import Packing
from tests.sim.engine import reference
from tests.sim.engine.strategies import AnyPlan

COLUMNS = ("task_start", "task_finish", "task_machine", "job_start", "job_finish")
DEMANDS = ({"cpu": 1, "mem": 1}, {"cpu": 2, "mem": 1}, {"cpu": 3, "mem": 2})
MODES = ("global", "weighted", "hard")


@dataclass(frozen=True)
class Even(AnyPlan):
    """One or two queues in order of submission, and a score by which most tasks are equal."""

    name: ClassVar[str] = "even"

    def prepare(self, world: World, plan: Plan) -> np.random.Generator:
        rng = np.random.default_rng(self.plan_seed)
        n_jobs, n_tasks = len(world.columns.job_submit), world.columns.n_tasks
        n = int(rng.integers(1, 3))
        plan.queues = Queues.make(n, order=[Order.FIFO, Order.REMAINING][:n])
        plan.set_jobs(queue=rng.integers(0, n, n_jobs))
        plan.packing = Packing(
            remaining=float(rng.choice([0.0, 0.5, 2.0])),
            pending=bool(rng.random() < 0.5),
            rebased=bool(rng.random() < 0.5),
            bundle=int(rng.choice([1, 2, 5])),
            unfairness=float(rng.choice([np.inf, 1.0])),
            overbook=bool(rng.random() < 0.5),
        )
        if rng.random() < 0.3:
            plan.task_priority = rng.choice([0.5, 1.0], n_tasks)
        if rng.random() < 0.3:
            plan.task_prefers = rng.integers(-1, 4, n_tasks).astype("i4")
        if rng.random() < 0.3:
            plan.set_jobs(run_limit=rng.choice([1, 2, 2**31 - 1], n_jobs))
        return rng


def like_jobs(seed: int) -> sim.Workload:
    """Make jobs of like stages, many of them submitted at one instant, some of them gangs."""
    rng = np.random.default_rng(seed)
    n_kinds, jobs = int(rng.integers(1, 4)), []
    for submit_s in np.sort(rng.choice([0.0, 0.0, 1.0, 2.0], int(rng.integers(8, 16)))):
        stages = []
        for s in range(int(rng.integers(1, 4))):
            durations = rng.choice([1.0, 1.0, 2.0], int(rng.integers(1, 4))).tolist()
            demand = DEMANDS[rng.integers(0, n_kinds)]
            stages.append({"name": f"s{s}", "durations_s": durations, "demand": demand})
        if len(stages) > 1 and rng.random() < 0.4:
            stages[-1]["parents"] = ["s0"]
        job = {"submit_s": submit_s, "queue": f"q{rng.integers(0, 2)}", "stages": stages}
        if rng.random() < 0.1:
            job["min_tasks"] = min(2, sum(len(stage["durations_s"]) for stage in stages))
        jobs.append(job)
    return sim.Workload.from_jobs(jobs)


def equal_machines(workload: sim.Workload, seed: int) -> sim.Cluster:
    """Make machines of one size; at most six, so that most stages wait."""
    cluster = sim.Cluster.machines(4 + seed % 3, cpu=6, mem=4, fungible=["mem"])
    mode = MODES[seed // 3 % 3]
    if mode == "global":
        return cluster
    names = workload.columns.queue_names
    return cluster.with_queues(mode, dict.fromkeys(names, 1 / len(names)))


@pytest.mark.parametrize("fit", ["skip", "pack"])
@pytest.mark.parametrize("plan", [Even, AnyPlan])
@pytest.mark.parametrize("seed", range(27))
def test_ties_end_as_in_the_naive_simulator(fit, plan, seed):
    workload = like_jobs(seed)
    cluster = equal_machines(workload, seed)
    policy = plan(fit=fit, plan_seed=seed, callbacks=plan is AnyPlan and seed % 2 == 0)
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    slow = reference.simulate(workload, cluster, policy)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)


@dataclass(frozen=True)
class LeastLeft(AnyPlan):
    """Alignment, less remaining work."""

    name: ClassVar[str] = "least-left"

    def prepare(self, world: World, plan: Plan) -> None:
        plan.packing = Packing(remaining=1.0, pending=self.plan_seed % 2 == 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_job_with_less_left_moves_up(seed):
    rng = np.random.default_rng(seed)
    demand = {"cpu": 1, "mem": 1}
    jobs = [
        {
            "submit_s": float(t),
            "stages": [
                {"durations_s": rng.integers(1, 9, 2).astype(float).tolist(), "demand": demand}
                for _ in range(3)
            ],
        }
        for t in np.sort(rng.integers(0, 6, 20))
    ]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.machines(4, cpu=2, mem=2)
    policy = LeastLeft(fit="pack", plan_seed=seed)
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    slow = reference.simulate(workload, cluster, policy)
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
