"""What knobs are made of: columns replaced, jobs repeated, workloads rebuilt, and a note of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.workload.tables import take_rows, values
from sim.workload.workload import Workload


def replaced(table: pa.Table, column: str, numbers: NDArray[np.generic] | pa.Array) -> pa.Table:
    """Return `table` with other numbers in one of its columns."""
    at = table.column_names.index(column)
    return table.set_column(at, column, pa.array(numbers))


def rebuilt(
    workload: Workload,
    stages: pa.Table,
    knob: Mapping[str, object],
    tasks: pa.Table | None = None,
    duration_s: F8 | None = None,
    jobs: pa.Table | None = None,
) -> Workload:
    """Build the workload again with other jobs, stages, tasks or durations, and note the knob."""
    uniform = workload.stage_duration_s if duration_s is None else duration_s
    if uniform is None and tasks is None:
        tasks = workload.tasks
    return Workload.from_tables(
        jobs=workload.jobs if jobs is None else jobs,
        stages=with_durations(stages, uniform),
        tasks=tasks,
        stage_edges=workload.stage_edges,
        job_edges=workload.job_edges,
        downloads=workload.downloads,
        **beside(workload),
        meta=meta_with(workload, knob),
        validate=False,
    )


def beside(workload: Workload) -> dict[str, pa.Table]:
    """Return the optional tables that stay as they are when jobs or tasks change."""
    if workload.failures.num_rows:
        raise InputError("failures are drawn of tasks as they are; draw them after all else")
    return {"history": workload.history, "training": workload.training}


def meta_with(workload: Workload, knob: Mapping[str, object]) -> dict[str, object]:
    """Return the workload's meta with one more knob noted."""
    return {**workload.meta, "knobs": [*workload.meta.get("knobs", []), dict(knob)]}


def check_positive(what: str, value: Any) -> None:
    """Refuse what is no positive, finite number."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and value > 0):
        raise InputError(f"{what} must be positive and finite, not {value!r}", rule="range")


def with_durations(stages: pa.Table, duration_s: F8 | None) -> pa.Table:
    """Return stages with a column of the duration that all their tasks have, if there is one."""
    if duration_s is None:
        return stages
    return stages.append_column("duration_s", pa.array(duration_s))


def sample_jobs(n: int, n_out: int, seed: int) -> tuple[I8, Mask]:
    """Choose `n_out` of `n` jobs, each as often as any other, one more or less."""
    whole, part = divmod(n_out, n)
    some = np.sort(stream(seed, "knobs", "jobs").permutation(n)[:part])
    rows = np.concatenate([np.tile(np.arange(n), whole), some])
    copy = np.arange(len(rows)) >= min(n, n_out)
    order = np.argsort(rows, kind="stable")
    return rows[order], copy[order]


def repeat_jobs(
    workload: Workload, rows: I8, copy: Mask, submit_s: F8, knob: dict[str, object]
) -> Workload:
    """Return jobs, some of them several times, at new times."""
    graphs = Graphs.of(workload)
    many = graphs.take(rows)
    stage = ranges(graphs.job_stage0[rows], graphs.job_stage0[rows + 1])
    first_edge = graphs.edge0[graphs.job_stage0]
    edge = ranges(first_edge[rows], first_edge[rows + 1])
    uniform = workload.stage_duration_s
    tasks = None
    if uniform is None:
        task0 = workload.stage_task0
        tasks = take_rows(workload.tasks, ranges(task0[stage], task0[stage + 1]))
        n_tasks = np.diff(task0)[stage]
        tasks = replaced(tasks, "stage", np.repeat(np.arange(len(stage), dtype=np.int32), n_tasks))
    new_row = np.full(workload.n_jobs, -1, dtype=np.int32)
    new_row[rows[~copy]] = np.flatnonzero(~copy)
    jobs = replaced(take_rows(workload.jobs, rows), "submit_s", submit_s)
    job_edges, downloads = workload.job_edges, workload.downloads
    for key in ("upstream", "downstream"):
        job_edges = replaced(job_edges, key, new_row[values(job_edges, key)])
    return Workload.from_tables(
        jobs=replaced(jobs, "job_id", _named(jobs["job_id"].to_pylist(), copy)),
        stages=with_durations(
            replaced(take_rows(workload.stages, stage), "job", many.stage_job),
            None if uniform is None else uniform[stage],
        ),
        tasks=tasks,
        stage_edges={
            "parent": many.edge_parent,
            "child": many.edge_child,
            "kind": take_rows(workload.stage_edges, edge)["kind"],
        },
        job_edges=job_edges,
        downloads=replaced(downloads, "job", new_row[values(downloads, "job")]),
        **beside(workload),
        meta=meta_with(workload, knob),
        validate=False,
    )


def _named(names: list[str], copy: Mask) -> pa.Array:
    taken = set(names)
    number: dict[str, int] = {}
    out = []
    for name, again in zip(names, copy.tolist(), strict=True):
        new = name
        while again and new in taken:
            number[name] = number.get(name, 0) + 1
            new = f"{name}+{number[name]}"
        taken.add(new)
        out.append(new)
    return pa.array(out, pa.string())
