"""Machine classes, devices and machine choice, against the naive simulator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from policies.base import Policy
from sim.cluster.faults import Outages
from sim.engine.plan import Choice, Device, Machine, Mix
from tests.examples import examples
from tests.sim.engine.strategies import DURATIONS, AnyPlan
from tests.sim.engine.test_kernel import assert_same

A = {"class": "a", "count": 2, "cpu": 6, "mem": 3, "devices": {"gpu": 4}}
B = {"class": "b", "cpu": 8, "mem": 4, "devices": {"gpu": 2}}
FIRST = Choice()
PLAIN = {"cpu": 4, "mem": 6}


def a_job(submit_s, seconds, gpu=0.0, cpu=1, **stage):
    demand = {"cpu": cpu, "gpu": gpu}
    return {
        "submit_s": submit_s, "stages": [{"durations_s": seconds, "demand": demand, **stage}]
    }  # fmt: skip


@st.composite
def worlds(draw, outages: bool = False):
    jobs, clock = [], 0.0
    for _ in range(draw(st.integers(1, 9))):
        clock += draw(st.sampled_from([0.0, 0.0, 1.0]))
        stages = []
        for s in range(draw(st.integers(1, 3))):
            demand = {
                "cpu": draw(st.integers(0, 3)),
                "mem": draw(st.sampled_from([0, 1, 3])),
                "gpu": draw(st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.75, 1.0, 2.0])),
            }
            stage = {
                "name": f"s{s}",
                "durations_s": draw(st.lists(DURATIONS, min_size=1, max_size=4)),
                "demand": demand,
                "runs_on": draw(st.sampled_from(["", "", "a", "b", "b|a", "a|elsewhere"])),
            }
            if s and draw(st.booleans()):
                stage["parents"] = {"s0": draw(st.sampled_from(["barrier", "one_to_one"]))}
            stages.append(stage)
        job = {"submit_s": clock, "stages": stages, "queue": draw(st.sampled_from(["q0", "q1"]))}
        plain = all(s["runs_on"] == "" and s["demand"]["gpu"] == 0 for s in stages)
        if plain and not outages and draw(st.booleans()):
            job["min_tasks"] = 1
        jobs.append(job)
    kinds = draw(st.permutations([A, B, PLAIN]))
    cluster = sim.Cluster.mixed(kinds, fungible=draw(st.sampled_from([(), ("mem",)])))
    if outages:
        rows = [(draw(st.integers(0, 3)), draw(st.sampled_from([0.5, 1.0, 2.0])), 4.0)]
        cluster = cluster.with_outages(Outages.from_columns(*zip(*rows, strict=True)))
    if draw(st.booleans()):
        cluster = cluster.with_queues("weighted", {"q0": 1, "q1": 2})
    return sim.Workload.from_jobs(jobs), cluster


@dataclass(frozen=True)
class AnyChoice(AnyPlan):
    """Fills every column, and chooses by any rule."""

    def prepare(self, world, plan):
        rng = np.random.default_rng([self.plan_seed, 3])
        memory = super().prepare(world, plan)
        machine = Machine.FIRST if self.fit == "pack" else Machine(int(rng.integers(5)))
        device = Device(int(rng.integers(3)))
        plan.choice = Choice(machine, device, Mix.from_columns(world.columns, world.cluster))
        return memory

    def fill_packing(self, rng, world, plan):
        super().fill_packing(rng, world, plan)
        if world.cluster.fungible:
            plan.packing = replace(plan.packing, overbook=False)


@pytest.mark.parametrize("fit", ["strict", "skip", "pack"])
@given(data=st.data(), plan_seed=st.integers(0, 2**32 - 1))
@settings(
    max_examples=examples(48),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
def test_same_bits_with_any_choice(fit, data, plan_seed):
    workload, cluster = data.draw(worlds(outages=plan_seed % 3 == 0))
    policy = AnyChoice(fit=fit, plan_seed=plan_seed, callbacks=plan_seed % 2 == 0)
    fast, slow = assert_same(workload, cluster, policy)
    np.testing.assert_array_equal(fast.task_devices, slow.task_devices)


@dataclass(frozen=True)
class Chooses(Policy):
    """First come, first served, by one rule."""

    choice: Choice = FIRST

    def prepare(self, world, plan):
        plan.choice = self.choice


def placed(jobs, kinds, choice=FIRST, **more):
    workload = sim.Workload.from_jobs(jobs)
    policy = Chooses(choice=choice, **more)
    r = sim.simulate(workload, sim.Cluster.mixed(kinds), policy, record="tasks")
    devices = [] if r.task_devices is None else r.task_devices.tolist()
    return r.task_machine.tolist(), devices, r.task_start.tolist()


def test_parts_share_a_device_and_whole_ones_are_idle_before():
    jobs = [a_job(0, [9.0], 0.5), a_job(0, [9.0], 0.6), a_job(0, [9.0], 0.5), a_job(0, [9.0], 2.0)]
    machines, devices, _ = placed(jobs, [{**A, "count": 1}])
    assert (machines, devices) == ([0] * 4, [0b1, 0b10, 0b1, 0b1100])
    jobs = [*jobs[:2], a_job(0, [9.0], 3.0)]  # 2.9 are free, but only 2 are idle
    assert placed(jobs, [{**A, "count": 1}])[2] == [0, 0, 9]


def test_a_part_goes_to_the_first_device_or_to_the_tightest():
    jobs = [a_job(0, [9.0], 0.5), a_job(0, [9.0], 0.7), a_job(1, [1.0], 0.3)]
    assert placed(jobs, [A])[1][-1] == 0b1
    assert placed(jobs, [A], Choice(device=Device.TIGHTEST))[1][-1] == 0b10


def test_a_task_runs_on_its_classes_alone():
    jobs = [a_job(0, [1.0], runs_on=on) for on in ("b", "a", "a|b", "")]
    assert placed(jobs, [PLAIN, B, A])[0] == [1, 2, 1, 0]


def test_packing_takes_a_device_in_use_before_idle_ones_and_those_before_an_idle_machine():
    jobs = [a_job(0, [9.0], 0.5), a_job(1, [9.0], 1.0), a_job(2, [9.0], 0.5)]
    choice = Choice(Machine.PACKED, Device.TIGHTEST)
    machines, devices, _ = placed(jobs, [B, A], choice)
    assert (machines, devices) == ([0, 0, 0], [0b1, 0b10, 0b1])


def test_packing_looks_at_idle_devices_of_a_task_that_takes_whole_ones():
    """The last device is in use in part, which is nothing to a task that takes a whole one."""
    jobs = [
        a_job(0, [1.0], 1.0, runs_on="b"), a_job(0, [9.0], 0.5, runs_on="b"), a_job(2, [1.0], 1.0)
    ]  # fmt: skip
    kinds = [{**A, "count": 1}, B]
    mix = Mix.from_columns(sim.Workload.from_jobs(jobs).columns, sim.Cluster.mixed(kinds))
    machines, devices, _ = placed(jobs, kinds, Choice(Machine.PACKED, Device.FRAGMENTATION, mix))
    assert (machines, devices) == ([1, 1, 1], [0b1, 0b10, 0b1])


def test_best_fit_leaves_least_and_the_dot_product_goes_where_least_is_free_of_what_is_asked():
    kinds = [{"cpu": 8, "mem": 2}, {"cpu": 4, "mem": 8}]
    jobs = [{"submit_s": 0, "stages": [{"durations_s": [1.0], "demand": {"cpu": 2, "mem": 1}}]}]
    assert placed(jobs, kinds, Choice(Machine.BEST_FIT))[0] == [0]  # 6/8 + 1/8, or 2/8 + 7/8
    assert placed(jobs, kinds, Choice(Machine.LEAST_DOT))[0] == [1]  # 9/32, or 8/32


def test_fragmentation_leaves_whole_devices_to_those_who_ask_for_them():
    half, whole = a_job(0, [9.0], 0.5), a_job(5, [9.0], 1.0)
    workload = sim.Workload.from_jobs([half, half, whole])
    cluster = sim.Cluster.mixed([{**B, "count": 2}])
    choice = Choice(
        Machine.FRAGMENTATION, Device.FRAGMENTATION, Mix.from_columns(workload.columns, cluster)
    )
    assert placed([half, half, whole], [{**B, "count": 2}], choice)[1] == [0b1, 0b1, 0b10]


def test_scores_that_are_not_kept_are_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    jobs = [
        a_job(t / 4, rng.lognormal(1, 1, 3).tolist(), float(rng.choice([0, 0.5, 0.7, 1, 2])))
        for t in range(40)
    ]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.mixed([A, B, PLAIN])
    policy = policies.build("fgd")
    cached = sim.simulate(workload, cluster, policy, record="tasks")
    monkeypatch.setattr("sim.engine.layout.choice.MAX_SCORES", 0)
    uncached = sim.simulate(workload, cluster, policy, record="tasks")
    np.testing.assert_array_equal(cached.task_machine, uncached.task_machine)
    np.testing.assert_array_equal(cached.task_devices, uncached.task_devices)
    waits = cached.job_start - workload.columns.job_submit
    assert np.count_nonzero(waits) > 5, "the machines must be crowded for this to mean anything"


def test_a_choice_that_means_nothing_is_refused():
    workload = sim.Workload.from_jobs([a_job(0, [1.0], 0.5)])
    cluster = sim.Cluster.mixed([A])
    with pytest.raises(sim.PolicyError, match="with fit pack machines choose tasks"):
        sim.simulate(workload, cluster, Chooses(fit="pack", choice=Choice(Machine.BEST_FIT)))
    with pytest.raises(sim.PolicyError, match="needs a mix of task types"):
        Choice(Machine.FRAGMENTATION)
