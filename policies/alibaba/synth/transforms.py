"""Transforms: synthesized dependencies for real jobs, and load (Tian et al., SoCC 2019, §7.3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from sim.base.arrays import I8, Mask
from sim.base.parameters import Positive, checked
from sim.dags import Graphs
from policies.alibaba.synth.shipped import load_tables
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags
from sim.transforms.parts import rebuild, repeat_jobs, sample_jobs, submission_times
from sim.workload.tables import take_rows, values
from sim.workload.workload import Workload


def rewire(
    workload: Workload,
    tables: Tables | str | Path | None = None,
    seed: int = 0,
    variant: str = "improved",
) -> Workload:
    """Replace the dependencies of every job by synthesized ones.

    Each job keeps its stages with their attributes, and gets a DAG with as many stages (§7.3). The
    k-th stage of the real DAG in depth-first order from the sinks becomes the k-th of the
    synthesized one, so that stages of one branch, which tend to have similar durations, stay on one
    branch as far as the two DAGs allow. All new edges are barriers.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    tables : Tables or path-like, optional
        Probability tables, or their file; by default the shipped tables.
    seed : int
        Seed of the DAGs.
    variant : {"improved", "paper"}
        See `synthesize_dags`.
    """
    parent, child = synthesized_edges(Graphs.from_workload(workload), tables, seed, variant)
    edges = {"parent": parent, "child": child}
    rewired = rebuild(workload, None, keep_recorded=False, stage_edges=edges)
    return rewired.with_meta({"rewired": {"seed": int(seed), "variant": variant}})


def synthesized_edges(
    graphs: Graphs, tables: Tables | str | Path | None, seed: int, variant: str = "improved"
) -> tuple[I8, I8]:
    """Synthesize a DAG for each DAG of `graphs`; return its edges between the existing rows."""
    synthesized = synthesize_dags(load_tables(tables), graphs.job_n_stages, seed, variant).graph
    row = np.empty(graphs.n_stages, dtype=np.int64)
    row[_by_branch(synthesized)] = _by_branch(graphs)
    return row[synthesized.edge_parent], row[synthesized.edge_child]


def _by_branch(graphs: Graphs) -> I8:
    """Return the stages in depth-first order, (G,) int64, job by job."""
    from sim.synth.fitted.kernels.chance import postorder  # loads numba

    order = postorder(graphs.job_stage0, graphs.edge0, graphs.edge_child, graphs.edge_parent)
    return order[np.argsort(graphs.stage_job[order], kind="stable")]


@checked
def change_load(
    workload: Workload,
    load: Positive,
    seed: int = 0,
    tables: Tables | str | Path | None = None,
    rewire: bool = True,
) -> Workload:
    """Multiply the arrival rate of jobs by `load`.

    Below 1, a random sample of the jobs is kept. Above, every job is kept and copies are added, the
    same number of each job, give or take one. A copy keeps the attributes of the job's stages and
    gets synthesized dependencies (`rewire`), "to ensure diversity"; it is submitted at a random
    time between that job and the next one.

    Parameters
    ----------
    workload : Workload
        Real or synthesized workload.
    load : float
        Factor of the number of jobs per hour, positive.
    seed : int
        Seed of the sample, the times and the dependencies.
    tables : Tables or path-like, optional
        Probability tables of dependencies, or their file; by default the shipped tables.
    rewire : bool
        False: copies keep the dependencies of their originals, too.

    Raises
    ------
    InputError
        If `load` is not positive and finite.
    """
    n = workload.n_jobs
    rows, copy = sample_jobs(n, max(1, round(load * n)), seed)
    if not copy.any():
        return rebuild(workload.take(rows), {"load": float(load)})
    submit = submission_times(values(workload.jobs, "submit_s"), rows, copy, seed)
    order = np.lexsort((np.arange(len(rows)), submit))
    rows, copy = rows[order], copy[order]
    transform: dict[str, object] = {"load": float(load), "seed": int(seed)}
    copied = repeat_jobs(workload, rows, copy, submit[order], transform)
    return _with_new_edges(copied, copy, seed, tables) if rewire else copied


def _with_new_edges(
    workload: Workload, copy: Mask, seed: int, tables: Tables | str | Path | None
) -> Workload:
    """Return the workload with new dependencies in the jobs that are copies."""
    graphs = Graphs.from_workload(workload)
    is_kept = ~np.repeat(copy, graphs.job_n_edges)
    parent, child = synthesized_edges(graphs.take(copy), tables, seed)
    stage_of_copy = np.flatnonzero(np.repeat(copy, graphs.job_n_stages))
    kind = take_rows(workload.stage_edges, np.flatnonzero(is_kept))["kind"].cast(pa.string())
    barrier = pa.chunked_array([pa.array(["barrier"] * len(parent), pa.string())])
    edges = {
        "parent": np.concatenate([graphs.edge_parent[is_kept], stage_of_copy[parent]]),
        "child": np.concatenate([graphs.edge_child[is_kept], stage_of_copy[child]]),
        "kind": pa.chunked_array([*kind.chunks, *barrier.chunks]),
    }
    return rebuild(workload, None, stage_edges=edges)
