"""Near the optimum, which CP-SAT proves: no schedule beats it, and hardly any falls short."""

import pytest

import sim
from policies.dagps.dag import demand_quanta, one_job
from policies.dagps.offline import build_schedule
from sim.base.random import stream
from sim.bounds.optimum import optimum
from tests.policies.dagps.dags import check_feasible
from tests.policies.dagps.reference import Graph
from tests.sim.bounds.small_jobs import small_job

NEAR = 1e-9


def single_tasks(seed, n=6):
    """A job of `n` stages of one task each, with barriers, for one machine."""
    rng = stream(seed, "tests", "single tasks", n)
    stages = []
    for i in range(n):
        parents = [f"s{p}" for p in range(i) if rng.random() < 1.2 / i]
        demand = {"cpu": int(rng.integers(1, 11)), "mem": int(rng.integers(0, 11))}
        durations = [int(rng.integers(1, 10))]
        stages.append(
            {"name": f"s{i}", "durations_s": durations, "demand": demand, "parents": parents}
        )
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    return workload, sim.Cluster.machines(1, cpu=10, mem=10)


@pytest.mark.parametrize(
    ("draw", "n", "at_least"),
    [(single_tasks, 300, 296), (lambda seed: small_job(seed, 10, 5), 40, 36)],
    ids=["six single tasks", "ten tasks, both kinds of edges"],
)
def test_most_schedules_are_optimal_and_none_is_shorter(draw, n, at_least):
    met = 0
    for seed in range(n):
        workload, cluster = draw(seed)
        lower, upper = optimum(workload, cluster)
        assert lower == upper  # proven
        found = build_schedule(workload, cluster)
        demand, capacity = demand_quanta(workload.columns, cluster)
        graph = Graph(one_job(workload.columns, demand, 0, workload.columns.task_duration))
        check_feasible(graph, capacity, found.begin_s, found.end_s, found.machine)
        assert found.makespan_s >= lower - NEAR
        met += found.makespan_s <= lower + NEAR
    assert met >= at_least
