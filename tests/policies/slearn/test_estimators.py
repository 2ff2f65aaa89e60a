"""Lookups of estimators."""

import sim
from policies.slearn.estimators import usable_slots


def test_usable_slots_are_those_of_the_widest_stage():
    stages = [
        {"name": "a", "durations_s": [1.0] * 9, "demand": {"cpu": 3, "mem": 1}},
        {"name": "b", "durations_s": [1.0] * 2, "demand": {"cpu": 1, "mem": 1}},
    ]
    w = sim.Workload.from_jobs(
        [{"submit_s": 0, "stages": stages}, {"submit_s": 0, "stages": stages[1:]}]
    )
    machines = sim.Cluster.machines(2, cpu=8, mem=4)
    assert usable_slots(w.columns, machines).tolist() == [4, 2]
    assert usable_slots(w.columns, sim.Cluster.slots(5)).tolist() == [5, 2]
