"""What transforms are made of: jobs chosen and repeated, workloads rebuilt, and a note of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.workload.columns import job_n_tasks
from sim.workload.tables import take_rows, values, with_column
from sim.workload.transform import take_tasks
from sim.workload.workload import Workload


def rebuilt(
    workload: Workload,
    transform: Mapping[str, object] | None,
    duration_s: F8 | None = None,
    validate: bool = False,
    **changed: Any,
) -> Workload:
    """Build the workload again with some tables, or durations, changed, and note the transform."""
    if workload.failures.num_rows and "failures" not in changed:
        raise InputError("failures are drawn of tasks as they are; draw them after all else")
    names = ("jobs", "stages", "stage_edges", "job_edges", "downloads", "history", "training")
    tables = {name: getattr(workload, name) for name in names} | changed
    uniform = workload.stage_duration_s if duration_s is None else duration_s
    if tables.get("tasks") is None and uniform is None:
        tables["tasks"] = workload.tasks
    elif tables.get("tasks") is None:
        tables["stages"] = tables["stages"].append_column("duration_s", pa.array(uniform))
    meta = {**workload.meta}
    if transform is not None:
        meta["transforms"] = [*meta.get("transforms", []), dict(transform)]
    return Workload.from_tables(**tables, meta=meta, validate=validate)


def sample_jobs(n: int, n_out: int, seed: int) -> tuple[I8, Mask]:
    """Choose `n_out` of `n` jobs, each as often as any other, one more or less."""
    whole, part = divmod(n_out, n)
    some = np.sort(stream(seed, "knobs", "jobs").permutation(n)[:part])
    rows = np.concatenate([np.tile(np.arange(n), whole), some])
    copy = np.arange(len(rows)) >= min(n, n_out)
    order = np.argsort(rows, kind="stable")
    return rows[order], copy[order]


def between(submit_s: F8, rows: I8, copy: Mask, seed: int) -> F8:
    """Return when chosen jobs come: at their time, a copy between it and the next job's."""
    after = np.append(submit_s[1:], submit_s[-1])
    uniform = stream(seed, "knobs", "times").random(len(rows))
    return submit_s[rows] + copy * uniform * (after - submit_s)[rows]


def history_of(
    workload: Workload, rows: I8, finish_s: F8, since_s: float, features: Iterable[str]
) -> dict[str, Any]:
    """Return the table of the history that some jobs make, in time since `since_s`.

    `finish_s` is when each of them ended, (len(rows),); of `features` it has those that jobs have.
    """
    jobs = take_rows(workload.jobs, rows)
    n_tasks = job_n_tasks(workload)[rows]
    return {
        "submit_s": values(jobs, "submit_s") - since_s,
        "finish_s": finish_s - since_s,
        "n_tasks": n_tasks.astype(np.int32),
        "mean_task_s": workload.columns.job_work[rows] / n_tasks,
        **{name: jobs[name] for name in features if name in jobs.column_names},
    }


def repeat_jobs(
    workload: Workload, rows: I8, copy: Mask, submit_s: F8, transform: dict[str, object]
) -> Workload:
    """Return jobs, some of them several times, at new times."""
    graphs = Graphs.from_workload(workload)
    many = graphs.take(rows)
    stage = ranges(graphs.job_stage0[rows], graphs.job_stage0[rows + 1])
    first_edge = graphs.edge0[graphs.job_stage0]
    edge = ranges(first_edge[rows], first_edge[rows + 1])
    tasks, duration_s = take_tasks(workload, stage)
    new_row = np.full(workload.n_jobs, -1, dtype=np.int32)
    new_row[rows[~copy]] = np.flatnonzero(~copy)
    jobs = with_column(take_rows(workload.jobs, rows), "submit_s", submit_s)
    job_edges, downloads = workload.job_edges, workload.downloads
    for key in ("upstream", "downstream"):
        job_edges = with_column(job_edges, key, new_row[values(job_edges, key)])
    kind = take_rows(workload.stage_edges, edge)["kind"]
    return rebuilt(
        workload, transform, duration_s,
        jobs=with_column(jobs, "job_id", _named(jobs["job_id"].to_pylist(), copy)),
        stages=with_column(take_rows(workload.stages, stage), "job", many.stage_job),
        tasks=tasks,
        stage_edges={"parent": many.edge_parent, "child": many.edge_child, "kind": kind},
        job_edges=job_edges,
        downloads=with_column(downloads, "job", new_row[values(downloads, "job")]),
    )  # fmt: skip


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
