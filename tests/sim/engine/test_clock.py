"""One clock: times of the cluster count from the first submission, and no epoch costs precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.cluster.faults import Outages, Slowdowns
from tests.examples import examples
from tests.sim.engine import reference
from tests.sim.engine.strategies import AnyPlan, clusters, workloads

EPOCH_S = 1_700_000_000.0
INF = float("inf")


def jobs(begin_s, n=4, duration_s=10.0):
    stages = [{"durations_s": [duration_s]}]
    return [{"submit_s": begin_s + 5.0 * i, "stages": stages} for i in range(n)]


def run(begin_s, cluster, policy="fifo", **more):
    w = sim.Workload.from_jobs(jobs(begin_s, **more))
    return sim.simulate(w, cluster, policies.build(policy))


@pytest.mark.parametrize("begin_s", [0.0, 30.25, EPOCH_S, EPOCH_S + 0.5])
def test_outages_count_from_the_first_submission(begin_s):
    cluster = sim.Cluster.slots(1).with_outages(Outages.from_columns([0], [4.0], [100.0]))
    result = run(begin_s, cluster)
    assert result.job_finish.tolist() == [begin_s + t for t in (110.0, 120.0, 130.0, 140.0)]
    assert result.tasks["finish_s"].to_pylist() == result.job_finish.tolist()
    assert result.stops["stop_s"].to_pylist() == [begin_s + 4.0]
    assert result.cluster is cluster
    assert result.jobs["submit_s"].to_pylist() == [begin_s + 5.0 * i for i in range(4)]
    assert result.metrics["jct_mean_s"] == 117.5
    assert not result.notes


@pytest.mark.parametrize("begin_s", [0.0, 30.25, EPOCH_S])
def test_slow_periods_count_from_the_first_submission(begin_s):
    cluster = sim.Cluster.slots(4).with_slowdowns(Slowdowns.from_columns([5.0], [INF], [0.5]))
    result = run(begin_s, cluster)
    assert result.job_finish.tolist() == [begin_s + t for t in (15.0, 25.0, 30.0, 35.0)]
    assert not result.notes


@pytest.mark.parametrize("record", ["jobs", "tasks"])
def test_short_tasks_keep_their_length_in_epoch_seconds(record):
    w = [sim.Workload.from_jobs(jobs(t, 50, 1e-7)) for t in (0.0, EPOCH_S)]
    early, late = (sim.simulate(x, sim.Cluster.slots(1), policies.build("sjf")) for x in w)
    assert late.metrics["jct_mean_s"] == pytest.approx(1e-7)
    same = {k: v for k, v in late.metrics.items() if not np.isnan(v)}
    assert same == {k: v for k, v in early.metrics.items() if not np.isnan(v)}
    np.testing.assert_array_equal(late.slowdown, early.slowdown)
    np.testing.assert_array_equal(late.gap_lb, early.gap_lb)
    times = sim.simulate(w[1], sim.Cluster.slots(1), policies.build("sjf"), record=record)
    assert "mean JCT 1e-07 s" in repr(times)
    np.testing.assert_array_equal(times.job_submit, EPOCH_S + 5.0 * np.arange(50))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), zero=st.sampled_from([1e5, EPOCH_S]))
@settings(
    max_examples=examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_a_run_is_the_same_in_every_epoch(data, plan_seed, zero):
    w = data.draw(workloads(max_jobs=5, gangs=False))
    cluster = data.draw(clusters(w, outages=True, launches=True))
    policy = AnyPlan(fit="skip", plan_seed=plan_seed, callbacks=True)
    first_s = w.columns.job_submit[0]
    early, late = w.counted_from(first_s), w.counted_from(first_s - zero)
    a, b = (sim.simulate(x, cluster, policy) for x in (early, late))
    np.testing.assert_array_equal(a.job_finish + zero, b.job_finish)
    np.testing.assert_array_equal(a.task_start + zero, b.task_start)
    np.testing.assert_array_equal(a.stopped.stop_s + zero, b.stopped.stop_s)
    assert repr(a.metrics) == repr(b.metrics)
    slow = reference.simulate(late, cluster, policy)
    np.testing.assert_array_equal(slow.job_finish, b.job_finish)
    np.testing.assert_array_equal(slow.task_start, b.task_start)


def test_the_calendar_of_jobs_stays_that_of_the_log():
    w = sim.Workload.from_jobs(jobs(EPOCH_S)).with_history(
        {"mean_task_s": [2.0], "submit_s": [EPOCH_S - 90_000.0], "finish_s": [EPOCH_S]}
    )
    own = w.on_own_clock
    assert own.columns.job_submit.tolist() == [0.0, 5.0, 10.0, 15.0]
    assert own.columns.features.history_column("submit_s").tolist() == [-90_000.0]
    for before, after in zip(w.columns.features.codes, own.columns.features.codes, strict=True):
        np.testing.assert_array_equal(before, after)


def test_times_near_0_stay_as_they_are():
    for begin_s in (0.0, 3.3, 86_399.5):
        w = sim.Workload.from_jobs(jobs(begin_s))
        assert w.origin_s == 0.0
        assert w.on_own_clock is w
    for begin_s in (86_400.0, EPOCH_S):
        assert sim.Workload.from_jobs(jobs(begin_s + 0.25)).origin_s == begin_s


@pytest.mark.parametrize("down_s", [4.0, 25.0])
@pytest.mark.parametrize("begin_s", [24.0, EPOCH_S])
def test_a_run_says_so_if_nothing_of_what_was_asked_for_falls_into_it(down_s, begin_s):
    cluster = sim.Cluster.slots(2).with_slowdowns(Slowdowns.from_columns([begin_s], [INF], [1.0]))
    cluster = cluster.with_outages(Outages.from_columns([0], [down_s], [down_s + 1.0]))
    result = run(EPOCH_S, cluster)
    kinds = {"outages": down_s, "slow periods": begin_s}
    unmet = {kind: time_s for kind, time_s in kinds.items() if time_s >= 25.0}
    assert list(result.notes) == [
        f"None of the cluster's 1 {kind} is in the run: the first begins {time_s:g} s, and the run "
        "ends 25 s from the first submission on"
        for kind, time_s in unmet.items()
    ]
    assert all(note in repr(result) for note in result.notes)
    met = result.metrics["outages_met"], result.metrics["slow_periods_met"]
    assert met == tuple(float(kind not in unmet) for kind in kinds)


def test_a_cluster_without_troubles_counts_none():
    result = run(0.0, sim.Cluster.slots(1))
    assert result.notes == ()
    assert not {"outages_met", "slow_periods_met"} & result.metrics.keys()
