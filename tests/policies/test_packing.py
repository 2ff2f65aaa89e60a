"""Tetris packing, on examples small enough to follow by hand."""

import sim
from tests.policies.small import job, run, running_at, started


def test_tetris_takes_the_task_that_fills_the_machine_best():
    jobs = [
        job("a", 0, [10], {"cpu": 2, "mem": 1}),
        job("b", 0, [10], {"cpu": 6, "mem": 6}),
        job("c", 0, [10], {"cpu": 3, "mem": 4}),
    ]
    machine = sim.Cluster.machines(1, cpu=10, mem=10)
    # b first (12/10), then c (.3 × .4 + .4 × .4 of what is free) before a; a no longer fits
    assert running_at(run("tetris", jobs, machine), 0) == [0, 1, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_aligns_demand_with_free_resources():
    jobs = [
        job("m", 0, [10], {"cpu": 1, "mem": 8}),
        job("n", 0, [10], {"cpu": 1, "mem": 2}),
        job("c", 0, [10], {"cpu": 2, "mem": 0.5}),
    ]
    machine = sim.Cluster.machines(1, cpu=4, mem=10)
    # scores m 1.05, c .55, n .45; then 3 cpu and 2 mem are free: c .3875, n .2275
    assert running_at(run("tetris", jobs, machine), 0) == [1, 0, 1]
    assert running_at(run("fifo", jobs, machine), 0) == [1, 1, 0]


def test_tetris_breaks_ties_by_submission():
    jobs = [job(n, 0, [10], {"cpu": 3, "mem": 3}) for n in "abc"]
    assert started(run("tetris", jobs, sim.Cluster.machines(1, cpu=4, mem=4))) == "abc"
