"""Columns of a timeline: tasks by lane, when stages and jobs were ready, demands and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, Mask
from sim.base.errors import InputError
from sim.base.lanes import lanes
from sim.cluster.sizing import stage_demands
from sim.engine.recording import ready_s
from sim.result import Result
from sim.workload.columns import Columns, final_deadline_s
from sweep.driver.captured_run import Captured

DONE, FAILED, INPUT_LOST, OUTPUT_LOST = -1, 0, 1, 2
"""Reasons of bars: not stopped, or an index in `sim.engine.stops.REASONS`."""
MAX_TASKS = 1_000_000
"""Largest number of tasks of a page, and of lanes that are one task high."""


@dataclass(frozen=True)
class Timeline:
    """One run, ready to be drawn.

    N bars: attempts of T tasks, L lanes, G stages, J jobs, R resources.

    Attributes
    ----------
    title : str
        The policy and its cell.
    result : Result
        The run.
    task, count : (N,) int
        First task of a bar, and its number of like tasks: 1 unless there are very many tasks.
    lane : (N,) int32
        The row that a bar is drawn in; bars of a lane do not overlap.
    start_s, finish_s, ready_s : (N,) float64
        When its tasks ran, and when they could have, as far as their inputs and attempts before
        are concerned.
    lane_machine : (L,) int32
        The machine of each lane, ascending.
    is_pilot : (N,) bool
        Bars of a job's pilots: tasks started before a finite start gate of the policy was lifted.
    reason : (N,) int8
        Why the attempt was stopped (index in `sim.engine.stops.REASONS`); DONE if it was not.
    stage : (N,) int64
        The stage of each bar.
    demand : (G, R) float64
        Demand of a task of each stage.
    deadline_s : (J,) float64
        Time at which a job is due, s; NaN for none.
    """

    title: str
    result: Result
    task: I8
    count: I8
    lane: I4
    start_s: F8
    finish_s: F8
    ready_s: F8
    lane_machine: I4
    is_pilot: Mask
    reason: I1
    stage: I8
    demand: F8
    deadline_s: F8


def build_timeline(captured: Captured) -> Timeline:
    """Make the timeline of a captured run.

    Up to `MAX_TASKS` tasks each has a bar; of more the bars are batches of like tasks. Each attempt
    that was stopped has a bar as well.

    Raises
    ------
    InputError
        If the run kept no tasks, or none ever ran.
    """
    result, columns = captured.result, captured.result.workload.columns
    if result.records is None:
        raise InputError("the run kept no times of tasks", rule="record")
    stopped = result.stopped
    assert stopped is not None
    if columns.n_tasks <= MAX_TASKS:
        assert result.task_start is not None
        assert result.task_finish is not None
        assert result.task_machine is not None
        task, count = np.arange(columns.n_tasks), np.ones(columns.n_tasks, np.int64)
        start, finish, machine = result.task_start, result.task_finish, result.task_machine
        first_finish = finish.copy()  # that of a run whose output was lost later
        rows = stopped.reason == OUTPUT_LOST
        np.minimum.at(first_finish, stopped.task[rows], stopped.stop_s[rows])
        ready = ready_s(columns, first_finish)
    else:
        batches = result.batches
        assert batches is not None
        read = {name: batches[name].to_numpy() for name in batches.column_names}
        task = columns.stage_task0[read["stage"]] + read["task"]
        count = read["count"].astype(np.int64)
        start, finish, machine = read["start_s"], read["finish_s"], read["machine"]
        ready = start.copy()
    n_runs, n_stops = len(task), len(stopped.task)
    reason = np.concatenate([np.full(n_runs, DONE, np.int8), stopped.reason])
    if n_stops:
        row = np.searchsorted(task, stopped.task, side="right") - 1
        task = np.concatenate([task, stopped.task])
        count = np.concatenate([count, np.ones(n_stops, np.int64)])
        start = np.concatenate([start, stopped.start_s])
        finish = np.concatenate([finish, stopped.stop_s])
        machine = np.concatenate([machine, stopped.machine])
        ready = np.concatenate([ready, ready[row]])
        _wait_again(columns, task, start, finish, ready, reason)
    ready = np.minimum(ready, start)
    ran = np.flatnonzero(np.isfinite(start) & np.isfinite(finish))
    if not len(ran):
        raise InputError("no task of the run ever started: there is nothing to draw", rule="empty")
    ran = ran[np.lexsort((task[ran], start[ran], machine[ran]))]
    lane, lane_machine = lanes(machine[ran], start[ran], finish[ran])
    order = np.lexsort((start[ran], lane))
    ran, lane = ran[order], lane[order]
    stage = columns.stages_of(task[ran])
    submit = result.job_submit[columns.stage_job[stage]]
    pilot = _is_pilot(columns.stage_job[stage], task[ran], start[ran], captured.pilots)
    elapsed = result.job_finish - result.job_submit
    return Timeline(
        title=captured.title,
        result=result,
        task=task[ran].astype(np.int64),
        count=count[ran],
        lane=lane,
        start_s=start[ran],
        finish_s=finish[ran],
        ready_s=np.maximum(ready[ran], np.minimum(submit, start[ran])),
        lane_machine=lane_machine,
        is_pilot=pilot,
        reason=reason[ran],
        stage=stage,
        demand=stage_demands(result.allocated, result.cluster),
        deadline_s=result.job_submit + final_deadline_s(columns, elapsed),
    )


def _wait_again(columns: Columns, task: I8, start: F8, finish: F8, ready: F8, reason: I1) -> None:
    """Set from when on attempts after the first of their task were ready.

    That is the end of the attempt before; but a lost output is made again from when a reader found
    it lost, and the reader waits until it is there.
    """
    order = np.lexsort((reason == DONE, finish, start, task))
    again = np.flatnonzero(np.diff(task[order]) == 0)
    before, after = order[again], order[again + 1]
    ready[after] = np.where(reason[before] == OUTPUT_LOST, np.inf, finish[before])
    following = dict(zip(before.tolist(), after.tolist(), strict=True))
    failures = order[np.isin(reason[order], (FAILED, INPUT_LOST))]
    number = np.arange(len(failures)) - np.searchsorted(task[failures], task[failures])
    if not len(failures):
        return
    by_task = task[order]
    lost = columns.attempt_lost[columns.attempt0[task[failures]] + number]
    for reader, source in zip(failures[lost >= 0].tolist(), lost[lost >= 0].tolist(), strict=True):
        runs = order[slice(*np.searchsorted(by_task, [source, source + 1]))].tolist()
        losses = [k for k, row in enumerate(runs) if reason[row] == OUTPUT_LOST]
        last = max(k for k in losses if k == losses[0] or finish[runs[k]] <= finish[reader])
        remade = next(row for row in runs[last + 1 :] if reason[row] in (DONE, OUTPUT_LOST))
        ready[runs[last + 1]] = min(ready[runs[last + 1]], finish[reader])
        ready[following[reader]] = finish[remade]


def _is_pilot(job: I4, task: I8, start: F8, pilots: I4) -> Mask:
    """Mark the attempts of each job's first tasks to start, as many as it has pilots."""
    by_task = np.lexsort((start, task))
    first = by_task[np.diff(task[by_task], prepend=-1) > 0]
    order = first[np.lexsort((task[first], start[first], job[first]))]
    rank = np.arange(len(order)) - np.searchsorted(job[order], job[order])
    return np.isin(task, task[order[rank < pilots[job[order]]]])


def stage_times(timeline: Timeline) -> dict[str, Any]:
    """Return when each stage was ready, began and ended, (G,) s; NaN for never."""
    n = len(timeline.demand)
    ready, start, finish = np.full(n, np.inf), np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(ready, timeline.stage, timeline.ready_s)
    np.minimum.at(start, timeline.stage, timeline.start_s)
    np.maximum.at(finish, timeline.stage, timeline.finish_s)
    times = {"ready": ready, "start": start, "finish": finish}
    return {name: np.where(np.isfinite(value), value, np.nan) for name, value in times.items()}
