"""Jobs that need the outputs of other jobs: submitted late, failed, or neither."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.engine.plan import Event, Order, Queues
from tests.examples import examples
from tests.sim.engine.strategies import AnyPlan, clusters, workloads
from tests.sim.engine.test_kernel import FITS, assert_same

SLOTS = sim.Cluster.slots(1)


def job(name, submit_s=0.0, length_s=1.0, **more):
    return {
        "job_id": name,
        "submit_s": submit_s,
        "stages": [{"durations_s": [length_s]}],
        **more,
    }


def run(jobs, policy="fifo", cluster=SLOTS):
    return sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(policy))


def outcome(result):
    rows = result.jobs.to_pylist()
    return {r["job_id"]: (r["outcome"], r["submit_s"], r["finish_s"]) for r in rows}


def test_a_blind_job_fails_at_its_submission_if_an_input_is_late():
    jobs = [
        job("a", length_s=2.0),
        job("early", 1.0, input_mode="blind", inputs=["a"]),
        job("late", 2.0, input_mode="blind", inputs=["a"]),
        job("careless", 1.0, input_mode="none", inputs=["a"]),
        job("can do without", 1.0, input_mode="blind", inputs={"a": "soft"}),
    ]
    result = outcome(run(jobs, cluster=sim.Cluster.slots(9)))
    assert {name: how for name, (how, _, _) in result.items()} == {
        "a": "done",
        "early": "failed",
        "late": "done",  # made at the very instant: ends come before submissions
        "careless": "done",
        "can do without": "done",
    }


def test_a_polling_job_is_submitted_its_lag_after_its_last_input():
    jobs = [
        job("a", length_s=5.0),
        job("b", length_s=7.0),
        job("both", 1.0, input_mode="poll", poll_lag_s=0.5, inputs=["a", "b"]),
        job("long after", 20.0, input_mode="poll", poll_lag_s=0.5, inputs=["a"]),
        job("lag binds", 6.0, input_mode="poll", poll_lag_s=4.0, inputs=["a"]),
    ]
    result = outcome(run(jobs, cluster=sim.Cluster.slots(9)))
    assert result["both"] == ("done", 7.5, 8.5)
    assert result["long after"] == ("done", 20.0, 21.0)
    assert result["lag binds"] == ("done", 9.0, 10.0)


def test_jct_counts_from_the_submission_that_happened():
    jobs = [job("a", length_s=5.0), job("b", input_mode="poll", inputs=["a"], length_s=3.0)]
    metrics = run(jobs).metrics
    assert metrics["jct_mean_s"] == (5.0 + 3.0) / 2
    assert metrics["wait_mean_s"] == 0.0


def test_failure_cascades_to_those_that_poll_at_once_and_to_the_blind_at_their_submission():
    class Watcher:
        name, events = "watcher", Event.JOB_FAILED | Event.JOB_ARRIVED

        def begin(self, world, plan):
            self.received = []
            self.view = world.view

        def react(self, memory, batch, world, plan):
            self.received += [(batch.now, k, r) for k, r in zip(batch.kind, batch.row, strict=True)]

    jobs = [
        job("a", length_s=9.0),
        job("b", 1.0, input_mode="blind", inputs=["a"]),
        job("c", 1.0, input_mode="poll", inputs=["b"]),
        job("d", 2.0, input_mode="poll", inputs=["c"]),  # fails before its own time
        job("e", 3.0, input_mode="blind", inputs=["d"]),
        job("f", 3.0, input_mode="poll", inputs=["e", "a"]),
    ]
    watcher = Watcher()
    workload = sim.Workload.from_jobs(jobs)
    result = sim.simulate(workload, SLOTS, watcher)
    arrived, failed = int(Event.JOB_ARRIVED), int(Event.JOB_FAILED)
    assert watcher.received == [
        (0.0, arrived, 0),
        (1.0, failed, 1),
        (1.0, failed, 2),
        (1.0, failed, 3),
        (3.0, failed, 4),
        (3.0, failed, 5),
    ]
    assert result.job_failed.tolist() == [False, True, True, True, True, True]
    assert watcher.view["failed"].tolist() == [0, 1, 1, 1, 1, 1]
    assert np.isnan(result.job_finish[1:]).all()
    assert result.metrics["jobs_failed"] == 5 / 6


def test_value_is_what_is_downloaded_from_jobs_that_are_complete():
    jobs = [
        job("a", length_s=2.0, downloads=[1.0, 2.0, 3.0, 4.0]),  # the first comes too early
        job("b", 1.0, input_mode="blind", inputs=["a"], downloads=[5.0]),
    ]
    assert run(jobs).metrics["value_attained"] == 3 / 5


def test_first_come_first_served_means_submitted_not_traced():
    jobs = [
        job("a", length_s=4.0),
        job("polls", 0.0, input_mode="poll", poll_lag_s=1.0, inputs=["a"]),
        job("b", 1.0, length_s=4.0),
        job("c", 2.0, length_s=1.0),
    ]
    finish = {name: end for name, (_, _, end) in outcome(run(jobs)).items()}
    assert finish == {"a": 4.0, "b": 8.0, "c": 9.0, "polls": 10.0}


@pytest.mark.parametrize(
    ("inputs", "rule", "text"),
    [
        (["x"], "missing input", "there is no job 'x'"),
        ({"a": "firm"}, "unknown kind", "firm"),
        ("a", "wrong type", "list of names"),
    ],
)
def test_an_input_that_can_not_be_is_named(inputs, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        sim.Workload.from_jobs([job("a"), job("b", inputs=inputs)])
    assert caught.value.rule == rule


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_as_the_naive_simulator(fit, data, plan_seed, callbacks):
    workload = data.draw(workloads(inputs=True))
    cluster = data.draw(clusters(workload))
    plan = AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=callbacks)
    assert_same(workload, cluster, plan)


def test_many_jobs_come_due_in_the_order_of_time_and_row():
    rng = np.random.default_rng(5)
    lags = rng.integers(0, 40, 300).astype(float)
    jobs = [job("a", length_s=1.0)]
    jobs += [
        job(f"r{i}", 0.0, 0.0, input_mode="poll", poll_lag_s=lag, inputs=["a"])
        for i, lag in enumerate(lags)
    ]

    class Arrivals:
        name, events = "arrivals", Event.JOB_ARRIVED

        def begin(self, world, plan):
            self.rows = []
            plan.queues = Queues.make(1, order=Order.FIFO)

        def react(self, memory, batch, world, plan):
            self.rows += batch.row.tolist()

    result = Arrivals()
    sim.simulate(sim.Workload.from_jobs(jobs), SLOTS, result)
    assert result.rows == [0, *(1 + np.lexsort([np.arange(300), lags])).tolist()]
