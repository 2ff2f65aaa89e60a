"""The one validation of a workload: every rule of the schema, each error naming table and row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.acyclic import find_cycle
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.distinct import first_repeat
from sim.base.errors import InputError
from sim.workload.columns import codes, job_n_tasks, or_default
from sim.workload.record import Tables
from sim.workload.rules import check_column, check_number, fail, first
from sim.workload.schema import (
    DEMAND_PREFIX,
    EDGE_KINDS,
    MAY_HAVE,
    NEW_DEADLINE,
    NEW_DEADLINE_AT,
    OPTIONAL,
    TABLES,
    demand_column,
)
from sim.workload.tables import names, values

_MAX_QUANTA = 2.0**45


def validate(workload: Tables) -> None:
    """Hold `workload` to every rule; return only if none is broken."""
    _check_sizes(workload)
    for name in TABLES:
        if name == "tasks" and workload.stage_duration_s is not None:
            check_number("stages", TABLES["tasks"][1], workload.stage_duration_s)
            continue
        table = getattr(workload, name)
        columns = list(TABLES[name])
        if name == "stages":
            columns += [demand_column(r) for r in workload.resources]
        for column in columns:
            check_column(workload, name, table, column)
    _check_jobs(workload)
    _check_stages(workload)
    _check_tasks(workload)
    _check_gangs(workload)
    _check_stage_edges(workload)
    _check_edges(workload, "job_edges", "upstream", "downstream", workload.n_jobs)
    _check_demands(workload)
    validate_optional(workload)


def _check_sizes(workload: Tables) -> None:
    if workload.n_jobs == 0:
        raise InputError("the workload is empty; it needs at least one job", rule="empty workload")
    for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads", *OPTIONAL):
        rows = getattr(workload, name).num_rows
        if rows > np.iinfo(np.int32).max:
            raise InputError(f"{name} has {rows} rows; at most 2^31 - 1", rule="too many rows")


def _check_jobs(workload: Tables) -> None:
    repeat = first_repeat(workload.jobs["job_id"].chunk(0))
    if repeat is not None:
        row, other = repeat
        fail(workload, "jobs", row, f"job_id is that of row {other} too", "duplicate id")
    submit = values(workload.jobs, "submit_s")
    row_ = first(submit[1:] < submit[:-1])
    if row_ is not None:
        fail(
            workload,
            "jobs",
            row_ + 1,
            f"submit_s is {submit[row_ + 1]}, before the {submit[row_]} of the row above; "
            "sort jobs by submit_s",
            "non-monotonic submit",
        )


def _check_stages(workload: Tables) -> None:
    job = values(workload.stages, "job")
    _check_ascending(workload, "stages", "job", job)
    used = np.zeros(workload.n_jobs, dtype=bool)
    used[job] = True
    row = first(~used)
    if row is not None:
        fail(workload, "jobs", row, "the job has no stages; give it one", "job without stages")


def _check_tasks(workload: Tables) -> None:
    if workload.stage_duration_s is not None:
        return
    stage = values(workload.tasks, "stage")
    _check_ascending(workload, "tasks", "stage", stage)
    counts = np.bincount(stage, minlength=workload.n_stages)
    n_tasks = values(workload.stages, "n_tasks")
    row = first(counts != n_tasks)
    if row is not None:
        fail(
            workload,
            "stages",
            row,
            f"n_tasks is {n_tasks[row]}, but the table of tasks has {counts[row]} for it",
            "n_tasks mismatch",
        )


def _check_gangs(workload: Tables) -> None:
    gang = values(workload.jobs, "min_tasks")
    if not gang.any():
        return
    tasks = job_n_tasks(workload)
    row = first(gang > tasks)
    if row is not None:
        fail(
            workload,
            "jobs",
            row,
            f"min_tasks is {gang[row]}, but the job has {tasks[row]} tasks in all",
            "gang larger than job",
        )


def _check_stage_edges(workload: Tables) -> None:
    edges = workload.stage_edges
    parent, child = values(edges, "parent"), values(edges, "child")
    job = values(workload.stages, "job")
    row = first(job[parent] != job[child])
    if row is not None:
        p, c = int(parent[row]), int(child[row])
        fail(
            workload,
            "stage_edges",
            row,
            f"leads from stage {p} of job {job[p]} to stage {c} of job {job[c]}; "
            "dependencies between jobs belong in job_edges",
            "edge between jobs",
        )
    _check_edges(workload, "stage_edges", "parent", "child", workload.n_stages)


def _check_edges(workload: Tables, name: str, from_: str, to: str, n_nodes: int) -> None:
    table = getattr(workload, name)
    tail, head = values(table, from_), values(table, to)
    row = first(tail == head)
    if row is not None:
        fail(workload, name, row, f"{from_} and {to} are both {tail[row]}", "self edge")
    row = first((tail[1:] == tail[:-1]) & (head[1:] == head[:-1]))
    if row is not None:
        edge = f"{tail[row]} to {head[row]}"
        fail(workload, name, row + 1, f"the edge {edge} is there twice", "duplicate edge")
    if name == "job_edges":  # a soft input is never waited for
        codes = [i for i, kind in enumerate(names(table, "kind")) if kind == "hard"]
        rows = np.flatnonzero(np.isin(values(table, "kind"), codes))
    else:
        rows = np.arange(len(tail))
    cycle = find_cycle(tail[rows], head[rows], n_nodes)
    if cycle:
        shown = " -> ".join(map(str, [*cycle[:8], *(["..."] if len(cycle) > 8 else [cycle[0]])]))
        row = int(
            rows[first((tail[rows] == cycle[0]) & (head[rows] == cycle[1 % len(cycle)])) or 0]
        )
        fail(workload, name, row, f"closes the cycle {shown}", "cycle")


def _check_demands(workload: Tables) -> None:
    for resource in workload.resources:
        quantum = workload.quantum[resource]
        if not np.isfinite(quantum) or quantum <= 0:
            raise InputError(
                f"the quantum of {resource} is {quantum}; it must be a positive number",
                rule="wrong quantum",
            )
        demand = values(workload.stages, DEMAND_PREFIX + resource)
        with np.errstate(over="ignore"):
            row = first(demand / quantum > _MAX_QUANTA)
        if row is not None:
            fail(
                workload,
                "stages",
                row,
                f"{DEMAND_PREFIX}{resource} is {demand[row]:g}, more than 2^45 quanta of "
                f"{quantum:g}; state a larger quantum in meta",
                "demand out of range",
            )


def _check_ascending(workload: Tables, name: str, column: str, rows: NDArray[Any]) -> None:
    row = first(rows[1:] < rows[:-1])
    if row is not None:
        fail(
            workload,
            name,
            row + 1,
            f"{column} is {rows[row + 1]}, below the {rows[row]} of the row above; "
            f"sort {name} by {column}",
            "rows out of order",
        )


def validate_optional(workload: Tables) -> None:
    """Hold to their rules the tables and columns that a workload may have."""
    for name, columns in OPTIONAL.items():
        for column in columns:
            check_column(workload, name, getattr(workload, name), column)
    _check_deadlines(workload)
    _check_history(workload)
    _check_training(workload)
    _check_failures(workload)


def _check_deadlines(workload: Tables) -> None:
    jobs = workload.jobs
    present = [c for c in MAY_HAVE["jobs"] if c.nullable and c.name in jobs.column_names]
    for column in present:
        check_column(workload, "jobs", jobs, column)
    if not present:
        return
    named = ~np.isnan(or_default(jobs, NEW_DEADLINE))
    timed = ~np.isnan(or_default(jobs, NEW_DEADLINE_AT))
    missing = jobs["deadline_s"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    row = first((named != timed) | (named & missing))
    if row is not None:
        fail(
            workload,
            "jobs",
            row,
            "a deadline that changes needs deadline_s, new_deadline_s and new_deadline_at_s",
            "half a change of deadline",
        )


def _check_history(workload: Tables) -> None:
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


def _check_training(workload: Tables) -> None:
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


def _check_failures(workload: Tables) -> None:
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


def _duration_s(workload: Tables, task: I4) -> F8:
    if workload.stage_duration_s is not None:
        duration: F8 = workload.stage_duration_s[_stage_of(workload, task)]
        return duration
    return values(workload.tasks, "duration_s")[task]


def _of_parents(workload: Tables, task: I4, lost: I4) -> Mask:
    """Tell of which tasks `lost` is one that they wait for."""
    edges = workload.stage_edges
    if edges.num_rows == 0:
        return np.zeros(len(task), dtype=bool)
    child, parent = _stage_of(workload, task), _stage_of(workload, lost)
    key = values(edges, "parent") * np.int64(workload.n_stages) + values(edges, "child")
    wanted = parent * np.int64(workload.n_stages) + child
    at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    each = codes(edges, "kind", EDGE_KINDS)[at] == 1
    first_task = workload.stage_task0
    alike = task - first_task[child] == lost - first_task[parent]
    waited_for: Mask = (key[at] == wanted) & (alike | ~each)
    return waited_for


def _stage_of(workload: Tables, task: I4) -> I8:
    return np.searchsorted(workload.stage_task0, task, side="right") - 1
