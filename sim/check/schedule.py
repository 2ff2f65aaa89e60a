"""Fast check of a schedule: room, inputs and durations, in O(T log T) for T tasks.

`sim.check.invariants` looks at each task at each instant, which small worlds allow. This check is
for runs whose policy may have looked for a fault of the simulator: it reads the records of tasks
and attempts, and the workload, and none of the run's state or metrics.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I8
from sim.check.broken import refuse
from sim.check.domains import check_domains
from sim.check.elastic import check_elastic
from sim.check.record import SLACK
from sim.cluster.exclusive import with_parts
from sim.cluster.speeds import class_speeds
from sim.engine.layout.choice import machine_quanta
from sim.engine.layout.columns import demand_quanta, order_resources, resource_quanta
from sim.engine.plan import Plan
from sim.engine.record import Run
from sim.workload.elastic import has_elastic
from sim.workload.schema import EDGE_KINDS

BARRIER = EDGE_KINDS.index("barrier")


class _Rows(NamedTuple):
    """Attempts of tasks, or of batches of like ones."""

    task: I8
    size: I8  # number of tasks
    machine: I8
    begin_s: F8  # holds room from then on
    end_s: F8


def check_schedule(run: Run) -> None:
    """Check that a run's tasks use no more room than there is, have their inputs, and take long.

    Parameters
    ----------
    run : Run
        A run with records of tasks. Resources that can be overbooked are not looked at.

    Raises
    ------
    BrokenRuleError
        If a machine holds more than it has, a task starts before its job or its inputs, or a job
        takes less than its longest task.
    """
    own = run.on_own_clock
    if own.records is None or own.stopped is None:
        raise ValueError('the run has no records of tasks: simulate with record="tasks"')
    _check_durations(own)
    _check_inputs(own)
    _check_room(own)
    check_domains(own)


def _ran(run: Run) -> _Rows:
    """Return the attempts that ended by themselves."""
    records = run.records
    assert records is not None
    whole = slice(0, len(records.start_s))
    begin, end = run.occupancy(whole)
    first = np.arange(len(begin)) if records.task is None else records.task
    count = np.ones(len(begin), np.int64) if records.count is None else records.count
    done = np.isfinite(begin) & np.isfinite(end)
    task, n, machine = (column[done] for column in (first, count, records.machine))
    whole_numbers = [column.astype(np.int64) for column in (task, n, machine)]
    return _Rows(whole_numbers[0], whole_numbers[1], whole_numbers[2], begin[done], end[done])


def _check_durations(run: Run) -> None:
    """Check that no task runs for less than it takes, unless an attempt before it kept work."""
    columns, rows = run.workload.columns, _ran(run)
    start, finish = run.task_start, run.task_finish
    assert start is not None
    assert finish is not None
    assert run.stopped is not None
    least_s = columns.task_duration.copy()
    speed = class_speeds(columns, run.cluster)
    if speed is not None:
        least_s /= np.maximum(speed.max(axis=1), 1.0)[columns.task_stage()]
    slow = run.cluster.slowdowns.steps()[1]
    least_s /= max(1.0, float(np.max(slow, initial=1.0)))
    least_s[run.stopped.task] = 0.0
    if has_elastic(columns):  # by their widths
        least_s[columns.job_width_min[columns.stage_job[columns.task_stage()]] > 0] = 0.0
        check_elastic(run)
    is_short = finish - start < least_s - SLACK * (1 + np.abs(finish))
    refuse(is_short, lambda t: f"task {t} runs for {finish[t] - start[t]:g} s of {least_s[t]:g} s")
    is_done = ~run.job_failed & np.isfinite(run.job_finish)
    n_ran = np.bincount(
        columns.stage_job[columns.stages_of(rows.task)], rows.size, len(is_done)
    ).astype(np.int64)
    lacks = is_done & (n_ran != columns.job_n_tasks)
    refuse(lacks, lambda j: f"job {j} is done, and {n_ran[j]} of its tasks ran")


def _check_inputs(run: Run) -> None:
    """Check that no task starts before its job is submitted and its parents' outputs are there."""
    columns = run.workload.columns
    start, finish = run.task_start, run.task_finish
    assert start is not None
    assert finish is not None
    n_tasks = np.diff(columns.stage_task0)
    has_tasks = n_tasks > 0
    first = columns.stage_task0[:-1][has_tasks]
    never = np.where(np.isnan(start), np.inf, start)
    stage_start = np.full(len(n_tasks), np.inf)
    stage_end = np.full(len(n_tasks), -np.inf)
    if len(first):
        stage_start[has_tasks] = np.minimum.reduceat(never, first)
        stage_end[has_tasks] = np.maximum.reduceat(np.nan_to_num(finish, nan=np.inf), first)
    submit = run.job_submit[columns.stage_job]
    early = stage_start < submit - SLACK * (1 + np.abs(submit))
    refuse(early, lambda g: f"stage {g} starts before its job is submitted, at {submit[g]:g} s")
    if run.stopped is not None and len(run.stopped.task):
        return  # outputs may be lost and made again: the last attempt is not the one that was read
    parent = np.repeat(np.arange(len(n_tasks)), np.diff(columns.edge0))
    child, kind = columns.edge_child, columns.edge_kind
    early = (kind == BARRIER) & (stage_start[child] < _earlier(stage_end[parent]))
    refuse(early, lambda e: f"stage {child[e]} starts before its input, stage {parent[e]}, ends")
    for e in np.flatnonzero(kind != BARRIER).tolist():
        n = int(min(n_tasks[parent[e]], n_tasks[child[e]]))
        p, c = (int(columns.stage_task0[g]) for g in (parent[e], child[e]))
        is_early = never[c : c + n] < _earlier(finish[p : p + n])
        refuse(is_early, partial("task {1} of stage {0} starts before its input".format, child[e]))


def _earlier(times: F8) -> F8:
    earlier: F8 = times - SLACK * (1 + np.abs(times))
    return earlier


def _check_room(run: Run) -> None:
    """Check that no machine, or pool, holds more than it has of what can't be overbooked."""
    columns, cluster = with_parts(run.allocated, run.cluster)
    resources, n_rigid, _ = order_resources(cluster, Plan(0, 0, 0))
    quantum = resource_quanta(columns, cluster, resources)
    n_stages = len(columns.stage_job)
    demand = demand_quanta(columns, cluster, resources)[:, :n_rigid]
    demand = np.broadcast_to(demand, (n_stages, n_rigid)).astype(np.int64)
    order = [cluster.resources.index(name) for name in resources]
    capacity = machine_quanta(cluster, order, quantum)[:, :n_rigid]
    rows = _with_stops(_ran(run), run)
    if cluster.unit:
        rows = rows._replace(machine=np.zeros_like(rows.machine))
    amount = demand[columns.stages_of(rows.task)] * rows.size[:, None]
    lasts = rows.end_s > rows.begin_s
    machine = np.tile(rows.machine[lasts], 2)
    times = np.concatenate([rows.begin_s[lasts], rows.end_s[lasts]])
    change = np.concatenate([amount[lasts], -amount[lasts]])
    is_start = np.repeat([1, 0], int(lasts.sum()))  # at one instant room is given back first
    in_order = np.lexsort((is_start, times, machine))
    machine, times = machine[in_order], times[in_order]
    in_use = np.cumsum(change[in_order], axis=0)  # of a machine all is given back before the next
    over = in_use > capacity[machine]
    refuse(
        np.asarray(over.any(axis=1)),
        lambda i: (
            f"machine {machine[i]} holds more {resources[int(over[i].argmax())]} than it has "
            f"at {times[i]:g} s"
        ),
    )


def _with_stops(rows: _Rows, run: Run) -> _Rows:
    """Return the attempts with those that were stopped."""
    stopped = run.stopped
    assert stopped is not None
    ones = np.ones(len(stopped.task), np.int64)
    more = _Rows(
        stopped.task.astype(np.int64), ones, stopped.machine.astype(np.int64),
        stopped.start_s, stopped.stop_s,
    )  # fmt: skip
    return _Rows(*(np.concatenate(pair) for pair in zip(rows, more, strict=True)))
