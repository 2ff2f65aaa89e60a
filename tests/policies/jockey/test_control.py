"""Admission control (the control law itself: tests/paper/test_jockey_examples.py)."""

from types import SimpleNamespace

import numpy as np

import sim
from policies.jockey.control import NEVER, Law, cluster_tokens, is_admissible, tokens_needed

LAW = Law(1.2, 0.2, 180.0)


def test_tokens_needed():
    left = np.array([5000.0, 2850.0, 1000.0])
    assert tokens_needed(LAW, 3600.0, 0.0, left) == 2  # 1.2 · 2850 + 180 = 3600
    assert tokens_needed(LAW, 3599.0, 0.0, left) == 3
    assert tokens_needed(LAW, 3600.0, 2300.0, left) == NEVER
    many = tokens_needed(LAW, [3600.0, 3599.0, 3600.0], [0.0, 0.0, 2300.0], np.tile(left, (3, 1)))
    assert many.tolist() == [2, 3, NEVER]


def test_admission():
    assert is_admissible([], 10, 10)
    assert not is_admissible([], 11, 10)
    assert is_admissible([3, 4], 3, 10)
    assert not is_admissible([3, 4], 4, 10)
    assert not is_admissible([], NEVER, 10)
    assert not is_admissible([NEVER], 1, 10)  # a late job needs the whole capacity


def test_tokens_of_machines_are_tasks_of_the_mean_demand() -> None:
    """Two machines of 0.5 cpu: the scarcer resource decides, and jobs without a deadline do not."""
    stage = {"durations_s": [1.0, 1.0], "demand": {"cpu": 0.1, "mem": 0.05}}
    jobs = [
        {"submit_s": 0.0, "deadline_s": 9.0, "template": "t", "stages": [stage]},
        {"submit_s": 0.0, "stages": [{"durations_s": [1.0], "demand": {"cpu": 0.5, "mem": 0.5}}]},
    ]
    workload = sim.Workload.from_jobs(jobs)

    def tokens(cluster: sim.Cluster) -> int:
        world = SimpleNamespace(cluster=cluster, columns=workload.columns)
        return cluster_tokens(world)  # type: ignore[arg-type]

    assert tokens(sim.Cluster.machines(2, cpu=0.5, mem=9.0)) == 10
    assert tokens(sim.Cluster.machines(2, cpu=0.5, mem=0.5)) == 10
    assert tokens(sim.Cluster.machines(2, cpu=9.0, mem=0.5)) == 20
    assert tokens(sim.Cluster.slots(7)) == 7
