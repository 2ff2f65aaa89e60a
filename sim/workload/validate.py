"""The one validation of a workload: every rule of the schema, each error naming table and row.

`check_fits`, which asks whether a cluster can hold a workload at all, belongs with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.acyclic import find_cycle
from sim.base.errors import InputError
from sim.base.strings import first_repeat
from sim.cluster.fits import check_fits
from sim.workload.columns import job_stage0
from sim.workload.rules import check_column, check_number, fail, first
from sim.workload.schema import DEMAND_PREFIX, OPTIONAL, TABLES, demand_column
from sim.workload.tables import names, values
from sim.workload.validate_optional import validate_optional

if TYPE_CHECKING:
    from sim.workload.workload import Workload

__all__ = ["check_fits", "validate"]

_MAX_QUANTA = 2.0**45


def validate(workload: Workload) -> None:
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


def _check_sizes(workload: Workload) -> None:
    if workload.n_jobs == 0:
        raise InputError("the workload is empty; it needs at least one job", rule="empty workload")
    for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads", *OPTIONAL):
        rows = getattr(workload, name).num_rows
        if rows > np.iinfo(np.int32).max:
            raise InputError(f"{name} has {rows} rows; at most 2^31 - 1", rule="too many rows")


def _check_jobs(workload: Workload) -> None:
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


def _check_stages(workload: Workload) -> None:
    job = values(workload.stages, "job")
    _check_ascending(workload, "stages", "job", job)
    used = np.zeros(workload.n_jobs, dtype=bool)
    used[job] = True
    row = first(~used)
    if row is not None:
        fail(workload, "jobs", row, "the job has no stages; give it one", "job without stages")


def _check_tasks(workload: Workload) -> None:
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


def _check_gangs(workload: Workload) -> None:
    gang = values(workload.jobs, "min_tasks")
    if not gang.any():
        return
    tasks = np.diff(workload.stage_task0[job_stage0(workload)])
    row = first(gang > tasks)
    if row is not None:
        fail(
            workload,
            "jobs",
            row,
            f"min_tasks is {gang[row]}, but the job has {tasks[row]} tasks in all",
            "gang larger than job",
        )


def _check_stage_edges(workload: Workload) -> None:
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


def _check_edges(workload: Workload, name: str, from_: str, to: str, n_nodes: int) -> None:
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


def _check_demands(workload: Workload) -> None:
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


def _check_ascending(workload: Workload, name: str, column: str, rows: NDArray[Any]) -> None:
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
