"""Bounded slowdown, by hand."""

from __future__ import annotations

import pytest

import policies
import sim


def rigid(submit_s, run_s, width, **more):
    stages = [{"durations_s": [run_s] * width}]
    return {"submit_s": submit_s, "stages": stages, "min_tasks": width, **more}


def metrics(*jobs):
    return sim.simulate(
        sim.Workload.from_jobs(jobs), sim.Cluster.slots(2), policies.build("fifo")
    ).metrics


def test_a_job_counts_as_10_s_long_at_least():
    # waits 0, 20 and 25 s: (0 + 20) / 20, (20 + 5) / 10, and (25 + 1) / 10
    actual = metrics(rigid(0, 20, 2), rigid(0, 5, 2), rigid(0, 1, 1, min_tasks=0))
    assert actual["bounded_slowdown_mean"] == pytest.approx((1 + 2.5 + 2.6) / 3)
    # and is never faster than it runs: 5 of 10 s
    assert metrics(rigid(0, 5, 2))["bounded_slowdown_mean"] == 1.0


def test_there_is_none_of_jobs_that_are_not_rigid():
    assert "bounded_slowdown_mean" not in metrics(rigid(0, 5, 2), rigid(0, 5, 2, min_tasks=1))
    assert "bounded_slowdown_mean" not in metrics(rigid(0, 5, 1, min_tasks=0))
