"""Goodput by hand: speed, lost work, jobs that are never done, and work after the last arrival."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.metrics.goodput import compute


def goodput(jobs, cluster, policy="fifo", **settings):
    run = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(policy, **settings))
    return compute(run, {})["goodput"]


def job(submit_s, duration_s, speed=1.0, **columns):
    stage = {"durations_s": [duration_s], "speed": {"fast": speed}} if speed != 1.0 else {}
    stage = stage or {"durations_s": [duration_s]}
    return {"submit_s": submit_s, "stages": [stage], **columns}


def test_work_after_the_last_arrival_does_not_count():
    """Of 20 s on one of two slots, 8 s are over when the last job comes."""
    assert goodput([job(0.0, 20.0), job(8.0, 4.0)], sim.Cluster.slots(2)) == pytest.approx(8 / 16)


def test_jobs_at_one_instant_count_to_the_last_end():
    assert goodput([job(0.0, 6.0), job(0.0, 3.0)], sim.Cluster.slots(2)) == pytest.approx(9 / 12)


def test_a_fast_machine_does_more_than_it_is_used():
    """20 s take 5 s at speed 4; the other job comes at 10."""
    cluster = sim.Cluster.mixed([{"class": "fast", "cpu": 1}])
    jobs = [job(0.0, 20.0, 4.0), job(10.0, 1.0, 4.0)]
    assert goodput(jobs, cluster) == pytest.approx(20 / 10)


def test_lost_work_does_not_count():
    """The first job loses 5 s to the second, of 5 s; the third comes at 10."""
    jobs = [job(0.0, 20.0, priority=0), job(5.0, 5.0, priority=1), job(10.0, 1.0, priority=0)]
    urgent = {"preemption": {"by": "priority"}}
    slot = sim.Cluster.slots(1)
    assert goodput(jobs, slot) == pytest.approx(10 / 10)
    assert goodput(jobs, slot, "priority", **urgent) == pytest.approx(5 / 10)
    saving = [{**jobs[0], "checkpoint_s": 2.0}, *jobs[1:]]
    assert goodput(saving, slot, "priority", **urgent) == pytest.approx((4 + 5) / 10)


def test_a_job_that_is_never_done_counts_nothing():
    cluster = sim.Cluster.slots(1).with_enforced_limits()
    jobs = [job(0.0, 20.0, requested_s=4.0), job(10.0, 1.0, requested_s=4.0)]
    assert goodput(jobs, cluster) == 0.0


def test_one_job_of_no_length_has_none():
    assert np.isnan(goodput([job(0.0, 0.0)], sim.Cluster.slots(1)))
