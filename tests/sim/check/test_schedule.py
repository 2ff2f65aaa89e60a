"""Schedules are checked quickly: right ones pass, each wrong one is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

import policies
import sim
from sim.check.broken import BrokenRuleError
from sim.check.invariants import check_tasks_run_their_duration
from sim.check.record import Record
from sim.check.schedule import check_schedule
from sim.check.worlds import CLUSTERS, SLOTS, crowd
from sim.result import Result


@pytest.fixture(scope="module")
def result() -> Result:
    return sim.simulate(crowd(0), SLOTS, policies.build("fifo"), seed=7)


def test_schedules_of_policies_pass(result: Result) -> None:
    check_schedule(result)
    for name in ("machines", "machines-hard"):
        check_schedule(sim.simulate(crowd(2, gangs=True), CLUSTERS[name], policies.build("fifo")))


def test_machine_holds_no_more_than_it_has(result: Result) -> None:
    n = int(SLOTS.capacity[0, 0])
    smaller = sim.Cluster.slots(n - 1)
    with pytest.raises(BrokenRuleError, match=r"machine 0 holds more slot than it has"):
        check_schedule(_like(result, cluster=smaller))


def _moved(result: Result, by_s: Callable[[np.ndarray], np.ndarray]) -> Result:
    records = result.records
    assert records is not None
    start, end = records.times(slice(0, len(records.start_s)))
    shift = by_s(start)
    moved = dataclasses.replace(records, start_s=start + shift, end_s=end + shift)
    return _like(result, records=moved)


def _like(result: Result, **changed: object) -> Result:
    fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    return Result(**(fields | changed))


def test_task_starts_after_its_job_and_its_inputs(result: Result) -> None:
    with pytest.raises(BrokenRuleError, match="starts before its job is submitted"):
        check_schedule(_moved(result, lambda start: np.full(len(start), -1e4)))
    columns = result.workload.columns
    children = np.isin(columns.task_stage(), columns.edge_child)
    roots = result.workload.columns.job_submit[columns.stage_job[columns.task_stage()]]
    with pytest.raises(BrokenRuleError, match="input"):
        check_schedule(_moved(result, lambda start: np.where(children, roots - start, 0.0)))


def test_task_takes_as_long_as_it_lasts(result: Result) -> None:
    records = result.records
    assert records is not None
    start, end = records.times(slice(0, len(records.start_s)))
    short = dataclasses.replace(records, start_s=start, end_s=start + 0.5 * (end - start))
    with pytest.raises(BrokenRuleError, match="runs for"):
        check_schedule(_like(result, records=short))


def test_job_that_is_done_ran_whole(result: Result) -> None:
    records = result.records
    assert records is not None
    start, end = records.times(slice(0, len(records.start_s)))
    start, end = start.copy(), end.copy()
    start[5] = end[5] = np.nan
    lost = dataclasses.replace(records, start_s=start, end_s=end)
    with pytest.raises(BrokenRuleError, match="is done, and"):
        check_schedule(_like(result, records=lost))


def test_gang_is_in_one_domain_of_the_level_that_it_requires() -> None:
    stage = {"durations_s": [10.0] * 6, "demand": {"cpu": 1}}
    job = {"submit_s": 0.0, "min_tasks": 6, "topology_required": "rack", "stages": [stage]}
    cluster = sim.Cluster.machines(4, cpu=2).with_topology({"levels": {"rack": {"size": 4}}})
    run = sim.simulate(sim.Workload.from_jobs([job]), cluster, policies.build("fifo"))
    check_schedule(run)
    apart = cluster.with_topology({"levels": {"rack": {"size": 2}}})
    with pytest.raises(BrokenRuleError, match="the gang in row 0 is in several domains"):
        check_schedule(_like(run, cluster=apart))


def test_task_that_was_stopped_does_its_work_with_what_was_kept() -> None:
    """Four seconds of ten are kept, and six are run; were fewer kept, six would be too few."""
    jobs = [
        {"submit_s": submit_s, "priority": priority, "checkpoint_s": 0.0, "stages": [stage]}
        for submit_s, priority, stage in (
            (0.0, 0, {"durations_s": [10.0]}), (4.0, 1, {"durations_s": [3.0]})
        )
    ]  # fmt: skip
    policy = policies.build("priority", preemption={"by": "priority"})
    run = sim.simulate(sim.Workload.from_jobs(jobs), sim.Cluster.machines(1, cpu=1), policy)
    check_tasks_run_their_duration(Record(run))
    stopped = run.stopped
    assert stopped is not None
    less = _like(run, stopped=dataclasses.replace(stopped, kept_s=stopped.kept_s / 2))
    with pytest.raises(BrokenRuleError, match="lasts 10 s, and runs from 7 to 13 s"):
        check_tasks_run_their_duration(Record(less))
