"""Offered load: against a fluid that is poured drop by drop, and against runs."""

import numpy as np
import pytest

import policies
import sim
from sim.cluster.load import (
    MAX_STEADY_LOAD,
    amounts_for_load,
    count_for_load,
    offered_load,
    stretch_to_load,
)
from sim.workload.inflow import Inflow

ONE = sim.Cluster.machines(1, cpu=1)


def arriving(rate, end_s=100.0):
    """Let work come at rates, each for the same time."""
    time = np.linspace(0.0, end_s, 1001)
    rates = np.repeat(np.asarray(rate, float), 1000 // len(rate))
    work = np.concatenate([[0.0], np.cumsum(rates * np.diff(time))])
    return Inflow(("cpu", "slot"), time, np.stack([work, np.zeros_like(work)]))


def pour(inflow, capacity):
    """Return the share of the capacity in use, if it is never left free while work waits."""
    waiting = done = 0.0
    for step, more in zip(np.diff(inflow.time_s), np.diff(inflow.work[0]), strict=True):
        waiting += more
        out = min(waiting, capacity * step)
        waiting, done = waiting - out, done + out
    return done / (capacity * inflow.time_s[-1])


RATES = {
    "even": [4.0],
    "more and more": np.arange(10.0),
    "less and less": np.arange(10.0)[::-1],
    "late": [1.0, 1.0, 1.0, 1.0, 9.0],
    "by day": [1.0, 8.0] * 10,
    "any": np.random.default_rng(0).exponential(3.0, 100),
}


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_the_load_is_what_a_fluid_has_in_use(rate, load):
    inflow = arriving(rate)
    n = count_for_load(inflow, ONE, load)
    at_least = 0.5 * inflow.work[0, -1] / (n * 100)
    assert max(pour(inflow, n), at_least) == pytest.approx(load, rel=1e-2)
    cluster = sim.Cluster.machines(n, cpu=1)
    assert offered_load(inflow, cluster)["cpu"] == pytest.approx(load)
    assert pour(inflow, 0.9 * n) > pour(inflow, n) - 1e-9
    assert amounts_for_load(inflow, load) == {"cpu": pytest.approx(n)}


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_beyond_the_steady_load_it_is_in_proportion(rate):
    inflow = arriving(rate)
    n = count_for_load(inflow, ONE, MAX_STEADY_LOAD)
    assert count_for_load(inflow, ONE, 3 * MAX_STEADY_LOAD) == pytest.approx(n / 3)
    third = offered_load(inflow, sim.Cluster.machines(n / 3, cpu=1))["cpu"]
    assert third == pytest.approx(3 * MAX_STEADY_LOAD)


def test_late_work_does_not_count():
    even = count_for_load(arriving([4.0]), ONE, 0.8)
    assert even == pytest.approx(5.0)
    late = arriving([4.0] * 9 + [40.0])  # as much again, in the last tenth
    assert even < count_for_load(late, ONE, 0.8) < 1.3 * even
    # but half of it does, where hardly anything comes before
    assert count_for_load(arriving([0.0, 0.0, 0.0, 4.0]), ONE, 0.8) == pytest.approx(
        0.5 * 1.0 / 0.8
    )


def test_the_bottleneck_counts():
    time = np.linspace(0.0, 10.0, 1001)
    inflow = Inflow(("mem", "cpu", "slot"), time, np.stack([8 * time, 2 * time, 5 * time]))
    single = sim.Cluster.machines(1, cpu=1, disk=3, mem=2)
    assert count_for_load(inflow, single, 0.8) == pytest.approx(5.0)
    load = offered_load(inflow, sim.Cluster.machines(5, cpu=1, disk=3, mem=2))
    assert load == {"cpu": pytest.approx(0.4), "disk": 0.0, "mem": pytest.approx(0.8)}
    slots = offered_load(inflow, sim.Cluster.slots(10))
    assert slots == {"slot": pytest.approx(0.5)}
    with pytest.raises(sim.InputError, match="demands mem, of which the cluster has none"):
        offered_load(inflow, ONE)


def stream(n=400, last_s=20.0):
    rng = np.random.default_rng(1)
    submit = np.sort(rng.uniform(0, 1000, n))
    return sim.Workload.from_jobs(
        {"submit_s": float(t), "stages": [{"durations_s": rng.exponential(last_s, 3).tolist()}]}
        for t in submit
    )


@pytest.mark.parametrize("slots", [20, 35, 60, 200])
def test_load_equals_the_utilization_of_a_run_while_jobs_arrive(slots):
    w, cluster = stream(), sim.Cluster.slots(slots)
    load = offered_load(w.inflow, cluster)["slot"]
    used = sim.simulate(w, cluster, policies.build("fifo")).metrics["utilization"]
    assert used == pytest.approx(min(load, 1.0), rel=0.05)


@pytest.mark.parametrize("load", [0.2, 0.8, 1.3])
def test_arrivals_are_stretched_until_the_load_is_right(load):
    w, cluster = stream(), sim.Cluster.slots(30)
    stretched, factor = stretch_to_load(w, load, cluster)
    assert offered_load(stretched.inflow, cluster)["slot"] == pytest.approx(load, rel=1e-5)
    before, now = w.columns.job_submit, stretched.columns.job_submit
    np.testing.assert_allclose(now - now[0], factor * (before - before[0]))


def test_arrivals_that_no_stretch_helps():
    cluster = sim.Cluster.slots(3)
    both = [{"submit_s": 1.0, "stages": [{"durations_s": [5.0]}]}] * 2
    with pytest.raises(sim.InputError, match="at one instant"):
        stretch_to_load(sim.Workload.from_jobs(both), 0.8, cluster)
    alone = [{"submit_s": t, "stages": [{"durations_s": [5.0]}]} for t in (0.0, 1.0)]
    with pytest.raises(sim.InputError, match="no stretch of arrivals brings the offered load to 7"):
        stretch_to_load(sim.Workload.from_jobs(alone), 7, cluster)
