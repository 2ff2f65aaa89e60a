"""Every registered policy, on random worlds: a new one is found here by itself."""

from __future__ import annotations

import dataclasses
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import policies
import sim
from sim import transforms
from sim.base.parameters import type_hints
from sim.check import invariants
from sim.check.broken import BrokenRuleError
from sim.check.domains import check_domains, crossing
from sim.check.record import Record
from sim.check.worlds import (
    CLUSTERS,
    RIGID_CLUSTERS,
    SHARES,
    SLOTS,
    crowd,
    rigid_crowd,
    with_levels,
)
from sim.engine.batches import TaskRecords
from tests.sim.engine.strategies import clusters, workloads

RIGID = [name for name in policies.names() if policies.spec(name).rigid_jobs]
NAMES = [name for name in policies.names() if name not in RIGID]


def fits_of(name: str) -> list[str]:
    """Return the fits to try a policy with: its own, and the one that skips."""
    own = policies.build(name).fit
    return list(dict.fromkeys([own, "skip"]))


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("name", NAMES)
def test_invariants_of_a_crowd(name, cluster):
    for seed, fit in enumerate(fits_of(name)):
        result = sim.simulate(
            crowd(seed), cluster, policies.build(name, fit=fit), seed=seed, record="tasks"
        )
        run = Record(result)
        assert (run.start > run.ready).any()  # some had to wait
        invariants.check(result, fit)


@pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("name", NAMES)
def test_invariants_of_gangs(name, cluster):
    workload = with_levels(crowd(2, gangs=True), cluster)
    for fit in fits_of(name):
        result = sim.simulate(workload, cluster, policies.build(name, fit=fit), record="tasks")
        invariants.check(result, fit)


@pytest.mark.parametrize("cluster", RIGID_CLUSTERS.values(), ids=RIGID_CLUSTERS)
@pytest.mark.parametrize("name", RIGID)
def test_invariants_of_rigid_jobs(name, cluster):
    if policies.spec(name).has_own_lag and cluster.queue_mode == "hard":
        pytest.skip("it plans nodes that all queues share")
    for knowledge in get_args(type_hints(policies.spec(name))["knowledge"]):
        policy = policies.build(name, knowledge=knowledge)
        for seed in (0, 1):
            workload = with_levels(rigid_crowd(seed), cluster)
            result = sim.simulate(workload, cluster, policy, seed=7, record="tasks")
            assert (result.job_start > result.job_submit).any()  # some had to wait
            invariants.check(result, policy.fit)
            again = sim.simulate(workload, cluster, policy, seed=7, record="jobs")
            invariants.same_bits(result, again)


@pytest.mark.parametrize("mode", ["global", "hard"])
@pytest.mark.parametrize("name", NAMES)
def test_invariants_where_memory_is_overbooked(name, mode):
    shares = SHARES if mode == "hard" else None
    cluster = CLUSTERS["machines-fungible"].with_queues(mode, shares)
    for fit in fits_of(name):
        policy = policies.build(name, fit=fit, fit_resources=("cpu",))
        result = sim.simulate(crowd(1), cluster, policy, record="tasks")
        ran = result.task_finish - result.task_start
        assert (ran > 1.01 * result.workload.columns.task_duration).mean() > 0.1
        invariants.check(result, fit)


@pytest.mark.parametrize("name", NAMES)
def test_every_job_ends_where_outputs_are_lost(name):
    workload = transforms.fail_tasks(crowd(3), single=0.2, lost=0.5)
    for fit in fits_of(name):
        result = sim.simulate(workload, SLOTS, policies.build(name, fit=fit), record="jobs")
        assert np.isfinite(result.job_finish).all()


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), fit=st.sampled_from(["strict", "skip", "pack"]))
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
def test_invariants_of_anything(name, data, fit):
    workload = data.draw(workloads())
    cluster = data.draw(clusters(workload))
    result = sim.simulate(workload, cluster, policies.build(name, fit=fit), record="tasks")
    invariants.check(result, fit)


@pytest.mark.parametrize("cluster", [SLOTS, CLUSTERS["machines-hard"]], ids=["slots", "machines"])
@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits_whatever_is_recorded(name, cluster):
    workload = crowd(3)

    def run(record):
        return sim.simulate(workload, cluster, policies.build(name), seed=7, record=record)

    first = run("tasks")
    invariants.same_bits(first, run("tasks"))
    invariants.same_bits(first, run("jobs"))


@pytest.mark.parametrize("name", NAMES)
def test_one_job_alone_meets_its_critical_path(name):
    stages = [
        {"name": "a", "durations_s": [1.0, 2.0]},
        {"name": "b", "durations_s": [4.0, 1.0], "parents": {"a": "one_to_one"}},
        {"name": "c", "durations_s": [0.5], "parents": ["b"]},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": 3.0, "stages": stages}])
    result = sim.simulate(workload, sim.Cluster.slots(2), policies.build(name))
    if not policies.spec(name).conserves_work:
        assert result.job_finish[0] >= 3 + 5.5
        return
    assert result.job_finish[0] == 3 + 5.5
    assert result.metrics["slowdown_mean"] == 1


def broken(result: sim.Result, **changes) -> sim.Result:
    """Copy a result with some arrays changed, its own left alone."""
    names = ("task_start", "task_machine", "task_finish")
    records = TaskRecords(*(changes.pop(name, getattr(result, name)) for name in names))
    return dataclasses.replace(result, records=records, **changes)


@pytest.fixture(scope="module")
def sound() -> sim.Result:
    cluster = CLUSTERS["machines-hard"]
    return sim.simulate(crowd(4), cluster, policies.build("fifo", fit="skip"), record="tasks")


def test_checks_notice_a_task_that_starts_before_its_inputs(sound):
    c = sound.workload.columns
    child = int(c.edge_child[np.flatnonzero(c.edge_kind == 0)[0]])
    start = sound.task_start.copy()
    start[c.stage_task0[child]] = c.job_submit[c.stage_job[child]] - 0.5
    with pytest.raises(BrokenRuleError):
        invariants.check_inputs_come_first(Record(broken(sound, task_start=start)))


def test_checks_notice_a_task_of_the_wrong_length(sound):
    finish = sound.task_finish + 1e-9
    with pytest.raises(BrokenRuleError):
        invariants.check_tasks_run_their_duration(Record(broken(sound, task_finish=finish)))


def test_checks_notice_a_task_that_is_not_slowed_down():
    policy = policies.build("fifo", fit_resources=("cpu",))
    result = sim.simulate(crowd(1), CLUSTERS["machines-fungible"], policy, record="tasks")
    invariants.check_pace(Record(result))
    finish = result.task_start + result.workload.columns.task_duration
    with pytest.raises(BrokenRuleError):
        invariants.check_pace(Record(broken(result, task_finish=finish)))


def test_checks_notice_an_overfull_machine(sound):
    machine = np.zeros_like(sound.task_machine)
    with pytest.raises(BrokenRuleError):
        invariants.check_capacity(Record(broken(sound, task_machine=machine)))


def test_checks_notice_a_broken_share(sound):
    small = sound.cluster.with_queues("hard", {"x": 0.05, "y": 0.05, "z": 0.05})
    with pytest.raises(BrokenRuleError):
        invariants.check_hard_shares(Record(broken(sound, cluster=small)))


def test_checks_notice_idle_room(sound):
    late = {"task_start": sound.task_start + 1, "task_finish": sound.task_finish + 1}
    with pytest.raises(BrokenRuleError):
        invariants.check_work_is_conserved(Record(broken(sound, **late)), "skip")


def test_checks_notice_a_gang_that_starts_alone():
    result = sim.simulate(crowd(2, gangs=True), SLOTS, policies.build("fifo"), record="tasks")
    start = result.task_start.copy()
    gang = int(np.flatnonzero(result.workload.columns.job_min_tasks)[0])
    rows = np.flatnonzero((Record(result).task_job == gang) & (start == result.job_start[gang]))
    start[rows[1:]] += 0.1
    with pytest.raises(BrokenRuleError):
        invariants.check_gangs(Record(broken(result, task_start=start)))


@pytest.fixture(scope="module")
def on_racks() -> sim.Result:
    """Run rigid jobs that ask for levels; some gangs of one stage cross racks."""
    cluster = RIGID_CLUSTERS["machines-racks"]
    workload = with_levels(rigid_crowd(0), cluster)
    return sim.simulate(workload, cluster, policies.build("easy"), seed=7, record="tasks")


def test_checks_notice_a_gang_in_several_domains(on_racks):
    c, levels = on_racks.workload.columns, on_racks.cluster.topology.levels
    check_domains(on_racks)
    names = np.array(c.levels_required)[c.job_level_required]
    for level in ("rack", "block"):
        gang = int(np.flatnonzero((names == level) & (c.job_n_tasks > 1))[0])
        domain = on_racks.cluster.topology.domain[levels.index(level)]
        machine = on_racks.task_machine.copy()
        first = int(c.stage_task0[c.job_stage0[gang]])
        machine[first] = np.flatnonzero(domain != domain[machine[first]])[0]
        with pytest.raises(BrokenRuleError, match=f"row {gang} is in several"):
            check_domains(broken(on_racks, task_machine=machine))


def test_checks_notice_a_gang_that_is_not_slowed_by_what_it_crosses(on_racks):
    run = Record(on_racks)
    invariants.check_tasks_run_their_duration(run)
    slowed = crossing(on_racks)[run.task_job] > 1
    assert slowed.any()
    full_speed = on_racks.task_start + on_racks.workload.columns.task_duration
    finish = np.where(slowed, full_speed, on_racks.task_finish)
    with pytest.raises(BrokenRuleError, match="lasts"):
        invariants.check_tasks_run_their_duration(Record(broken(on_racks, task_finish=finish)))


def test_checks_notice_a_beaten_bound(sound):
    with pytest.raises(BrokenRuleError):
        invariants.check_bounds(
            Record(broken(sound, job_finish=sound.workload.columns.job_submit + 0.01))
        )
