"""Machines held for the first stage in order that does not fit, against the naive simulator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import sim
from policies.base import Policy
from sim.base.errors import PolicyError
from sim.engine.plan import Choice, Fit, Machine
from tests.examples import COMPILED_WIDE, examples
from tests.sim.engine.strategies import AnyPlan, clusters, failures, workloads
from tests.sim.engine.test_kernel import assert_same


@dataclass(frozen=True)
class Holds(Policy):
    """First come, first served; later ones that fit go first, except on held machines."""

    n: int = 0
    fit: str = "skip"
    name: ClassVar[str] = "holds"

    def prepare(self, world, plan):
        plan.held_machines = self.n
        plan.fit = Fit[self.fit.upper()]


@dataclass(frozen=True)
class HoldsAny(AnyPlan):
    n: int = 0
    choice: int = 0

    def prepare(self, world, plan):
        rng = super().prepare(world, plan)
        plan.held_machines = self.n
        plan.choice = Choice(machine=Machine(self.choice))
        return rng


def starved(jobs: int = 6) -> sim.Workload:
    """Return jobs of two small tasks that fill two machines, and one that needs a whole machine."""
    small = [
        {"submit_s": float(i), "stages": [{"durations_s": [4.0] * 2, "demand": {"cpu": 1}}]}
        for i in range(jobs * 4)
    ]
    large = {"submit_s": 4.5, "stages": [{"durations_s": [1.0] * 2, "demand": {"cpu": 4}}]}
    return sim.Workload.from_jobs(sorted([*small, large], key=lambda job: job["submit_s"]))


@pytest.mark.parametrize(("n", "starts_s"), [(0, (25.0, 26.0)), (1, (8.0, 9.0)), (2, (7.0, 8.0))])
def test_a_large_task_waits_for_small_ones_before_it_alone(n, starts_s):
    cluster = sim.Cluster.machines(2, cpu=4)
    fast, _ = assert_same(starved(), cluster, Holds(n=n))
    assert tuple(fast.task_start[10:12]) == starts_s


@given(
    data=st.data(),
    plan_seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 2, 99]),
    choice=st.integers(0, 2),
    callbacks=st.booleans(),
)
@settings(
    max_examples=examples(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize=True,
)
def test_same_bits(data, plan_seed, n, choice, callbacks):
    workload = data.draw(workloads())
    if data.draw(st.booleans()):
        workload = data.draw(failures(workload))
    cluster = data.draw(clusters(workload, outages=data.draw(st.booleans())))
    assume(not cluster.unit)
    policy = HoldsAny(fit="skip", plan_seed=plan_seed, n=n, choice=choice, callbacks=callbacks)
    assert_same(workload, cluster, policy)


def test_slots_hold_nothing():
    workload = sim.Workload.from_jobs([GANG, GANG])
    fast, _ = assert_same(workload, sim.Cluster.slots(3), Holds(n=2))
    assert fast.job_start.tolist() == [0.0, 1.0]


GANG = {"submit_s": 0.0, "min_tasks": 2, "stages": [{"durations_s": [1.0] * 2}]}


@pytest.mark.parametrize(
    ("workload", "cluster", "policy", "text"),
    [
        (starved(), sim.Cluster.machines(2, cpu=4), Holds(n=-1), "must be 0 or more"),
        (starved(), sim.Cluster.machines(2, cpu=4), Holds(n=1, fit="strict"), "fit strict none"),
    ],
)
def test_what_means_nothing_is_refused(workload, cluster, policy, text):
    with pytest.raises(PolicyError, match=text):
        sim.simulate(workload, cluster, policy)


def test_a_task_without_a_demand_takes_no_held_room():
    rows = [(0.0, 10.0, 2, 3), (1.0, 1.0, 2, 4), (2.0, 2.0, 3, 0), (3.0, 2.0, 1, 1)]
    workload = sim.Workload.from_jobs(
        {"submit_s": t, "stages": [{"durations_s": [s] * n, "demand": {"cpu": cpu}}]}
        for t, s, n, cpu in rows
    )
    fast, _ = assert_same(workload, sim.Cluster.machines(2, cpu=4), Holds(n=2))
    assert fast.job_start.tolist() == [0.0, 10.0, 2.0, 11.0]  # 2.0 was 10.0


@pytest.mark.skipif(COMPILED_WIDE, reason="caps are in no wide variant")
def test_machines_are_held_for_the_first_gang_that_no_cap_lets_others_pass():
    """Gang a waits for its user's cap until 10, so both machines are held for gang b, not for c."""
    rows = [  # name, user, submission, duration, tasks, CPUs of each, gang
        ("runs", "u0", 0.0, 10.0, 1, 1, 0),
        ("a", "u0", 1.0, 1.0, 2, 1, 2),
        ("b", "u1", 2.0, 1.0, 2, 4, 2),
        ("c", "u2", 3.0, 20.0, 1, 1, 0),
    ]
    workload = sim.Workload.from_jobs(
        {
            "job_id": name, "user": user, "submit_s": submit_s, "min_tasks": gang,
            "stages": [{"durations_s": [seconds] * n, "demand": {"cpu": cpu}}],
        }
        for name, user, submit_s, seconds, n, cpu, gang in rows
    )  # fmt: skip
    caps = [{"of": "running_jobs", "by": ["user"], "at_most": 1}]
    cluster = sim.Cluster.machines(2, cpu=4).with_limits(caps, {})
    assert assert_same(workload, cluster, Holds(n=2))[0].job_start.tolist() == [0, 10, 11, 12]
    assert assert_same(workload, cluster, Holds())[0].job_start.tolist()[3] == 3
