"""Strict order, pool by pool, on machines of several kinds: against the naive simulator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.base.errors import InputError
from sim.engine.simulate import variant
from tests.examples import examples
from tests.sim.engine.strategies import AnyPlan, clusters, workloads
from tests.sim.engine.test_choice import AnyChoice, worlds
from tests.sim.engine.test_kernel import assert_same

SETTINGS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "derandomize": True,
}
ORDERS = ("fifo", "sjf", "srpt", "las", "drf", "fair", "priority", "random", "multifactor")
KINDS = [
    {"class": "a", "cpu": 4},
    {"class": "b", "cpu": 4},
    {"class": "b", "cpu": 2},
]


def job(submit_s, seconds, n=1, runs_on="", cpu=4, **more):
    stage = {"durations_s": [seconds] * n, "demand": {"cpu": cpu}, "runs_on": runs_on}
    return {"submit_s": submit_s, "stages": [stage], **more}


def starts(jobs, policy, kinds=KINDS):
    w = sim.Workload.from_jobs(jobs)
    fast, _ = assert_same(w, sim.Cluster.mixed(kinds), policy)
    return fast.job_start.tolist()


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(120), **SETTINGS)
def test_same_bits(data, plan_seed):
    workload, cluster = data.draw(worlds(outages=plan_seed % 3 == 0))
    policy = AnyChoice(fit="per_class", plan_seed=plan_seed, callbacks=plan_seed % 2 == 0)
    fast, slow = assert_same(workload, cluster, policy)
    np.testing.assert_array_equal(fast.task_devices, slow.task_devices)


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60), **SETTINGS)
def test_same_bits_where_sizes_alone_differ(data, plan_seed):
    w = data.draw(workloads())
    small = {"count": 2, "cpu": data.draw(st.integers(1, 3)), "mem": data.draw(st.integers(1, 3))}
    cluster = sim.Cluster.mixed([{"count": 3, "cpu": 4, "mem": 3}, small])
    cluster = cluster.with_queues("weighted") if data.draw(st.booleans()) else cluster
    assert_same(w, cluster, AnyPlan(fit="per_class", plan_seed=plan_seed))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(30), **SETTINGS)
def test_on_equal_machines_it_changes_nothing(data, plan_seed):
    w = data.draw(workloads())
    cluster = data.draw(clusters(w))
    plain, pooled = (AnyPlan(fit=fit, plan_seed=plan_seed) for fit in ("strict", "per_class"))
    assert variant(w, cluster, plain) == variant(w, cluster, pooled)


@pytest.mark.parametrize("name", ORDERS)
def test_a_job_that_waits_for_a_class_does_not_block_others(name):
    jobs = [
        job(0.0, 10.0, runs_on="a", user="u"),
        job(1.0, 10.0, runs_on="a", user="u"),
        job(2.0, 10.0, runs_on="b", user="u"),
        job(3.0, 50.0, cpu=2, user="u"),
    ]
    if name == "random":
        jobs = jobs[:3]
    assert starts(jobs, policies.build(name))[:3] == [0.0, 10.0, 2.0]


def test_machines_of_devices_alone():
    kinds = [{"class": "a", "count": 2, "devices": {"gpu": 2}}, {"devices": {"gpu": 1}}]
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": [4.0], "demand": {"gpu": gpus}}]}
        for gpus in (2.0, 2.0, 2.0, 0.5, 0.5, 0.0)
    ]
    assert starts(jobs, policies.build("fifo", fit="skip"), kinds) == [0, 0, 4, 0, 0, 0]


def test_a_job_keeps_all_machines_that_it_can_run_on():
    jobs = [
        job(0.0, 10.0, runs_on="a"),
        job(0.0, 5.0, runs_on="b"),
        job(1.0, 10.0, runs_on="a|b", n=2),  # waits for the large ones of both classes
        job(2.0, 10.0, runs_on="b", cpu=3),  # has to wait for it
        job(3.0, 10.0, runs_on="b", cpu=2),  # the small one is of no use to the others
    ]
    assert starts(jobs, policies.build("fifo")) == [0.0, 0.0, 5.0, 15.0, 3.0]
    assert starts(jobs, policies.build("fifo", fit="skip")) == [0.0, 0.0, 5.0, 15.0, 3.0]


def test_a_waiting_gang_keeps_the_machines_that_its_slots_can_be_on():
    jobs = [
        job(0.0, 10.0, runs_on="a"),
        job(1.0, 10.0, n=4, cpu=2, min_tasks=4),
        job(2.0, 10.0, runs_on="b", cpu=1),  # could take room from the gang
    ]
    assert starts(jobs, policies.build("fifo")) == [0.0, 10.0, 10.0]
    jobs[1] = job(1.0, 10.0, n=2, cpu=2, runs_on="a", min_tasks=2)
    assert starts(jobs, policies.build("fifo")) == [0.0, 10.0, 2.0]


def test_gangs_of_other_classes_do_not_wait_for_each_other():
    jobs = [
        job(0.0, 10.0, runs_on="a", cpu=3),
        job(1.0, 10.0, n=2, cpu=2, runs_on="a", min_tasks=2),
        job(2.0, 10.0, n=2, cpu=2, runs_on="b", min_tasks=2),
    ]
    assert starts(jobs, policies.build("fifo")) == [0.0, 10.0, 2.0]


def test_queues_block_only_themselves():
    jobs = [
        job(0.0, 10.0, runs_on="a", cpu=3, queue="x"),
        job(1.0, 10.0, runs_on="a", cpu=4, queue="x"),
        job(2.0, 7.0, runs_on="a", cpu=1, queue="x"),  # behind it
        job(2.0, 7.0, runs_on="a", cpu=1, queue="y"),  # not behind it
        job(3.0, 10.0, runs_on="b", queue="x"),
    ]
    assert starts(jobs, policies.build("fair")) == [0.0, 10.0, 20.0, 2.0, 3.0]


def test_more_pools_than_bits_are_pools_by_class():
    kinds = [{"cpu": cpu} for cpu in range(1, 66)]
    jobs = [job(0.0, 1.0, cpu=cpu) for cpu in range(65, 0, -1)]
    assert "CLASSES" not in variant(
        sim.Workload.from_jobs(jobs), sim.Cluster.mixed(kinds), policies.build("fifo")
    )
    classed = [kind | {"class": "ab"[kind["cpu"] % 2]} for kind in kinds]
    late = [*jobs, job(0.5, 1.0, cpu=65), job(0.6, 1.0, cpu=64), job(0.6, 1.0, cpu=1, runs_on="a")]
    assert "CLASSES" in variant(
        sim.Workload.from_jobs(late), sim.Cluster.mixed(classed), policies.build("fifo")
    )


def test_equal_machines_of_which_the_last_is_smaller_are_one_pool():
    """The second waits for a whole machine; the third, that fits the smaller, is behind it."""
    w = sim.Workload.from_jobs([job(0.0, 10.0), job(1.0, 10.0), job(2.0, 1.0, cpu=1)])
    fast, _ = assert_same(w, sim.Cluster.machines(1.5, cpu=4), policies.build("fifo"))
    assert fast.job_start.tolist() == [0.0, 10.0, 10.0]


def test_the_older_name_is_the_same():
    w = sim.Workload.from_jobs([job(0.0, 1.0, cpu=c) for c in (1, 2, 3)])
    cluster = sim.Cluster.mixed(KINDS)
    old, new = (policies.build("fifo", fit=fit) for fit in ("per_class", "strict"))
    assert variant(w, cluster, old) == variant(w, cluster, new)
    assert "CLASSES" in variant(w, cluster, new)


NODES = [
    {"cpu": 4, "partitions": ["batch*", "debug"]},
    {"cpu": 4, "partitions": ["batch*"]},
    {"cpu": 4, "class": "a100", "partitions": ["gpu"]},
]


def test_jobs_run_in_their_partitions_and_block_only_those():
    """The third waits for the first node, which debug is; the fourth takes the second at once.

    The fifth may run in two, and takes the node of either that is free first; the last names none,
    so it waits in the default, for the second node.
    """
    jobs = [
        job(0.0, 10.0, partition="debug"),
        job(0.0, 30.0, partition="gpu"),
        job(1.0, 10.0, partition="debug"),
        job(2.0, 5.0, partition="batch"),
        job(3.0, 5.0, partition="gpu|debug"),
        job(4.0, 5.0),
    ]
    assert starts(jobs, policies.build("fifo"), NODES) == [0, 0, 10, 2, 20, 7]


def test_partitions_and_classes_go_together():
    w = sim.Workload.from_jobs([job(0.0, 1.0, runs_on="a100", partition="gpu")])
    sim.simulate(w, sim.Cluster.mixed(NODES), policies.build("fifo"))
    w = sim.Workload.from_jobs([job(0.0, 1.0, runs_on="a100")])
    with pytest.raises(InputError, match="may only run on machines of class a100"):
        sim.simulate(w, sim.Cluster.mixed(NODES), policies.build("fifo"))


def test_a_partition_that_is_not_there_is_named():
    w = sim.Workload.from_jobs([job(0.0, 1.0, partition="debu")])
    with pytest.raises(InputError, match="did you mean 'debug'") as caught:
        sim.simulate(w, sim.Cluster.mixed(NODES), policies.build("fifo"))
    assert caught.value.rule == "no such partition"
    assert "its partitions: batch, debug, gpu" in str(caught.value)


@pytest.mark.parametrize(
    ("partitions", "text"),
    [
        ([["a*"], ["b*"]], "only one partition may be the default, not a, b"),
        ([["a|b"]], "is no name of a partition"),
        ([["*"]], "is no name of a partition"),
        ([3], "partitions"),
    ],
)
def test_partitions_that_can_not_be(partitions, text):
    with pytest.raises(InputError, match=text):
        sim.Cluster.mixed([{"cpu": 1, "partitions": names} for names in partitions])


def test_a_larger_cluster_keeps_its_partitions():
    twice = sim.Cluster.mixed(NODES).fraction(2.0)
    assert twice.machine_class.tolist() == [0, 0, 1, 1, 2, 2]
    assert twice.partitions == (("batch", "debug"), ("batch",), ("gpu",))
    assert twice.default_partition == "batch"
