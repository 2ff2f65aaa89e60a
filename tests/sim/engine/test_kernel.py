"""The kernel against the naive simulator, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim.base import jit
from sim.engine.plan import Event
from tests.examples import examples
from tests.sim.engine.outcome import Spy, differences, run_kernel, run_reference
from tests.sim.engine.strategies import AnyPlan, clusters, workloads

FITS = ("strict", "skip", "pack")


def assert_same(workload, cluster, policy):
    fast, outcome = run_kernel(workload, cluster, policy)
    slow, expected = run_reference(workload, cluster, policy)
    for name in differences(outcome, expected):
        np.testing.assert_array_equal(outcome.get(name), expected.get(name), err_msg=name)
        raise AssertionError(f"{name}: {outcome.get(name)}, not {expected.get(name)}")
    return fast, slow


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(48),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_with_any_columns(fit, data, plan_seed):
    workload = data.draw(workloads())
    cluster = data.draw(clusters(workload))
    assert_same(workload, cluster, AnyPlan(fit=fit, plan_seed=plan_seed))


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(48),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_with_callbacks(fit, data, plan_seed):
    workload = data.draw(workloads())
    cluster = data.draw(clusters(workload))
    assert_same(workload, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=True))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_in_a_pool(data, plan_seed):
    workload = data.draw(workloads(max_jobs=9, gangs=False))
    cluster = sim.Cluster.slots(data.draw(st.integers(3, 6)))
    assert_same(workload, cluster, AnyPlan(plan_seed=plan_seed))


class Unheard(Spy):
    """The same policy, subscribed to ticks that never come: the general loop must serve it."""

    def __init__(self, policy):
        super().__init__(policy)
        self.events = Event.TIMER


@pytest.mark.parametrize("name", ["fifo", "sjf", "srpt", "las", "ljf", "random"])
@pytest.mark.parametrize("width", [2, 40 if jit.JIT else 10])
def test_hot_loop_and_general_loop_agree(name, width):
    rng = np.random.default_rng(width)
    jobs = [
        {
            "submit_s": float(t),
            "stages": [
                {"name": "m", "durations_s": rng.lognormal(3, 1, width).tolist()},
                {"name": "r", "durations_s": [float(rng.integers(1, 9))], "parents": ["m"]},
            ],
        }
        for t in np.sort(rng.uniform(0, 40 * width, 300))
    ]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.slots(30)
    params = {"first_threshold_s": 30.0} if name == "las" else {}
    policy = policies.build(name, **params)
    hot = sim.simulate(workload, cluster, policy, record="tasks")
    general = sim.simulate(workload, cluster, Unheard(policy), record="tasks")
    np.testing.assert_array_equal(hot.task_start, general.task_start)
    np.testing.assert_array_equal(hot.job_finish, general.job_finish)
    waits = hot.job_start - workload.columns.job_submit
    assert np.count_nonzero(waits) > 100, "the pool must be crowded for this to mean anything"
