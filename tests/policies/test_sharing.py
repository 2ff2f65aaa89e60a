"""Fair sharing, on examples small enough to follow by hand."""

import pytest

import policies
import sim
from tests.policies.small import job, run, running_at, started


def test_fair_serves_the_queue_with_the_least_use():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    assert running_at(run("fifo", jobs, sim.Cluster.slots(4)), 0) == [4, 0]
    assert running_at(run("fair", jobs, sim.Cluster.slots(4)), 0) == [2, 2]


def test_fair_keeps_to_its_weights():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    r = run("fair", jobs, sim.Cluster.slots(4), weights={"y": 3})
    assert running_at(r, 0) == [1, 3]


def test_fair_is_work_conserving():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10], queue="y")]
    assert running_at(run("fair", jobs, sim.Cluster.slots(6)), 0) == [5, 1]


def test_fair_is_fifo_inside_a_queue():
    jobs = [job("a", 0, [10], queue="x"), job("b", 1, [9], queue="x"), job("c", 2, [1], queue="x")]
    assert started(run("fair", jobs)) == "abc"


@pytest.mark.parametrize(("ties", "order"), [("first", "zyx"), ("name", "xyz")])
def test_fair_breaks_ties_by_the_first_job_or_by_name(ties, order):
    jobs = [job(name, 0, [10], queue=name) for name in "zyx"]
    assert started(run("fair", jobs, ties=ties)) == order


def test_fair_keeps_weights_with_their_queues_where_ties_go_by_name():
    jobs = [job("a", 0, [10] * 9, queue="z"), job("b", 0, [10] * 9, queue="y")]
    r = run("fair", jobs, sim.Cluster.slots(4), weights={"z": 3}, ties="name")
    assert running_at(r, 0) == [3, 1]


def test_fair_counts_the_resource_asked_for():
    jobs = [
        job("a", 0, [10] * 9, {"cpu": 1, "mem": 3}, queue="x"),
        job("b", 0, [10] * 9, {"cpu": 1, "mem": 1}, queue="y"),
    ]
    machine = sim.Cluster.machines(1, cpu=8, mem=16)
    assert running_at(run("fair", jobs, machine, resource="cpu"), 0) == [4, 4]
    # dominant shares of a task: 3/16 and 2/16
    assert running_at(run("fair", jobs, machine), 0) == [3, 5]


def test_fair_takes_the_weights_of_a_cluster_that_has_them():
    jobs = [job("a", 0, [10] * 9, queue="x"), job("b", 0, [10] * 9, queue="y")]
    weighted = sim.Cluster.slots(4).with_queues("weighted", {"x": 3, "y": 1})
    assert running_at(run("fair", jobs, weighted), 0) == [3, 1]
    with pytest.raises(sim.InputError, match="weighted queues with weights of their own"):
        run("fair", jobs, weighted, weights={"x": 1})


def test_fair_checks_its_parameters():
    jobs = [job("a", 0, [10], queue="batch")]
    with pytest.raises(sim.InputError, match="did you mean 'batch'"):
        run("fair", jobs, weights={"bach": 1})
    with pytest.raises(sim.InputError, match="did you mean 'slot'"):
        run("fair", jobs, resource="slots")
    with pytest.raises(sim.InputError, match="weight of queue 'batch' must be positive"):
        policies.build("fair", weights={"batch": 0})


def drf_jobs(**names):
    # Ghodsi et al., NSDI 2011, §4.1: 9 CPUs, 18 GB; A's tasks (1 CPU, 4 GB), B's (3 CPUs, 1 GB)
    return [
        job("a", 0, [10] * 9, {"cpu": 1, "mem": 4}, user="A", queue="p"),
        job("b", 0, [10] * 9, {"cpu": 3, "mem": 1}, user="B", queue="p") | names,
    ]


NINE = sim.Cluster.machines(1, cpu=9, mem=18)


def test_drf_allocates_as_in_its_paper():
    assert running_at(run("drf", drf_jobs(), NINE), 0) == [3, 2]


def test_drf_is_between_users_or_queues():
    assert running_at(run("drf", drf_jobs(user="A"), NINE), 0) == [4, 0]  # one user: FIFO
    assert running_at(run("drf", drf_jobs(), NINE, by="queue"), 0) == [4, 0]
    assert running_at(run("drf", drf_jobs(queue="q"), NINE, by="queue"), 0) == [3, 2]
    hard = NINE.with_queues("weighted")
    assert running_at(run("drf", drf_jobs(queue="q"), hard, by="queue"), 0) == [3, 2]
