"""Kueue's order of admission, on a few jobs by hand."""

from __future__ import annotations

import dataclasses

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check import invariants
from sim.check.broken import BrokenRuleError
from sim.check.record import Record
from sim.check.worlds import MACHINES, crowd


def job(name: str, queue: str, submit_s: float, n: int, duration_s: float = 10, **more):
    stages = [{"durations_s": [duration_s] * n}]
    return {
        "job_id": name, "queue": queue, "submit_s": submit_s, "stages": stages, "min_tasks": n
    } | more  # fmt: skip


def starts(jobs, cluster, **params):
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster, policies.build("kueue", **params))
    return dict(zip([job["job_id"] for job in jobs], result.job_start.tolist(), strict=True))


def test_a_job_that_cannot_be_admitted_blocks_its_queue_only_with_strict_fifo():
    """Of 6 slots a has 4, and borrows none; b has 2. a2 waits for a1; a3 would fit beside a1."""
    tree = {"a": {"nominal": {"slot": 4}}, "b": {"nominal": {"slot": 2}}}
    cluster = sim.Cluster.slots(6).with_quotas(tree)
    jobs = [job("a1", "a", 0, 3), job("a2", "a", 1, 2), job("a3", "a", 2, 1), job("b1", "b", 3, 2)]
    assert starts(jobs, cluster) == {"a1": 0, "a2": 10, "a3": 2, "b1": 3}
    strict = starts(jobs, cluster, queueing_strategy="StrictFIFO")
    assert strict == {"a1": 0, "a2": 10, "a3": 10, "b1": 3}


def test_priority_then_creation_within_a_queue():
    cluster = sim.Cluster.slots(1).with_quotas({"a": {"nominal": "100%"}})
    jobs = [
        job("a1", "a", 0, 1),
        job("a2", "a", 1, 1),
        job("a3", "a", 2, 1, priority=5),
        job("a4", "a", 3, 1),
    ]
    assert starts(jobs, cluster) == {"a1": 0, "a2": 20, "a3": 10, "a4": 30}


BORROWERS = {
    "all": {"nominal": {"slot": 3}},
    "a": {"parent": "all", "weight": 2},
    "b": {"parent": "all"},
}


def test_borrowers_by_priority_or_by_share():
    """Three slots of the cohort, free at 10 s. Job p has the highest priority, a1 and a2 are first.

    By priority queue a gets all three. With fair sharing it gets the first, by p, as nobody uses
    anything; b1 the second, as b uses nothing; and a the third, as 1/3 over its weight of 2 is less
    than 1/3.
    """
    jobs = [job("x", "a", 0, 3)]
    jobs += [job(f"a{i}", "a", 1, 1) for i in (1, 2, 3)]
    jobs += [job("b1", "b", 2, 1), job("p", "a", 3, 1, priority=1)]
    cluster = sim.Cluster.slots(3).with_quotas(BORROWERS)
    by_priority = starts(jobs, cluster)
    assert by_priority == {"x": 0, "a1": 10, "a2": 10, "a3": 20, "b1": 20, "p": 10}
    fair = starts(jobs, cluster, fair_sharing=True)
    assert fair == {"x": 0, "a1": 10, "a2": 20, "a3": 20, "b1": 10, "p": 10}


def test_who_borrows_from_its_own_cohort_goes_before_who_borrows_further_up():
    """At 10 s two slots are free, of y's quota. x, its neighbour, borrows them, and z waits.

    z was created before x, but would borrow from the root, for a cohort that has no quota.
    """
    tree = {
        "near": {"parent": "root"},
        "far": {"parent": "root"},
        "x": {"parent": "near"},
        "y": {"parent": "near", "nominal": {"slot": 2}},
        "z": {"parent": "far"},
        "spare": {"parent": "root", "nominal": {"slot": 2}},
    }
    cluster = sim.Cluster.slots(4).with_quotas(tree)
    jobs = [
        job("y1", "y", 0, 2),
        job("s1", "spare", 0, 2, 30),
        job("z1", "z", 1, 2),
        job("x1", "x", 2, 2),
    ]
    assert starts(jobs, cluster) == {"y1": 0, "s1": 0, "z1": 20, "x1": 10}


QUOTAS = {
    "xy": {"parent": "all", "borrow": "20%"},
    "x": {"parent": "xy", "nominal": {"cpu": "40%", "mem": "30%"}, "lend": "25%"},
    "y": {"parent": "xy", "nominal": {"cpu": "20%"}, "weight": 2},
    "z": {"parent": "all", "nominal": {"cpu": "40%", "mem": "60%"}, "lend": {"mem": 30}},
}


@pytest.mark.parametrize("gangs", [False, True])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("kueue", {}),
        ("kueue", {"queueing_strategy": "StrictFIFO", "fit": "strict"}),
        ("kueue", {"fair_sharing": True}),
        ("drf", {}),
        ("tetris", {}),
    ],
)
def test_invariants_within_quotas(name, params, gangs):
    cluster = MACHINES.with_quotas(QUOTAS)
    policy = policies.build(name, **params)
    result = sim.simulate(crowd(2, gangs=gangs), cluster, policy, record="tasks")
    assert (result.job_start > result.job_submit).any()
    invariants.check(result, policy.fit)


def test_checks_notice_a_broken_quota():
    cluster = MACHINES.with_quotas(QUOTAS)
    result = sim.simulate(crowd(2), cluster, policies.build("kueue"), record="tasks")
    smaller = QUOTAS | {"xy": {"parent": "all", "borrow": 0}}
    result = dataclasses.replace(result, cluster=MACHINES.with_quotas(smaller))
    with pytest.raises(BrokenRuleError, match=r"queue '[xy]' uses more than its share"):
        invariants.check_hard_shares(Record(result))


def test_strict_fifo_does_not_pack():
    with pytest.raises(InputError, match="StrictFIFO is fit=strict, not 'pack'"):
        policies.build("kueue", queueing_strategy="StrictFIFO", fit="pack")
