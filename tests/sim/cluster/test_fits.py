"""Demands, gangs and hard queues against an empty cluster."""

from __future__ import annotations

import pytest

import sim
from sim.cluster.fits import check_fits


def jobs(*demands, gang=0, queue="q", n=1):
    """One job of a stage of `n` tasks for each of the demands."""
    stages = [
        {"name": f"s{i}", "durations_s": [1.0] * n, "demand": d} for i, d in enumerate(demands)
    ]
    fine = {"job_id": "fine", "submit_s": 0.0, "queue": queue, "stages": [{"durations_s": [1]}]}
    big = {"job_id": "big", "submit_s": 1.0, "queue": queue, "min_tasks": gang, "stages": stages}
    return sim.Workload.from_jobs([fine, big])


def broken(workload, cluster):
    with pytest.raises(sim.InputError) as caught:
        check_fits(workload, cluster)
    return caught.value.rule, str(caught.value)


def test_a_demand_larger_than_any_machine_names_everything():
    rule, text = broken(jobs({"cpu": 1}, {"cpu": 20.5}), sim.Cluster.machines(100, cpu=16))
    assert rule == "demand too large"
    for part in ("'big'", "'s1'", "cpu", "20.5", "16"):
        assert part in text


def test_a_demand_equal_to_the_machine_fits():
    check_fits(jobs({"cpu": 16}), sim.Cluster.machines(1, cpu=16))
    check_fits(jobs({"cpu": 0.1 + 0.2}), sim.Cluster.machines(1, cpu=1))


def test_a_demand_that_no_one_machine_has_whole():
    import numpy as np

    mixed = sim.Cluster(("cpu", "mem"), np.array([[8.0, 1.0], [1.0, 8.0]]))
    check_fits(jobs({"cpu": 8, "mem": 1}, {"cpu": 1, "mem": 8}), mixed)
    rule, text = broken(jobs({"cpu": 8, "mem": 8}), mixed)
    assert rule == "demand too large"
    assert "no single machine" in text


def test_a_resource_that_the_cluster_lacks():
    rule, text = broken(jobs({"cpu": 1, "gpu": 1}), sim.Cluster.machines(2, cpu=4))
    assert rule == "missing resource"
    assert "'big'" in text
    assert "gpu" in text


def test_a_resource_that_nobody_demands_need_not_be_there():
    check_fits(jobs({"cpu": 1, "gpu": 0}), sim.Cluster.machines(2, cpu=4))
    check_fits(jobs({"cpu": 1}), sim.Cluster.machines(2, cpu=4, disk=1))


def test_slots_ignore_demands():
    check_fits(jobs({"cpu": 500, "gpu": 7}), sim.Cluster.slots(1))


@pytest.mark.parametrize(
    ("cluster", "fits"),
    [
        (sim.Cluster.slots(4), True),
        (sim.Cluster.slots(3), False),
        (sim.Cluster.machines(2, cpu=4), True),
        (sim.Cluster.machines(1, cpu=7), False),
        (sim.Cluster.machines(3, cpu=3), False),  # one a machine
        (sim.Cluster.machines(4, cpu=3), True),
    ],
)
def test_a_gang_must_fit_at_once(cluster, fits):
    gang = jobs({"cpu": 2}, gang=4, n=5)
    if fits:
        check_fits(gang, cluster)
    else:
        rule, text = broken(gang, cluster)
        assert rule == "gang too large"
        assert "'big'" in text
        assert "4" in text


def test_a_slot_of_a_gang_holds_any_task_of_the_job():
    gang = jobs({"cpu": 4, "mem": 1}, {"cpu": 1, "mem": 4}, gang=1)
    check_fits(gang, sim.Cluster.machines(1, cpu=4, mem=4))
    gang = jobs({"cpu": 4, "mem": 1}, {"cpu": 1, "mem": 4}, gang=2, n=2)
    assert broken(gang, sim.Cluster.machines(1, cpu=7, mem=7))[0] == "gang too large"


def test_unequal_tasks_that_fill_a_gang_take_what_they_demand():
    gang = jobs({"cpu": 4, "mem": 1}, {"cpu": 1, "mem": 4}, gang=2)
    check_fits(gang, sim.Cluster.machines(1, cpu=5, mem=5))
    rule, text = broken(gang, sim.Cluster.machines(1, cpu=5, mem=4))
    assert rule == "gang too large"
    assert "only 1 of them fit" in text


def test_a_gang_that_demands_nothing_fits():
    check_fits(jobs({"cpu": 0}, gang=1), sim.Cluster.machines(1, cpu=1))


def test_a_hard_share_is_a_floor_of_quanta():
    third = {"q": 1 / 3, "r": 2 / 3}
    check_fits(jobs({"cpu": 1}), sim.Cluster.slots(3).with_queues("hard", third))
    rule, text = broken(jobs({"cpu": 1}), sim.Cluster.slots(2).with_queues("hard", third))
    assert rule == "demand too large"
    assert "'q'" in text
    assert "share of 0" in text


def test_a_demand_or_gang_over_the_share_of_its_queue():
    half = {"q": 0.5}
    machines = sim.Cluster.machines(2, cpu=8)
    check_fits(jobs({"cpu": 8}), machines.with_queues("hard", half))
    machine = sim.Cluster.machines(1, cpu=8).with_queues("hard", half)
    rule, text = broken(jobs({"cpu": 5}), machine)
    assert rule == "demand too large"
    assert "hard share of 4" in text
    rule, text = broken(jobs({"cpu": 3}, gang=3, n=3), machines.with_queues("hard", half))
    assert rule == "gang too large"
    assert "hold 9 cpu" in text
    check_fits(jobs({"cpu": 5}), sim.Cluster.machines(1, cpu=8).with_queues("weighted", half))


def test_shares_left_out_are_equal_over_the_queues_of_the_workload():
    two = [
        {
            "job_id": q,
            "submit_s": 0,
            "queue": q,
            "min_tasks": 2,
            "stages": [{"durations_s": [1, 1]}],
        }
        for q in ("a", "b")
    ]
    w = sim.Workload.from_jobs(two)
    check_fits(w, sim.Cluster.slots(4).with_queues("hard"))
    assert broken(w, sim.Cluster.slots(3).with_queues("hard"))[0] == "gang too large"
    many = [{"submit_s": 0, "queue": f"q{i}", "stages": [{"durations_s": [1]}]} for i in range(49)]
    check_fits(sim.Workload.from_jobs(many), sim.Cluster.slots(49).with_queues("hard"))


@pytest.mark.parametrize("mode", ["hard", "weighted"])
def test_a_queue_without_a_share(mode):
    cluster = sim.Cluster.slots(10).with_queues(mode, {"prod": 0.5, "test": 0.5})
    rule, text = broken(jobs({"cpu": 1}, queue="prd"), cluster)
    assert rule == "unknown queue"
    assert "'fine'" in text
    assert "did you mean 'prod'" in text


def test_a_capacity_beyond_counting_is_only_large():
    check_fits(jobs({"cpu": 1e6}), sim.Cluster.machines(3, cpu=1e30))


def test_a_stage_without_any_machine_is_named():
    kinds = [{"class": "a", "count": 9, "cpu": 4}, {"class": "b", "cpu": 4}]
    stages = [{"name": "only", "durations_s": [1.0], "demand": {"cpu": 1}, "runs_on": "b"}]
    workload = sim.Workload.from_jobs([{"job_id": "big", "submit_s": 0.0, "stages": stages}])
    rule, text = broken(workload, sim.Cluster.mixed(kinds).fraction(0.3))
    assert rule == "demand too large"
    assert "'only'" in text
    assert "no machine of the cluster (class b" in text
