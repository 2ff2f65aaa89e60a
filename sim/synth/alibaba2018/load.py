"""Load: fewer of the jobs, or more of them with fresh dependencies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.knobs.parts import (
    beside,
    check_positive,
    rebuilt,
    repeat_jobs,
    sample_jobs,
    with_durations,
)
from sim.synth.alibaba2018.rewire import synthesized_edges
from sim.workload.tables import take_rows, values
from sim.workload.workload import Workload

if TYPE_CHECKING:
    from sim.synth.alibaba2018.tables import Tables


def change_load(
    workload: Workload, load: float, seed: int = 0, tables: Tables | str | Path | None = None
) -> Workload:
    """Make jobs come `load` times as often.

    Below 1, a random sample of the jobs is kept. Above, every job is kept and others are added:
    copies of each job, as many of each as of any other, one more or less. A copy keeps what the
    job's stages have and gets synthesized dependencies (`rewire`), "to ensure diversity"; it comes
    at a random time between that job and the next one.

    Parameters
    ----------
    workload : Workload
        Real or synthesized.
    load : float
        Jobs per hour over those of the workload, positive.
    seed : int
        Seed of the choice, the times and the dependencies.
    tables : Tables or path-like, optional
        What to synthesize dependencies from, or its file; left out, the shipped tables.

    Raises
    ------
    InputError
        If `load` is not positive and finite.
    """
    check_positive("the load", load)
    n = workload.n_jobs
    rows, copy = sample_jobs(n, max(1, round(load * n)), seed)
    if not copy.any():
        kept = workload.take(rows)
        return rebuilt(kept, stages=kept.stages, knob={"load": float(load)})
    submit = between(values(workload.jobs, "submit_s"), rows, copy, seed)
    order = np.lexsort((np.arange(len(rows)), submit))
    rows, copy = rows[order], copy[order]
    knob: dict[str, object] = {"load": float(load), "seed": int(seed)}
    many = repeat_jobs(workload, rows, copy, submit[order], knob)
    return _with_fresh_edges(many, copy, seed, tables)


def between(submit_s: F8, rows: I8, copy: Mask, seed: int) -> F8:
    """Return when chosen jobs come: at their time, a copy between it and the next job's."""
    after = np.append(submit_s[1:], submit_s[-1])
    uniform = stream(seed, "knobs", "times").random(len(rows))
    time: F8 = submit_s[rows] + copy * uniform * (after - submit_s)[rows]
    return time


def _with_fresh_edges(
    workload: Workload, copy: Mask, seed: int, tables: Tables | str | Path | None
) -> Workload:
    """Return the workload with other dependencies in the jobs that are copies."""
    graphs = Graphs.of(workload)
    kept = ~np.repeat(copy, graphs.job_n_edges)
    parent, child = synthesized_edges(graphs.take(copy), tables, seed)
    stage_of_copy = np.flatnonzero(np.repeat(copy, graphs.job_n_stages))
    kind = take_rows(workload.stage_edges, np.flatnonzero(kept))["kind"].cast(pa.string())
    barrier = pa.chunked_array([pa.array(["barrier"] * len(parent), pa.string())])
    uniform = workload.stage_duration_s
    return Workload.from_tables(
        jobs=workload.jobs,
        stages=with_durations(workload.stages, uniform),
        tasks=workload.tasks if uniform is None else None,
        stage_edges={
            "parent": np.concatenate([graphs.edge_parent[kept], stage_of_copy[parent]]),
            "child": np.concatenate([graphs.edge_child[kept], stage_of_copy[child]]),
            "kind": pa.chunked_array([*kind.chunks, *barrier.chunks]),
        },
        job_edges=workload.job_edges,
        downloads=workload.downloads,
        **beside(workload),
        meta=workload.meta,
        validate=False,
    )
