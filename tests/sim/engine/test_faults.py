"""Faults of all kinds: the kernel against the naive simulator, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim
from policies.base import Policy
from sim.engine import layout
from sim.engine.plan import Event, Order, Queues
from tests.examples import examples
from tests.sim.engine.strategies import AnyPlan, clusters, failures, workloads
from tests.sim.engine.test_kernel import FITS, assert_same

SETTINGS = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "derandomize": True,
}


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(40), **SETTINGS)
def test_same_bits_with_outages_and_slow_periods(fit, data, plan_seed, callbacks):
    w = data.draw(workloads(gangs=False, inputs=True))
    cluster = data.draw(clusters(w, outages=True))
    assert_same(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=callbacks))


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(30), **SETTINGS)
def test_same_bits_with_failures(fit, data, plan_seed, callbacks):
    w = data.draw(workloads(gangs=False))
    w = data.draw(failures(w))
    cluster = data.draw(clusters(w, outages=data.draw(st.booleans())))
    assert_same(w, cluster, AnyPlan(fit=fit, plan_seed=plan_seed, callbacks=callbacks))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@settings(max_examples=examples(40), **SETTINGS)
def test_same_bits_with_evictions(data, plan_seed, callbacks):
    w = data.draw(workloads(gangs=False))
    w = data.draw(failures(w)) if data.draw(st.booleans()) else w
    cluster = data.draw(clusters(w, outages=data.draw(st.booleans())))
    assert_same(w, cluster, AnyPlan(plan_seed=plan_seed, callbacks=callbacks, evicts=True))


class MovingLimits(Policy):
    """A guarantee for each job, drawn anew each second; beyond it tasks run where room is left."""

    events = Event.JOB_ARRIVED | Event.TIMER

    def prepare(self, world, plan):
        plan.queues = Queues.make(2, tier=[0, 1], order=[Order.KEY, Order.SHARE])
        plan.set_jobs(run_limit=0, overflow_queue=1)
        plan.evict = True
        return np.random.default_rng(7)

    def react(self, memory, batch, world, plan):
        rows = np.flatnonzero(memory.random(len(world.view["left"])) < 0.5)
        plan.set_jobs(rows, run_limit=memory.integers(0, 4, len(rows)))
        if world.view["left"].any():
            plan.timer_s = batch.now + 1.0


@pytest.mark.parametrize("seed", range(6))
def test_same_bits_where_guarantees_move_while_tasks_beyond_them_run(seed):
    rng = np.random.default_rng(seed)
    jobs = [
        {
            "submit_s": float(rng.integers(0, 9)),
            "stages": [
                {"name": f"s{s}", "durations_s": np.round(rng.uniform(1, 9, n), 1).tolist()}
                for s, n in enumerate(rng.integers(4, 16, 2))
            ],
        }
        for _ in range(2 + seed % 3)
    ]
    result, _ = assert_same(sim.Workload.from_jobs(jobs), sim.Cluster.slots(6), MovingLimits())
    assert result.stops["reason"].to_pylist().count("evicted") > 0


def test_records_of_stops_are_emptied_when_they_are_full(monkeypatch):
    monkeypatch.setattr(layout, "MIN_RECORDS", 0)
    rng = np.random.default_rng(2)
    jobs = [
        {"submit_s": float(i), "stages": [{"durations_s": rng.uniform(2, 9, 12).tolist()}]}
        for i in range(3)
    ]
    task = np.repeat(np.arange(36), 5)
    after_s = np.round(rng.uniform(0, 2, len(task)))
    w = sim.Workload.from_jobs(jobs).with_failures(
        {"task": task, "after_s": after_s, "lost": np.full(len(task), -1)}
    )
    result, _ = assert_same(w, sim.Cluster.slots(4), AnyPlan(plan_seed=1, evicts=True))
    assert result.stops.num_rows > 10 * 2 * 4
