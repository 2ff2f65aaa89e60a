"""Whole machines as capacities, where machines differ."""

from __future__ import annotations

import sim
from sweep.grid import clusters
from sweep.search.machines import Machines


def test_machines_of_kinds_are_counted_whole() -> None:
    shape = [{"count": 7, "cpu": 8}, {"count": 4, "cpu": 16}]
    config = {"shape": shape, "count": 1, "load": None, "queues": {"mode": "global"}}
    jobs = [{"submit_s": 0, "stages": [{"durations_s": [1.0]}]}]
    machines = Machines(sim.Workload.from_jobs(jobs), config)
    assert machines.within(0.2, 1.0) == (3, 11)
    for n in range(1, 12):
        capacity = machines.capacity(n)
        assert clusters.at_capacity(machines.workload, config, capacity).n_machines == n
