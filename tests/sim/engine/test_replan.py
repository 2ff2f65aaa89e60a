"""Periodic planning: the kernel against the naive simulator, and the model against real logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sim
from policies.base import Policy
from sim.engine.plan import Event, Order, Queues, Replan
from tests.examples import examples
from tests.sim.engine.test_kernel import assert_same


@dataclass(frozen=True)
class AnyReplan(Policy):
    """Periodic planning with random options, limits and keys, changed at random in callbacks."""

    plan_seed: int = 0
    callbacks: bool = False

    name: ClassVar[str] = "any-replan"

    @property
    def events(self) -> Event:  # type: ignore[override]
        return Event.TIMER | Event.JOB_ARRIVED if self.callbacks else Event.NONE

    def prepare(self, world, plan):
        rng = np.random.default_rng(self.plan_seed)
        n = len(world.columns.job_submit)
        plan.queues = Queues.make(1, order=rng.choice([Order.KEY, Order.FIFO, Order.REMAINING]))
        longest = np.maximum.reduceat(world.columns.stage_max_s, world.columns.job_stage0[:-1])
        wrong = rng.choice([0.0, 0.5, 1.0, 1.0, 1.0, 2.0, 10.0], n)
        plan.set_jobs(key=rng.integers(0, 3, n).astype(float), expected_s=np.ceil(wrong * longest))

        def pick(*values):
            return values[rng.integers(0, len(values))]

        resolution_s = pick(1, 1, 2, 60)
        plan.replan = Replan(
            plans=bool(rng.integers(0, 5)),
            interval_s=pick(1.0, 1.0, 2.0, 3.5),
            resolution_s=resolution_s,
            window_s=max(pick(3, 40, 86_400), resolution_s),
            linear_s=pick(0, 0, 1),
            depth=pick(2, 5, 500),
            reserved=pick(0, 0, 1, 2),
            main_depth=pick(0, 100),
            main_interval_s=pick(1, 7, 60),
            main_delay_s=pick(0, 3),
            completing_s=pick(0.0, 0.25, 1.5),
            clock_s=float(rng.integers(0, 100)) + pick(0.0, 0.5, 0.7),
            poll_phase_s=pick(0.0, 0.3),
            main_phase=int(rng.integers(0, 7)),
            plan_phase_s=pick(0.0, 0.5, 0.9),
        )
        plan.timer_s = 1.25 if self.callbacks else np.inf

    def react(self, memory, batch, world, plan):
        rng = np.random.default_rng([self.plan_seed, int(batch.now * 1000)])
        n = len(world.columns.job_submit)
        some = rng.permutation(n)[: rng.integers(0, n + 1)]
        plan.set_jobs(some, key=rng.integers(0, 6, len(some)).astype(float))
        if batch.now < 40:
            plan.timer_s = batch.now + 1.25


@st.composite
def rigid_workloads(draw, resources=("cpu",), max_jobs: int = 12) -> sim.Workload:
    """Draw rigid jobs of one stage, or of a few, or of a single task, often many at once."""
    jobs, clock = [], 0.0
    seconds = st.sampled_from([1.0, 2.5, 4.0, 7.25, 30.0, 70.0])
    for _ in range(draw(st.integers(1, max_jobs))):
        clock += draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.5, 20.0]))
        demand = {"cpu": draw(st.sampled_from([1, 1, 2, 3]))}
        if "mem" in resources:
            demand["mem"] = draw(st.integers(0, 4))
        stages = [{"name": "s0", "durations_s": draw(st.lists(seconds, min_size=1, max_size=5))}]
        if draw(st.integers(0, 5)) == 0:
            parents = draw(st.sampled_from([[], ["s0"]]))
            more = draw(st.lists(seconds, min_size=1, max_size=2))
            stages.append({"name": "s1", "durations_s": more, "parents": parents})
        stages = [stage | {"demand": demand} for stage in stages]
        n_tasks = sum(len(stage["durations_s"]) for stage in stages)
        gang = n_tasks > 1 or draw(st.booleans())
        jobs.append({"submit_s": clock, "stages": stages, "min_tasks": n_tasks if gang else 0})
    return sim.Workload.from_jobs(jobs)


def _settings(n: int) -> settings:
    return settings(
        max_examples=examples(n),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
    )


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@_settings(80)
def test_same_bits_as_the_naive_simulator_on_slots(data, plan_seed, callbacks):
    workload = data.draw(rigid_workloads())
    cluster = sim.Cluster.slots(data.draw(st.integers(7, 11)))
    assert_same(workload, cluster, AnyReplan("strict", (), plan_seed, callbacks))


@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1), callbacks=st.booleans())
@_settings(80)
def test_same_bits_as_the_naive_simulator_on_machines(data, plan_seed, callbacks):
    workload = data.draw(rigid_workloads(("cpu", "mem")))
    count = data.draw(st.integers(1, 4))
    cluster = sim.Cluster.machines(count, cpu=-(-21 // count) + 2, mem=-(-28 // count) + 4)
    assert_same(workload, cluster, AnyReplan("strict", (), plan_seed, callbacks))
