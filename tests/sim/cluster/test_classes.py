"""Mixed clusters: kinds of machines, classes and devices."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.cluster.classes import class_bits
from sim.cluster.fits import check_fits

KINDS = [
    {"count": 6, "class": "a", "cpu": 8, "mem": 32, "devices": {"gpu": 2}},
    {"count": 3, "class": "a", "cpu": 8, "mem": 64, "devices": {"gpu": 2}},
    {"class": "b", "cpu": 16},
    {"count": 10, "cpu": 4, "mem": 16},
]


def task_job(gpu=0.0, cpu=1, **stage):
    stage = {"durations_s": [1.0], "demand": {"cpu": cpu, "gpu": gpu}, **stage}
    return {"submit_s": 0, "stages": [stage]}


def refused(*jobs, kinds=KINDS):
    with pytest.raises(InputError) as caught:
        check_fits(sim.Workload.from_jobs(jobs), sim.Cluster.mixed(kinds))
    return f"{caught.value.rule}: {caught.value.message}"


def test_kinds_come_one_after_the_other():
    c = sim.Cluster.mixed(KINDS)
    assert (c.n_machines, c.resources, c.devices) == (20, ("cpu", "mem", "gpu"), "gpu")
    assert c.classes == ("a", "b", "")
    assert c.machine_class.tolist() == [0] * 9 + [1] + [2] * 10
    assert c.capacity[[0, 6, 9, 10]].tolist() == [[8, 32, 2], [8, 64, 2], [16, 0, 0], [4, 16, 0]]
    assert c.describe() == "20 machines of several kinds, cpu 128, mem 544, gpu 18 in total"


@pytest.mark.parametrize(
    ("fraction", "count"),
    [(1.0, [6, 3, 1, 10]), (0.5, [3, 2, 0, 5]), (2.0, [12, 6, 2, 20]), (0.01, [0, 0, 0, 1])],
)
def test_a_fraction_keeps_the_shares_of_the_kinds(fraction, count):
    c = sim.Cluster.mixed(KINDS).fraction(fraction)
    shapes = sim.Cluster.mixed(KINDS).capacity[[0, 6, 9, 10]]
    assert [int((c.capacity == shape).all(axis=1).sum()) for shape in shapes] == count
    assert len(c.machine_class) == c.n_machines


def test_allowed_classes_are_bits():
    assert class_bits(["", "a", "b|a", "a|none", "none"], ["a", "b"]).tolist() == [3, 1, 3, 1, 0]


def test_tasks_that_fit_no_machine_are_refused():
    assert "neither a part of one gpu nor a whole number" in refused(task_job(gpu=1.5))
    assert "the largest machine that it may run on (b) has 16" in refused(
        task_job(cpu=17, runs_on="b")
    )
    assert "the largest machine that it may run on (b) has 0" in refused(
        task_job(gpu=1, runs_on="b")
    )
    text = refused(task_job(runs_on="c|d"))
    assert "no machine of the class" in text
    assert "class c|d, of which the cluster has none; its classes: a, b" in text
    like = sim.Cluster.machines(2, cpu=9)
    with pytest.raises(InputError, match="its classes: none"):
        check_fits(sim.Workload.from_jobs([task_job(runs_on="a")]), like)
    check_fits(
        sim.Workload.from_jobs([task_job(runs_on="a"), task_job(runs_on="b")]), sim.Cluster.slots(1)
    )


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        ([], "several kinds are a list"),
        ("T4", "several kinds are a list"),
        ([3], "kind 0 of the machines must be a mapping"),
        ([{"class": "a"}], "has no resource"),
        ([{"class": "a", "devices": {"gpu": 0}}], "has no resource"),
        ([{"cpu": 0}], "cpu"),
        ([{"cpu": 1, "count": 1.5}], "count"),
        ([{"cpu": 1, "class": "a|b"}], "must not contain '|'"),
        ([{"cpu": 1, "devices": {"gpu": 0.5}}], "0 to 62 whole gpu"),
        ([{"cpu": 1, "devices": {"gpu": 63}}], "0 to 62 whole gpu"),
        ([{"cpu": 1, "devices": {"gpu": 1, "nic": 1}}], "only one resource may come in devices"),
        (
            [{"cpu": 1, "class": f"c{i}"} for i in range(64)],
            "64 classes of machines are too many; at most 63",
        ),
    ],
)
def test_kinds_that_are_none_are_refused(kinds, text):
    with pytest.raises(InputError) as caught:
        sim.Cluster.mixed(kinds)
    assert text in str(caught.value)


def test_machines_may_have_devices_alone():
    cluster = sim.Cluster.mixed([{"count": 2, "devices": {"gpu": 4}}, {"cpu": 8}])
    assert (cluster.resources, cluster.devices) == (("gpu", "cpu"), "gpu")
    assert cluster.capacity.tolist() == [[4, 0], [4, 0], [0, 8]]


def test_devices_are_not_overbooked():
    with pytest.raises(InputError, match="unknown fungible resource 'gpu'"):
        sim.Cluster.mixed(KINDS, fungible=("gpu",))
    assert sim.Cluster.mixed(KINDS, fungible=("mem",)).fungible == ("mem",)


def test_devices_have_whole_quanta_whatever_the_quantum():
    w = sim.Workload.from_jobs([task_job(gpu=0.9), task_job(gpu=1.0)])
    coarse = sim.Workload.from_tables(
        jobs=w.jobs, stages=w.stages, tasks=w.tasks, meta={"quantum": {"cpu": 1.0, "gpu": 0.3}}
    )
    check_fits(coarse, sim.Cluster.mixed(KINDS))  # 3 quanta each, 6 of a machine
    assert np.array_equal(coarse.columns.stage_demand[:, 1], [3, 3])
