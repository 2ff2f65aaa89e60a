"""A run beside the least mean completion time, by hand."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.evaluators import evaluate


def test_a_run_stands_beside_the_bound() -> None:
    """Two jobs of 4 s that take all the cpu, and one that ends as soon as it can."""
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": [4.0], "demand": {"cpu": cpu}}]}
        for cpu in (0.5, 1.0, 1.0)
    ]
    workload, job = sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=1)
    fifo = policies.build("fifo")
    metrics, table = evaluate("stream", sim.simulate, workload, job, fifo, 0)
    assert table["finish_s"].to_pylist() == [4.0, 8.0, 12.0]
    assert metrics["jct_mean_lb_s"] == pytest.approx((4 + 6 + 10) / 3)
    assert metrics["gap_lb_mean"] == pytest.approx(24 / 20 - 1)
    plain, _ = evaluate("simulation", sim.simulate, workload, job, fifo, 0)
    assert {**plain, **metrics} == pytest.approx(metrics, nan_ok=True)
