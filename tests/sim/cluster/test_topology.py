"""Domains of machines by size and by name; what can't be is refused."""

from __future__ import annotations

import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.cluster.changes import with_changes


def domains(levels, machines=None):
    cluster = sim.Cluster.mixed(machines or [{"cpu": 4, "count": 6}])
    return cluster.with_topology({"levels": levels}).topology.domain.tolist()


def test_domains_are_of_a_size_or_of_names():
    levels = {"block": {"size": 4}, "rack": {"size": 2}}
    assert domains(levels) == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]]
    machines = [
        {"cpu": 4, "count": 4, "nodes": "n[1-4]"},
        {"cpu": 8, "count": 2, "nodes": "m[1-2]"},
    ]
    named = {"switch": {"nodes": {"s0": "n[1-2],m1", "s1": "n[3-4],m2"}}}
    assert domains(named, machines) == [[0, 0, 1, 1, 0, 1]]


def test_machines_that_are_left_out_leave_their_domain():
    machines = [{"cpu": 4, "count": 4, "nodes": "n[1-4]"}]
    cluster = sim.Cluster.mixed(machines).fraction(0.5)
    spec = {"levels": {"switch": {"nodes": {"s0": "n[1-2]", "s1": "n[3-4]"}}}}
    assert cluster.with_topology(spec).topology.domain.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ({"rack": {"size": 2, "nodes": {}}}, "needs either size"),
        ({"rack": {}}, "needs either size"),
        ({"rack": {"size": 2, "factor": 0.5}}, "factor must be"),
        ({"rack": {"size": 2, "factr": 1.5}}, "did you mean 'factor'"),
        ({"rack": {"size": 1.5}}, "size must be"),
        ({"rack": {"size": 2}, "block": {"size": 4}}, "levels are listed from the widest"),
        ({"block": {"size": 4}, "rack": {"size": 3}}, "its domain 1 lies in several"),
        ({"rack": {"nodes": {"a": "n[1-2]"}}}, "machine 0 is in no domain"),
    ],
)
def test_levels_that_can_not_be_are_refused(levels, text):
    with pytest.raises(InputError, match=text):
        domains(levels)


def test_a_machine_is_in_one_domain():
    machines = [{"cpu": 4, "count": 2, "nodes": "n[1-2]"}]
    with pytest.raises(InputError, match="machine n1 is in b and in another domain"):
        domains({"rack": {"nodes": {"a": "n[1-2]", "b": "n1"}}}, machines)


def test_machines_that_come_later_are_in_domains_too():
    """By size they are in further ones; by name beside the machine that they copy."""
    cluster = sim.Cluster.mixed([{"cpu": 2, "count": 4, "nodes": "n[1-4]"}])
    racks = cluster.with_topology({"levels": {"rack": {"size": 2}}})
    changes = [{"at_s": 1.0, "machines": 3}]
    assert with_changes(racks, changes).topology.domain.tolist() == [[0, 0, 1, 1, 2, 2, 3]]
    assert racks.with_machines_like(0, -1).topology.domain.tolist() == [[0, 0, 1]]
    named = {"levels": {"rack": {"nodes": {"a": "n1,n3", "b": "n2,n4"}}}}
    assert with_changes(cluster.with_topology(named), changes).topology.domain.tolist() == [
        [0, 1, 0, 1, 0, 0, 0]
    ]


def test_gangs_run_on_machines_that_come_later():
    stage = {"durations_s": [9.0] * 4, "demand": {"cpu": 1}}
    jobs = [
        {"submit_s": 0.0, "min_tasks": 4, "topology_required": "rack", "stages": [stage]}
        for _ in range(3)
    ]
    racks = sim.Cluster.mixed([{"cpu": 2, "count": 2}])
    racks = racks.with_topology({"levels": {"rack": {"size": 2, "factor": 1.5}}})
    grown = with_changes(racks, [{"at_s": 1.0, "machines": 2}])
    run = sim.simulate(sim.Workload.from_jobs(jobs), grown, policies.build("fifo"))
    assert run.job_start.tolist() == [0, 1, 9]
    assert run.task_machine.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1]
