"""Rules of partitions: worked by hand, and equal to the naive simulator."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.engine.simulate import variant
from tests.examples import COMPILED_WIDE
from tests.sim.engine.test_kernel import assert_same

pytestmark = pytest.mark.skipif(COMPILED_WIDE, reason="in no wide variant")

NODE = {"cpu": 4, "partitions": ["low*", "high"]}


def job(submit_s, seconds, cpu=4, n=1, **columns):
    """Return a rigid job of n tasks of so many seconds; it asks for as long as it takes."""
    stage = {"durations_s": [seconds] * n, "demand": {"cpu": cpu}}
    gang = {"min_tasks": n} if n > 1 else {}
    return {"submit_s": submit_s, "requested_s": seconds, "stages": [stage]} | gang | columns


def run(jobs, nodes, rules, policy="fifo", **parameters):
    w = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.mixed(nodes).with_partitions(rules)
    return assert_same(w, cluster, policies.build(policy, **parameters))[0]


def starts(*arguments, **parameters):
    return run(*arguments, **parameters).job_start.tolist()


# ---- tiers

HIGH = {"high": {"tier": 3}}


@pytest.mark.parametrize(
    ("policy", "parameters"),
    [
        ("fifo", {}),
        ("sjf", {}),
        ("sjf", {"fit": "skip"}),
        ("fair", {}),
        ("tetris", {}),
        ("easy", {}),
    ],
)
def test_a_higher_tier_comes_first(policy, parameters):
    """On one node: the third comes last, is the longest, and goes before the second."""
    jobs = [job(0.0, 10.0), job(1.0, 2.0), job(2.0, 5.0, partition="high")]
    assert starts(jobs, [NODE], HIGH, policy, **parameters) == [0, 15, 10]
    assert starts(jobs, [NODE], {}, policy, **parameters) == [0, 10, 12]


def test_a_reservation_is_kept_whatever_comes():
    """The second job was promised 10 before the third came."""
    jobs = [job(0.0, 10.0), job(1.0, 2.0), job(2.0, 5.0, partition="high"), job(2.0, 5.0)]
    assert starts(jobs, [NODE], HIGH, "conservative") == [0, 10, 12, 17]


def test_backfilling_goes_by_tier_before_its_own_order():
    """Until 10 the third may fill the second node, and the fourth, which is shorter; it is last."""
    jobs = [
        job(0.0, 10.0, partition="high"),
        job(0.0, 2.0, partition="high"),
        job(1.0, 5.0, n=2, partition="high"),
        job(1.0, 5.0, partition="high"),
        job(1.0, 3.0),
    ]
    assert starts(jobs, [NODE, NODE], HIGH, "easy", order="sjf") == [0, 0, 10, 2, 7]
    assert starts(jobs, [NODE, NODE], {}, "easy", order="sjf") == [0, 0, 10, 5, 2]


def test_slurm_s_planner_goes_by_tier():
    jobs = [job(0.0, 600.0), job(1.0, 60.0), job(2.0, 300.0, partition="high")]
    first, low, high = starts(jobs, [NODE], HIGH, "slurm")
    assert first < high < low
    first, low, high = starts(jobs, [NODE], {}, "slurm")
    assert first < low < high


def test_a_job_of_several_partitions_has_the_highest_tier():
    """The third job runs on the second node alone; the last may use either, and goes first."""
    nodes = [{"cpu": 4, "partitions": ["high"]}, NODE]
    jobs = [
        job(0.0, 10.0),
        job(0.0, 20.0, partition="high"),
        job(1.0, 5.0),
        job(2.0, 5.0, partition="low|high"),
    ]
    assert starts(jobs, nodes, HIGH) == [0, 0, 15, 10]


def test_a_job_that_waits_blocks_lower_tiers_on_its_own_machines_alone():
    """The third waits for both of the first two nodes; the fourth is behind it, the last is not."""
    nodes = [NODE, NODE, {"cpu": 4, "partitions": ["low"]}]
    jobs = [
        job(0.0, 10.0),
        job(1.0, 5.0, n=2, partition="high"),
        job(2.0, 8.0, partition="low"),
        job(3.0, 5.0, partition="low"),
        job(4.0, 1.0, partition="low"),
    ]
    assert starts(jobs, nodes, HIGH) == [0, 10, 2, 10, 15]


def test_tiers_go_before_queues():
    """The low job's queue has used nothing; the high one, of a queue that runs, goes first."""
    jobs = [
        job(0.0, 10.0, queue="a"),
        job(1.0, 5.0, queue="b"),
        job(2.0, 5.0, queue="a", partition="high"),
    ]
    cluster = sim.Cluster.mixed([NODE]).with_partitions(HIGH).with_queues("weighted")
    w = sim.Workload.from_jobs(jobs)
    for fit in ("strict", "skip", "pack"):
        fast, _ = assert_same(w, cluster, policies.build("fifo", fit=fit))
        assert fast.job_start.tolist() == [0, 15, 10]


def test_equal_tiers_are_none():
    w = sim.Workload.from_jobs([job(0.0, 1.0)])
    cluster = sim.Cluster.mixed([NODE])
    fifo = policies.build("fifo")
    same = cluster.with_partitions({"low": {"tier": 1}, "high": {}})
    assert variant(w, same, fifo) == variant(w, cluster, fifo)
    assert "TIERS" in variant(w, cluster.with_partitions(HIGH), fifo)


# ---- admission

SHORT = {
    "low": {"max_time_s": 100, "default_time_s": 20},
    "high": {"max_time_s": 10, "min_nodes": 2, "max_nodes": 3},
}


def test_a_partition_that_does_not_admit_a_job_is_left_out():
    """Nodes of low, of high, of both. The first may use high alone, and the third low alone.

    So the second, of two nodes of low, waits for the third; the last is rejected: it asks for more
    than either allows.
    """
    nodes = [{"cpu": 4, "partitions": [names]} for names in ("low", "high")] + [NODE]
    jobs = [
        job(0.0, 10.0, n=2, partition="high"),
        job(1.0, 5.0, n=2, partition="low"),
        job(1.0, 50.0, partition="low|high"),
        job(2.0, 5.0, n=2, n_nodes=4, partition="high|low"),
        job(3.0, 200.0, partition="low|high"),
    ]
    fast = run(jobs, nodes, SHORT, fit="skip")
    assert fast.job_start.tolist()[:4] == [0, 51, 1, 56]
    assert fast.jobs["outcome"].to_pylist() == ["done"] * 4 + ["rejected"]


def test_a_rejected_job_may_be_larger_than_the_cluster():
    jobs = [job(0.0, 5.0, n=9), job(0.0, 5.0, cpu=64, n_nodes=7), job(1.0, 5.0)]
    fast = run(jobs, [NODE], {"low": {"max_nodes": 4}}, "easy")
    assert fast.jobs["outcome"].to_pylist() == ["rejected", "rejected", "done"]


def test_the_highest_tier_is_of_partitions_that_admit():
    """The third may not use high, and so goes last."""
    jobs = [job(0.0, 10.0), job(1.0, 10.0), job(2.0, 20.0, partition="low|high")]
    rules = {"low": {}, "high": {"tier": 5, "max_time_s": 15}}
    assert starts(jobs, [NODE], rules) == [0, 10, 20]
    assert starts(jobs, [NODE], {"high": {"tier": 5}}) == [0, 30, 10]


def test_jobs_without_a_request_have_the_default_time():
    """The first is planned for 20 s, as low says; so the third, of 15 s, passes the second.

    With limits that are enforced it ends after 20 s.
    """
    nodes = [NODE, NODE]
    jobs = [
        job(0.0, 60.0) | {"requested_s": None},
        job(1.0, 10.0, n=2),
        job(2.0, 15.0),
        job(2.0, 25.0),
    ]
    assert starts(jobs, nodes, SHORT, "easy") == [0, 60, 2, 70]
    cluster = sim.Cluster.mixed(nodes).with_partitions(SHORT).with_enforced_limits()
    fast, _ = assert_same(sim.Workload.from_jobs(jobs), cluster, policies.build("easy"))
    assert fast.job_start.tolist() == [0, 20, 2, 30]
    assert fast.jobs["outcome"].to_pylist() == ["timeout", "done", "done", "done"]
    longest = {"low": {"max_time_s": 20}}
    assert starts(jobs[:3], nodes, longest, "easy") == [0, 60, 2]
    assert fast.workload.jobs["requested_s"].null_count == 1


def test_an_error_instead_of_a_rejected_job():
    w = sim.Workload.from_jobs([job(0.0, 200.0, partition="low|high")])
    cluster = sim.Cluster.mixed([NODE]).with_partitions(SHORT, "error")
    with pytest.raises(InputError, match="requests 200 s and 1 nodes") as caught:
        sim.simulate(w, cluster, policies.build("fifo"))
    assert "low: at most 100 s; high: at most 10 s, 2 to 3 nodes" in str(caught.value)
    with pytest.raises(InputError, match="unknown value of unadmitted 'drop'"):
        cluster.with_partitions(SHORT, "drop")


def test_a_job_of_any_machines_is_of_no_partition():
    w = sim.Workload.from_jobs([job(0.0, 200.0)])
    cluster = sim.Cluster.mixed([{"cpu": 4, "partitions": ["high"]}]).with_partitions(
        {"high": {"max_time_s": 1}}
    )
    fast, _ = assert_same(w, cluster, policies.build("fifo"))
    assert fast.jobs["outcome"].to_pylist() == ["done"]


# ---- exclusive use


def alone(*arguments, **columns):
    """Return such a job that takes whole machines."""
    return job(*arguments, cpu=1, exclusive=True, **columns)


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
def test_an_exclusive_task_has_a_machine_for_itself(fit):
    """The third needs an empty node; in strict order the last is behind it."""
    jobs = [alone(0.0, 10.0), job(1.0, 10.0, cpu=1), alone(2.0, 5.0), job(3.0, 1.0, cpu=1)]
    third = {"strict": 10, "skip": 3, "pack": 3}[fit]
    assert starts(jobs, [NODE, NODE], {}, fit=fit) == [0, 1, 10, third]
    w = sim.Workload.from_jobs(jobs)
    fast, _ = assert_same(w, sim.Cluster.machines(2, cpu=4), policies.build("fifo", fit=fit))
    assert fast.job_start.tolist() == [0, 1, 10, third]


def test_a_partition_may_be_exclusive():
    """Of one node: jobs of high take it whole, those of low share it."""
    jobs = [
        job(0.0, 10.0, cpu=1, partition="high"),
        job(0.0, 5.0, cpu=1),
        job(0.0, 7.0, cpu=1),
        job(1.0, 5.0, cpu=1, partition="low|high"),
    ]
    rules = {"high": {"exclusive": True}}
    assert starts(jobs, [NODE], rules, fit="skip") == [0, 10, 10, 17]
    assert starts(jobs, [NODE], {}, fit="skip") == [0, 0, 0, 1]
    admits = {"high": {"exclusive": True, "max_time_s": 8}}
    assert starts([*jobs[1:3], job(1.0, 9.0, cpu=1, partition="low|high")], [NODE], admits) == [
        0, 0, 1
    ]  # fmt: skip


def test_a_reservation_of_whole_machines():
    """The gang is planned for 10, on both nodes; the third ends before, and the last does not."""
    jobs = [
        job(0.0, 10.0, cpu=1),
        job(1.0, 5.0, cpu=1, n=2, exclusive=True),
        job(2.0, 5.0, cpu=1),
        job(3.0, 20.0, cpu=1),
    ]
    for policy in ("easy", "conservative"):
        assert starts(jobs, [NODE, NODE], {}, policy) == [0, 10, 2, 15]


def test_exclusive_use_counts_in_nothing_else():
    """On a node each, all metrics are those of jobs that share; so is the order by shares."""
    shared = [job(0.0, 10.0, cpu=1, queue="a"), job(0.0, 4.0, cpu=2, queue="b")]
    cluster = sim.Cluster.machines(2, cpu=4).with_queues("weighted")
    results = [
        sim.simulate(
            sim.Workload.from_jobs([row | {"exclusive": is_alone} for row in shared]),
            cluster,
            policies.build("fair", fit="skip"),
        )
        for is_alone in (False, True)
    ]
    assert results[1].task_machine.tolist() == [0, 1]
    first, second = (result.metrics for result in results)
    assert {name: second[name] for name in first} == pytest.approx(first, nan_ok=True)
    used = sim.Workload.from_jobs(
        [
            job(0.0, 9.0, cpu=1, queue="a", exclusive=True),
            job(0.0, 9.0, cpu=2, queue="b"),
            job(1.0, 1.0, cpu=2, queue="b"),
            job(1.0, 1.0, cpu=2, queue="a"),
        ]
    )
    fast, _ = assert_same(used, cluster, policies.build("fifo"))
    assert fast.job_start.tolist() == [0, 0, 2, 1]  # a uses 1 CPU, and b 2


def test_a_gang_of_more_slots_than_machines_is_an_error():
    w = sim.Workload.from_jobs([job(0.0, 1.0, cpu=1, n=3, exclusive=True)])
    with pytest.raises(InputError, match="has room for only 2 of them at once"):
        sim.simulate(w, sim.Cluster.machines(2, cpu=4), policies.build("fifo"))


def test_in_a_pool_of_slots_nothing_is_exclusive():
    w = sim.Workload.from_jobs([alone(0.0, 1.0), alone(0.0, 1.0)])
    fast = sim.simulate(w, sim.Cluster.slots(2), policies.build("fifo"))
    assert fast.job_start.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({"hihg": {}}, "unknown partition 'hihg'; did you mean 'high'"),
        ({"high": {"teir": 2}}, "did you mean 'tier'"),
        ({"high": {"tier": -1}}, "partitions.high.tier must be"),
        ({"high": {"tier": 70000}}, "at most 65533, not 70000"),
        ({"high": 3}, "partitions.high has the keys tier"),
        ({"high": {"max_time_s": 0}}, "high.max_time_s must be"),
        ({"high": {"min_nodes": 4, "max_nodes": 2}}, "min_nodes must be at most max_nodes"),
        ({"high": {"max_time_s": 60, "default_time_s": 61}}, "default_time_s must be at most"),
    ],
)
def test_rules_that_can_not_be(rules, text):
    with pytest.raises(InputError, match=text):
        sim.Cluster.mixed([NODE]).with_partitions(rules)
