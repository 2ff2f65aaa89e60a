"""Whole machines as capacities, for several kinds of machines."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import pytest

import sim
from sim.base.errors import InputError
from sweep.grid import cluster_size, clusters
from sweep.questions.search.machines import machine_range


def test_machines_of_several_kinds_are_whole() -> None:
    shape = [{"count": 7, "cpu": 8}, {"count": 4, "cpu": 16}]
    config = {"shape": shape, "count": 1, "load": None, "queues": {"mode": "global"}}
    jobs = [{"submit_s": 0, "stages": [{"durations_s": [1.0]}]}]
    machines = machine_range(config, 0.2, 1.0, sim.Workload.from_jobs(jobs))
    assert (machines.first, machines.last) == (3, 11)
    assert not machines.too_few
    for n in range(1, 12):
        assert cluster_size.at_capacity(config, 1, machines.capacity(n)).n_machines == n


@pytest.mark.parametrize(
    ("shape", "demand", "minimum"),
    [
        ({"cpu": 8}, {"cpu": 8}, 5),  # of a gang of five
        ("slots", {}, 5),
        ([{"count": 9, "cpu": 1}, {"count": 3, "cpu": 8}], {"cpu": 8}, 10),
    ],
)
def test_too_few_machines_are_known_without_the_workload(
    shape: Any, demand: Any, minimum: int
) -> None:
    stages = [{"durations_s": [1.0] * 9, "demand": demand}]
    n_gang = 3 if isinstance(shape, list) else 5
    jobs = [{"submit_s": index, "min_tasks": n_gang, "stages": stages} for index in (0, 9)]
    workload = sim.Workload.from_jobs(jobs)
    config = {"shape": shape, "count": 1 if isinstance(shape, list) else 12, "load": None}
    machines = pickle.loads(pickle.dumps(partial(machine_range, config, 0.05, 1.0)))(workload)
    assert machines.last == 12
    for n in range(machines.first, 12):
        try:
            clusters.build_for(workload, config, machines.capacity(n))
        except InputError:
            assert n in machines.too_few
        else:
            assert n not in machines.too_few
            assert n >= minimum
    with pytest.raises(InputError, match="the high end of capacity's interval: at capacity"):
        machine_range(config, 0.05, 0.3, workload)
