"""Check of elastic jobs: none is done before its widths have given it all of its work."""

from __future__ import annotations

import numpy as np

from sim.check.broken import refuse
from sim.cluster.domains import asked_levels
from sim.cluster.speeds import class_speeds
from sim.engine.record import Run
from sim.workload.elastic import paces

SLACK = 1e-6


def check_elastic(run: Run) -> None:
    """Check that each elastic job that is done had its work, and kept to its widths.

    Its width at a time is the number of its tasks that hold a place then; the work is the time at
    its pace, which is more than it needed if it stood still, lost work or was slowed.

    Parameters
    ----------
    run : Run
        A run with records of tasks, on its own clock.

    Raises
    ------
    BrokenRuleError
        If a job had less work than it takes, fewer places than its least width, or places in
        several domains of the level that it requires.
    """
    columns, stopped = run.workload.columns, run.stopped
    start, finish = run.task_start, run.task_finish
    assert start is not None
    assert finish is not None
    assert stopped is not None
    done = ~run.job_failed & np.isfinite(run.job_finish) & (columns.job_width_min > 0)
    fastest = np.full(len(done), float(np.max(run.cluster.slowdowns.steps()[1], initial=1.0)))
    speed = class_speeds(columns, run.cluster)
    if speed is not None:
        fastest *= np.maximum(speed.max(axis=1), 1.0)[columns.job_stage0[:-1]]
    lacks_s, is_narrow = np.zeros(len(done)), np.zeros(len(done), bool)
    is_apart, required = np.zeros(len(done), bool), asked_levels(columns, run.cluster)[0]
    assert run.task_machine is not None
    order = np.argsort(stopped.task, kind="stable")
    first_stop = np.searchsorted(stopped.task[order], columns.stage_task0[columns.job_stage0])
    for j in np.flatnonzero(done).tolist():
        g = int(columns.job_stage0[j])
        tasks = slice(int(columns.stage_task0[g]), int(columns.stage_task0[g + 1]))
        stops = order[first_stop[j] : first_stop[j + 1]]
        begin_s = np.concatenate([start[tasks], stopped.start_s[stops]])
        end_s = np.concatenate([finish[tasks], stopped.stop_s[stops]])
        times = np.unique(np.concatenate([begin_s, end_s]))
        width = (begin_s <= times[:-1, None]) & (times[:-1, None] < end_s)
        pace = paces(columns.speedups[columns.job_speedup[j]], int(columns.job_n_tasks[j]))
        widths, lasts_s = width.sum(axis=1), np.diff(times)
        work_s, needs_s = float((pace[widths] * lasts_s).sum()), float(columns.stage_max_s[g])
        lacks_s[j] = needs_s - SLACK * (1 + needs_s + abs(float(times[-1]))) - fastest[j] * work_s
        if required[j] >= 0:
            machine = np.concatenate([run.task_machine[tasks], stopped.machine[stops]])
            domain = run.cluster.topology.domain[required[j]][machine]
            last = np.where(width, domain, -1).max(axis=1)
            first = np.where(width, domain, np.iinfo(np.int32).max).min(axis=1)
            is_apart[j] = bool((first < last).any())
        is_narrow[j] = bool(((widths > 0) & (widths < columns.job_width_min[j])).any())
    refuse(lacks_s > 0, lambda j: f"elastic job {j} is done, and lacks {lacks_s[j]:g} s of work")
    refuse(is_apart, lambda j: f"elastic job {j} is in several domains of a level that it requires")
    refuse(is_narrow, lambda j: f"elastic job {j} has fewer places than its least width")
