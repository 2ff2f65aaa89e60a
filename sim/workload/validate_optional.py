"""The rules of what a workload may have: a history, earlier runs, failures, changes of deadline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.workload.rules import check_column, fail, first
from sim.workload.schema import MAY_HAVE, OPTIONAL
from sim.workload.tables import values

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def validate_optional(workload: Workload) -> None:
    """Hold to their rules the tables and columns that a workload may have."""
    for name, columns in OPTIONAL.items():
        for column in columns:
            check_column(workload, name, getattr(workload, name), column)
    _check_deadlines(workload)
    _check_history(workload)
    _check_training(workload)
    _check_failures(workload)


def _check_deadlines(workload: Workload) -> None:
    jobs = workload.jobs
    present = [c for c in MAY_HAVE["jobs"] if c.nullable and c.name in jobs.column_names]
    for column in present:
        check_column(workload, "jobs", jobs, column)
    if not present:
        return
    columns = workload.columns
    named = ~np.isnan(columns.job_new_deadline)
    timed = ~np.isnan(columns.job_new_deadline_at)
    row = first((named != timed) | (named & np.isnan(columns.job_deadline)))
    if row is not None:
        fail(
            workload,
            "jobs",
            row,
            "a deadline that changes needs deadline_s, new_deadline_s and new_deadline_at_s",
            "half a change of deadline",
        )


def _check_history(workload: Workload) -> None:
    history = workload.history
    submit, finish = values(history, "submit_s"), values(history, "finish_s")
    row = first(finish < submit)
    if row is not None:
        fail(
            workload,
            "history",
            row,
            f"finish_s is {finish[row]}, before the submit_s of {submit[row]}",
            "ends before submission",
        )


def _check_training(workload: Workload) -> None:
    table = workload.training
    ready, start, finish = (values(table, f"{name}_s") for name in ("ready", "start", "finish"))
    row = first((finish < start) | (start < ready))
    if row is not None:
        fail(
            workload,
            "training",
            row,
            f"it is ready at {ready[row]}, starts at {start[row]} and ends at {finish[row]} s",
            "ends before it starts",
        )
    keys = [values(table, name) for name in ("template", "run", "stage", "task")]
    same = np.logical_and.reduce([key[1:] == key[:-1] for key in keys])
    row = first(same)
    if row is not None:
        fail(workload, "training", row + 1, "the task is that of the row above", "recorded twice")


def _check_failures(workload: Workload) -> None:
    table = workload.failures
    if table.num_rows == 0:
        return
    task, lost, after = (values(table, name) for name in ("task", "lost", "after_s"))
    duration = _duration_s(workload, task)
    row = first(after > duration)
    if row is not None:
        fail(
            workload,
            "failures",
            row,
            f"after_s is {after[row]}, but the task lasts {duration[row]} s",
            "fails after its end",
        )
    row = first((lost >= 0) & ~_of_parents(workload, task, np.maximum(lost, 0)))
    if row is not None:
        fail(
            workload,
            "failures",
            row,
            f"lost is {lost[row]}; valid: tasks that task {task[row]} waits for, or -1",
            "not a parent's task",
        )


def _duration_s(workload: Workload, task: I4) -> F8:
    if workload.stage_duration_s is not None:
        duration: F8 = workload.stage_duration_s[_stage_of(workload, task)]
        return duration
    return values(workload.tasks, "duration_s")[task]


def _of_parents(workload: Workload, task: I4, lost: I4) -> Mask:
    """Tell of which tasks `lost` is one that they wait for."""
    edges = workload.stage_edges
    if edges.num_rows == 0:
        return np.zeros(len(task), dtype=bool)
    child, parent = _stage_of(workload, task), _stage_of(workload, lost)
    key = values(edges, "parent") * np.int64(workload.n_stages) + values(edges, "child")
    wanted = parent * np.int64(workload.n_stages) + child
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    each = workload.columns.edge_kind[at] == 1
    first_task = workload.stage_task0
    alike = task - first_task[child] == lost - first_task[parent]
    found: Mask = (key[at] == wanted) & (alike | ~each)
    return found


def _stage_of(workload: Workload, task: I4) -> I8:
    return np.searchsorted(workload.stage_task0, task, side="right") - 1
