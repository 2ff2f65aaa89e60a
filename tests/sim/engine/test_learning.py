"""Learnt durations: the kernel against the naive simulator, which passes over no refinement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim
from policies.base import Policy
from sim.base.errors import PolicyError
from sim.engine.plan import Batch, Event, Learning, Order, Plan, Queues, World
from tests.examples import examples
from tests.policies.small import job
from tests.sim.engine.strategies import AnyPlan, clusters, workloads
from tests.sim.engine.test_kernel import FITS, assert_same


@dataclass(frozen=True)
class Learner(AnyPlan):
    """Any plan whose durations are learnt; at every fourth refinement it changes any columns."""

    learns = 1.0

    @property
    def events(self) -> Event:  # type: ignore[override]
        return Event.REFINED

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        if int(batch.now * 1000) % 4 == 0:
            super().react(memory, batch, world, plan)


@pytest.mark.parametrize("fit", FITS)
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(32),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_with_learnt_durations(fit, data, plan_seed):
    workload = data.draw(workloads(inputs=True))
    evicts = fit == "strict" and not workload.columns.job_min_tasks.any() and plan_seed % 3 == 0
    cluster = data.draw(clusters(workload))
    fast, _ = assert_same(workload, cluster, Learner(fit=fit, plan_seed=plan_seed, evicts=evicts))
    assert np.isfinite(fast.job_finish[~fast.job_failed]).all()


def test_what_nobody_expects_is_not_learnt():
    class Forgetful(Learner):
        def prepare(self, world: World, plan: Plan) -> None:
            super().prepare(world, plan)
            plan.stages["expected_s"][:] = np.nan

    workload = sim.Workload.from_jobs([job("a", 0, [1.0])])
    with pytest.raises(PolicyError, match=r"plan\.learning needs the stage column expected_s"):
        sim.simulate(workload, sim.Cluster.slots(1), Forgetful())


@dataclass(frozen=True)
class Doubts(Policy):
    """Shortest remaining work first, learnt each second; at 3 s it expects a lot of job b."""

    events: ClassVar[Event] = Event.TIMER
    name: ClassVar[str] = "doubts"

    def prepare(self, world: World, plan: Plan) -> None:
        n = len(world.columns.stage_job)
        plan.queues = Queues.make(1, order=Order.REMAINING)
        plan.set_stages(expected_s=np.full(n, 2.0))
        none = np.zeros(0)
        runs, group = np.zeros(0, np.int64), np.full((1, n), -1, np.int32)
        plan.learning = Learning(group, none, none, none, runs, 2.0, 1.0, 1.0)
        plan.timer_s = 3.0

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        plan.set_stages([1], jobs=[1], expected_s=100.0)
        plan.timer_s = np.inf


def test_a_policy_that_changes_one_job_is_learnt_over():
    """The refinement at 4 s expects 2 s again, so that b is before c at 5.5 s."""
    jobs = [job("a", 0, [5.5]), job("b", 0, [1.0]), job("c", 0, [1.0])]
    fast, _ = assert_same(sim.Workload.from_jobs(jobs), sim.Cluster.slots(1), Doubts())
    assert fast.job_start.tolist() == [0, 5.5, 6.5]
