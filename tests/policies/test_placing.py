"""Policies that choose machines and devices."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.check import invariants
from sim.engine.plan import World
from tests.policies.small import job

KINDS = [
    {"count": 2, "class": "a", "cpu": 6, "devices": {"gpu": 3}},
    {"class": "b", "cpu": 12, "devices": {"gpu": 4}},
    {"cpu": 8},
]
NAMES = ["best_fit", "dot_product", "fgd", "gpu_packing"]


def crowd(seed, n=60):
    rng = np.random.default_rng(seed)
    jobs = []
    for i, t in enumerate(np.cumsum(rng.exponential(0.3, n))):
        demand = {
            "cpu": float(rng.integers(1, 5)),
            "gpu": float(rng.choice([0.0, 0.25, 0.5, 0.7, 1.0, 2.0])),
        }
        one_job = job(f"j{i}", float(t), rng.lognormal(1, 1, 2).tolist(), demand)
        one_job["stages"][0]["runs_on"] = str(rng.choice(["", "", "a", "a|b"]))
        jobs.append(one_job)
    return sim.Workload.from_jobs(jobs)


@pytest.mark.parametrize("name", [*NAMES, "tetris", "drf"])
def test_invariants_where_machines_differ(name):
    workload, cluster = crowd(1), sim.Cluster.mixed(KINDS)
    for fit in ("strict", "skip", "pack"):
        policy = policies.build(name, fit=fit)
        invariants.check(sim.simulate(workload, cluster, policy, record="tasks"), fit)


def test_fgd_may_know_the_frequent_types_alone():
    half, odd = {"cpu": 1, "gpu": 0.5}, {"cpu": 1, "gpu": 0.9}
    jobs = [job(f"j{i}", 0, [1.0], half) for i in range(9)] + [job("odd", 0, [1.0], odd)]
    cluster = sim.Cluster.mixed([{"cpu": 20, "devices": {"gpu": 9}}])
    world = World(sim.Workload.from_jobs(jobs).columns, cluster, 0, {})
    mix_by_share = {
        p: policies.build("fgd", popular=p).choice(world).mix for p in (0.0, 0.9, 0.95, 1.0)
    }
    assert [len(mix.weight) for mix in mix_by_share.values()] == [1, 1, 2, 2]
    assert mix_by_share[0.9].demand.tolist() == [[1_000_000, 500_000]]
    assert mix_by_share[0.9].weight.tolist() == [1.0]
    assert mix_by_share[1.0].weight.sum() == 1.0
    with pytest.raises(sim.InputError, match="popular must be 0 to 1"):
        policies.build("fgd", popular=1.5)
