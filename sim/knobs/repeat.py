"""Workloads with some of their jobs, each as often as wished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.base.ragged import ranges
from sim.base.random import stream
from sim.knobs.parts import beside, meta_with, replaced, with_durations
from sim.workload.tables import take_rows, values

if TYPE_CHECKING:
    from sim.workload.workload import Workload


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
    from sim.dags import Graphs
    from sim.workload.workload import Workload

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
