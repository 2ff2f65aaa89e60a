"""Real jobs with synthesized dependencies (Tian et al., SoCC 2019, §7.3), fewer or more of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from sim.base.arrays import I8, Mask
from sim.base.parameters import Positive, checked
from sim.dags import Graphs
from sim.synth.alibaba2018.shipped import tables_of
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags
from sim.transforms.parts import between, rebuilt, repeat_jobs, sample_jobs
from sim.workload.tables import take_rows, values
from sim.workload.workload import Workload


def rewire(
    workload: Workload,
    tables: Tables | str | Path | None = None,
    seed: int = 0,
    variant: str = "improved",
) -> Workload:
    """Replace the dependencies of every job by synthesized ones.

    Each job keeps its stages with all they have, and gets a DAG of as many stages (§7.3). Which
    stage goes where: the k-th of the real DAG in depth-first order from the sinks becomes the k-th
    of the synthesized one, so that stages of one branch, which tend to last alike, stay on one as
    far as the two DAGs allow. All new edges are barriers.

    Parameters
    ----------
    workload : Workload
        Real or not.
    tables : Tables or path-like, optional
        What to synthesize from, or its file; left out, the shipped tables.
    seed : int
        Seed of the DAGs.
    variant : {"improved", "paper"}
        See `synthesize_dags`.
    """
    parent, child = synthesized_edges(Graphs.from_workload(workload), tables, seed, variant)
    made = rebuilt(workload, None, stage_edges={"parent": parent, "child": child})
    return made.with_meta({"rewired": {"seed": int(seed), "variant": variant}})


def synthesized_edges(
    graphs: Graphs, tables: Tables | str | Path | None, seed: int, variant: str = "improved"
) -> tuple[I8, I8]:
    """Synthesize a DAG for each of some DAGs; return its edges between the old rows."""
    made = synthesize_dags(tables_of(tables), graphs.job_n_stages, seed, variant).graph
    place = np.empty(graphs.n_stages, dtype=np.int64)
    place[_by_branch(made)] = _by_branch(graphs)
    return place[made.edge_parent], place[made.edge_child]


def _by_branch(graphs: Graphs) -> I8:
    """Return the stages in depth-first order, (G,) int64, job by job."""
    from sim.synth.fitted.kernels.chance import postorder  # loads numba

    order = postorder(graphs.job_stage0, graphs.edge0, graphs.edge_child, graphs.edge_parent)
    return order[np.argsort(graphs.stage_job[order], kind="stable")]


@checked
def change_load(
    workload: Workload, load: Positive, seed: int = 0, tables: Tables | str | Path | None = None
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
    n = workload.n_jobs
    rows, copy = sample_jobs(n, max(1, round(load * n)), seed)
    if not copy.any():
        return rebuilt(workload.take(rows), {"load": float(load)})
    submit = between(values(workload.jobs, "submit_s"), rows, copy, seed)
    order = np.lexsort((np.arange(len(rows)), submit))
    rows, copy = rows[order], copy[order]
    transform: dict[str, object] = {"load": float(load), "seed": int(seed)}
    many = repeat_jobs(workload, rows, copy, submit[order], transform)
    return _with_fresh_edges(many, copy, seed, tables)


def _with_fresh_edges(
    workload: Workload, copy: Mask, seed: int, tables: Tables | str | Path | None
) -> Workload:
    """Return the workload with other dependencies in the jobs that are copies."""
    graphs = Graphs.from_workload(workload)
    kept = ~np.repeat(copy, graphs.job_n_edges)
    parent, child = synthesized_edges(graphs.take(copy), tables, seed)
    stage_of_copy = np.flatnonzero(np.repeat(copy, graphs.job_n_stages))
    kind = take_rows(workload.stage_edges, np.flatnonzero(kept))["kind"].cast(pa.string())
    barrier = pa.chunked_array([pa.array(["barrier"] * len(parent), pa.string())])
    edges = {
        "parent": np.concatenate([graphs.edge_parent[kept], stage_of_copy[parent]]),
        "child": np.concatenate([graphs.edge_child[kept], stage_of_copy[child]]),
        "kind": pa.chunked_array([*kind.chunks, *barrier.chunks]),
    }
    return rebuilt(workload, None, stage_edges=edges)
