"""PCAPS: thresholds by the formula of its authors' code, and starts worked out by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import policies
import sim
from sim.base.errors import InputError
from sim.check import invariants
from sim.check.worlds import CLUSTERS, crowd, with_priorities
from sim.transforms import fail_tasks

POWER = {"idle_w": 0, "busy_w": 100}
DIRTY, CLEAN = 300.0, 100.0


def with_carbon(cluster, *rows, **power):
    return cluster.with_power(POWER | {"carbon_g_per_kwh": [list(row) for row in rows]} | power)


FORK = [
    {"name": "a", "durations_s": [10.0]},
    {"name": "b", "durations_s": [10.0]},
    {"name": "c", "durations_s": [20.0], "parents": ["a"]},
]
"""Paths of 30 s from a and of 10 s from b: a is drawn first in three of four cases."""


def starts(jobs, cluster, seed=0, **options):
    """Return the start of each stage of the last job, s."""
    policy = policies.build("pcaps", **options)
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, cluster, policy, seed=seed, record="tasks")
    return tuple(result.task_start[-3:].tolist())


def test_thresholds_by_hand():
    """With γ = 1/2 an importance of 1/2 is at 1 - (e^1/4 - 1) / (e^1/2 - 1) = 0.5622 of 100 g."""
    from policies.baselines.frontier import threshold

    importance = np.array([0.0, 0.5, 1.0])
    assert threshold(importance, 0.5, CLEAN, DIRTY) == pytest.approx([200, 243.782, 300], abs=1e-3)
    assert threshold(importance, 1.0, CLEAN, DIRTY)[[0, 2]].tolist() == [CLEAN, DIRTY]
    assert threshold(importance, 0.0, CLEAN, DIRTY).tolist() == [DIRTY] * 3
    assert (threshold(np.ones(9), 0.3, 70.1, 330.7) == 330.7).all()  # exactly: it never waits


def test_an_idle_cluster_starts_the_first_stage_alone():
    """Two slots. If b is drawn first, 1/3 is too little: it starts, as nothing runs, and a waits.

    If a is, b has the greatest chance of those left, and both start.
    """
    cluster = with_carbon(sim.Cluster.slots(2), (0, DIRTY), (1000, CLEAN))
    jobs = [{"submit_s": 0.0, "stages": FORK}]
    seen = Counter(starts(jobs, cluster, seed, gamma=1.0) for seed in range(400))
    assert set(seen) == {(0, 0, 10), (10, 0, 20)}
    assert seen[10, 0, 20] == pytest.approx(100, abs=30)
    steady = with_carbon(sim.Cluster.slots(2), (0, DIRTY))
    for calm in (steady, sim.Cluster.slots(2)):  # no other intensity comes, or none is known
        assert {starts(jobs, calm, seed, gamma=1.0) for seed in range(40)} == {(0, 0, 10)}


@pytest.mark.parametrize(("gamma", "late"), [(1.0, 50), (0.1, 1)])
def test_deferred_stages_wait_for_the_intensity_to_fall(gamma, late):
    """Three slots, one of them busy for 100 s: if b is drawn first, both wait for 50.

    At 250 g/kWh an importance of 1/3 is too little with γ = 1: 300 - 200 (1 - 0.3956 / 1.7183) =
    146. With γ = 0.1 it suffices: more than 280.
    """
    rows = ((0, 250.0), (50, CLEAN), (60, DIRTY))
    cluster = with_carbon(sim.Cluster.slots(3), *rows)
    busy = {"submit_s": 0.0, "stages": [{"name": "x", "durations_s": [100.0]}]}
    jobs = [busy, {"submit_s": 1.0, "stages": FORK}]
    seen = {starts(jobs, cluster, seed, gamma=gamma) for seed in range(60)}
    assert seen == {(1, 1, 11), (late, late, late + 10)}


def test_a_stage_whose_tasks_wait_is_looked_at_again_when_those_that_ran_have_ended():
    """Three slots: three tasks of 10 s of job 0 start at 0, alone. A job of 40 s comes at 1.

    If it is drawn first, it and the fourth task start when there is room, at 10. Else (in a fifth
    of the cases) 10 of 40 is too little, and both wait; at 10 nothing runs, so that the first in a
    new draw starts, the other with it if that is the long one.
    """
    cluster = with_carbon(sim.Cluster.slots(3), (0, DIRTY), (1000, CLEAN))
    wide = {"submit_s": 0.0, "stages": [{"name": "w", "durations_s": [10.0] * 4}]}
    jobs = [wide, {"submit_s": 1.0, "stages": [{"name": "x", "durations_s": [40.0]}]}]
    seen = Counter(starts(jobs, cluster, seed, gamma=1.0) for seed in range(400))
    assert set(seen) == {(0, 10, 10), (0, 10, 20)}
    assert seen[0, 10, 20] == pytest.approx(16, abs=14)


@pytest.mark.parametrize("gangs", [False, True])
def test_every_job_ends_while_stages_wait(gangs):
    rows = [(20.0 * i, g) for i, g in enumerate((300, 120, 100, 250, 210))]
    for name in ("slots", "machines", "machines-hard", "machines-racks"):
        cluster = with_carbon(CLUSTERS[name], *rows, repeat_s=100)
        for seed, fit in enumerate(("strict", "skip", "pack")):
            policy = policies.build("pcaps", gamma=1.0, fit=fit)
            result = sim.simulate(crowd(seed, gangs=gangs), cluster, policy, record="tasks")
            invariants.check(result, fit)
            calm = sim.simulate(crowd(seed, gangs=gangs), CLUSTERS[name], policy, record="tasks")
            assert not np.array_equal(calm.job_start, result.job_start)


def test_every_job_ends_where_outputs_are_lost_and_jobs_are_stopped():
    rows = [(20.0 * i, g) for i, g in enumerate((300, 120, 100, 250, 210))]
    cluster = with_carbon(CLUSTERS["slots"], *rows, repeat_s=100)
    lost = fail_tasks(crowd(3), single=0.2, lost=0.5)
    result = sim.simulate(lost, cluster, policies.build("pcaps", gamma=1.0))
    assert np.isfinite(result.job_finish).all()
    policy = policies.build("pcaps", gamma=1.0, preemption={"by": "priority"})
    result = sim.simulate(with_priorities(crowd(0)), cluster, policy, record="tasks")
    invariants.check(result, policy.fit)
    assert len(result.stops)


def test_gamma_is_a_fraction():
    with pytest.raises(InputError, match="gamma"):
        policies.build("pcaps", gamma=2)
