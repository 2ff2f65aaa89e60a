"""Least attained service: who sinks when, on examples small enough to follow by hand."""

import numpy as np
import pytest

import policies
import sim
from tests.policies.small import job, run, running_at

SMALL = {"first_threshold_s": 2.0, "queues": 2}


def test_las_demotes_served_jobs():
    jobs = [job("a", 0, [1] * 10), job("b", 1, [1] * 2)]
    r = run("las", jobs, **SMALL)
    # a leaves the first queue at 2, b runs whole, then a goes on
    assert r.job_finish.tolist() == [12, 4]
    assert run("fifo", jobs).job_finish.tolist() == [10, 12]


def test_las_demotes_in_the_middle_of_a_task_too():
    jobs = [job("a", 0, [1.5] * 4), job("b", 1, [1])]
    r = run("las", jobs, **SMALL)
    assert r.job_start[1] == 3  # a crossed 2 s during its second task


def test_las_is_fifo_again_at_the_bottom():
    jobs = [job("a", 0, [1] * 10), job("b", 1, [1] * 3)]
    assert run("las", jobs, **SMALL).job_finish.tolist() == [12, 13]


def test_las_shares_by_weight_between_its_queues():
    jobs = [job("a", 0, [1] * 300), job("b", 5, [1] * 300)]
    r = run("las", jobs, sim.Cluster.slots(11), first_threshold_s=40.0, queues=2)
    assert running_at(r, 2) == [11, 0]
    # a has crossed 40 task seconds and b not: weights 10 to 1
    assert running_at(r, 5) == [1, 10]
    assert running_at(r, 7) == [1, 10]
    # b crosses too, and a came first
    assert running_at(r, 12) == [11, 0]
    flat = run("las", jobs, sim.Cluster.slots(11), first_threshold_s=40.0, queues=2, weight_decay=1)
    assert running_at(flat, 5) == [5, 6]


def test_las_demotes_queue_by_queue():
    jobs = [job("a", 0, [1] * 30), job("b", 15, [1] * 15), job("c", 18, [1])]
    r = run("las", jobs, first_threshold_s=1.0, growth=4.0, queues=3)
    # thresholds 1 and 4: a is in the last queue from 4 on; b has the first until 16 and the second
    # until 20, with c, which is new, before its last second there; then a, first of the last
    assert r.job_finish.tolist() == [35, 46, 19]


def test_las_with_thresholds_that_nobody_reaches_is_fifo():
    rng = np.random.default_rng(0)
    jobs = [job(f"j{i}", i, rng.exponential(5, 4)) for i in range(30)]
    las = run("las", jobs, sim.Cluster.slots(3), first_threshold_s=1e9)
    assert las.job_finish.tolist() == run("fifo", jobs, sim.Cluster.slots(3)).job_finish.tolist()


@pytest.mark.parametrize(
    "bad", [{"first_threshold_s": 0.0}, {"growth": 0.5}, {"queues": 0}, {"weight_decay": 0.0}]
)
def test_las_checks_its_parameters(bad):
    with pytest.raises(sim.InputError, match=f"policy las: {next(iter(bad))} must be"):
        policies.build("las", **bad)
