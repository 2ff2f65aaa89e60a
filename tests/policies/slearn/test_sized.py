"""The evaluator `sized` against arithmetic by hand and a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.slearn.evaluators.sized import resistances
from sim import evaluators


def test_each_job_has_its_size_estimate_queue_and_wait():
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": [4.0, 4.0, 4.0, 4.0]}]},
        {"submit_s": 1.0, "stages": [{"durations_s": [1000.0, 2000.0]}]},
    ]
    w = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.slots(2)
    metrics, table = evaluators.evaluate(
        "sized", sim.simulate, w, cluster, policies.build("oracle"), 0, resistance=True
    )
    plain = sim.simulate(w, cluster, policies.build("oracle"), seed=0).metrics
    assert metrics == pytest.approx(plain, rel=0, abs=0, nan_ok=True)
    got = table.to_pydict()
    assert got["size_s"] == got["estimate_s"] == [16.0, 3000.0]
    assert got["n_tasks"] == [4, 2]
    assert got["queue"] == got["right_queue"] == [0, 1]
    assert got["waits"] == pytest.approx([0.75, 7.0 / 1500.0])  # 0, 0, 4, 8; 4, 12
    assert got["resistance_s"] == [0.0, 14.0]


def test_a_sampled_job_meets_what_is_ahead_when_its_pilots_end():
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": [10.0] * 4}]},
        {"submit_s": 1.0, "stages": [{"durations_s": [20.0] * 3}]},
    ]
    w = sim.Workload.from_jobs(jobs)
    policy = policies.build("slearn", sampling_percent=1.0)
    _, table = evaluators.evaluate(
        "sized", sim.simulate, w, sim.Cluster.slots(1), policy, 0, resistance=True
    )
    assert table["estimate_s"].to_pylist() == [40.0, 60.0]
    # job 0 knows itself at 10 and has nothing ahead; its other tasks are first then, to 40
    assert table["resistance_s"].to_pylist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_resistance_equals_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    n = 30
    submit = np.sort(rng.integers(0, 50, n) * 1.0)
    n_tasks = rng.integers(1, 5, n)
    first = np.concatenate([[0], np.cumsum(n_tasks)])
    start = np.repeat(submit, n_tasks) + rng.integers(0, 40, first[-1])
    finish = start + rng.integers(1, 30, first[-1])
    known = submit + rng.integers(0, 3, n) * 5.0
    queue = rng.integers(0, 4, n)
    expected = []
    for j in range(n):
        ahead = 0.0
        for k in range(n):
            other_queue = queue[k] if known[k] <= known[j] else 0.5
            before = other_queue < queue[j] or (other_queue == queue[j] and k < j)
            if k == j or submit[k] > known[j] or not before:
                continue
            for t in range(first[k], first[k + 1]):
                if known[k] > known[j] and start[t] >= known[k]:
                    continue  # no pilot, and its job not sized yet
                ahead += max(0.0, finish[t] - max(start[t], known[j]))
        expected.append(ahead)
    got = resistances(submit, known, queue, first, start, finish)
    assert got == pytest.approx(expected)
