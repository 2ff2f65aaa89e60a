"""Orders of jobs are as their definitions say, on examples small enough to follow by hand."""

import pytest

import sim
from tests.policies.small import job, run, running_at, started

SIZES = [job("a", 0, [10]), job("b", 1, [9]), job("c", 2, [3, 1]), job("d", 3, [1] * 6)]


@pytest.mark.parametrize(("policy", "order"), [("fifo", "abcd"), ("sjf", "acdb"), ("ljf", "abdc")])
def test_orders_by_submission_and_by_total_size(policy, order):
    assert started(run(policy, SIZES)) == order


def test_srpt_counts_remaining_work_only():
    jobs = [job("a", 0, [1] * 10), job("b", 7.5, [1] * 4)]
    # at 8 a has 2 s left of its 10
    assert run("srpt", jobs).job_finish.tolist() == [10, 14]
    assert run("sjf", jobs).job_finish.tolist() == [14, 12]


def test_srpt_yields_to_a_job_with_less_left():
    jobs = [job("a", 0, [1] * 10), job("b", 2.5, [1] * 4)]
    assert run("srpt", jobs).job_finish.tolist() == [14, 7]


def test_random_is_drawn_from_the_seed():
    jobs = [job(chr(97 + i), 0, [1]) for i in range(20)]
    orders = [started(run("random", jobs, seed=s)) for s in range(5)]
    assert len(set(orders)) == 5
    assert all(sorted(o) == sorted(orders[0]) for o in orders)
    assert orders[3] == started(run("random", jobs, seed=3))


def test_priority_goes_first_and_equals_are_served_in_turn():
    rows = [("a", 0, 0), ("b", 1, 1), ("c", 2, 5), ("d", 2, 1), ("e", 2, 5)]
    jobs = [job(n, t, [10], priority=p) for n, t, p in rows]
    assert started(run("priority", jobs)) == "acebd"


def test_priority_holds_inside_the_queues_of_the_cluster():
    jobs = [
        job("a", 0, [10, 10, 10], queue="x", priority=9),
        job("b", 0, [10, 10], queue="y", priority=1),
        job("c", 0, [10], queue="y", priority=2),
    ]
    r = run("priority", jobs, sim.Cluster.slots(2).with_queues("hard"))
    assert running_at(r, 0) == [1, 0, 1]
    assert running_at(r, 10) == [1, 1, 0]
