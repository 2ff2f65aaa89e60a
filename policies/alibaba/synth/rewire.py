"""Transform: synthesized dependencies for real jobs (Tian et al., SoCC 2019, §7.3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from policies.alibaba.synth.shipped import load_tables
from sim.base.arrays import I8
from sim.dags import Graphs
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags
from sim.transforms.parts import rebuild
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
