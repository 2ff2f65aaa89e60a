"""Real jobs with synthesized dependencies (Tian et al., SoCC 2019, §7.3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sim.base.arrays import I8
from sim.dags import Graphs
from sim.knobs.parts import beside, with_durations
from sim.synth.alibaba2018.tables import Tables
from sim.synth.alibaba2018.tables_file import read_tables
from sim.synth.alibaba2018.tian_algorithm2 import synthesize_dags
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
    parent, child = synthesized_edges(Graphs.of(workload), tables, seed, variant)
    uniform = workload.stage_duration_s
    return Workload.from_tables(
        jobs=workload.jobs,
        stages=with_durations(workload.stages, uniform),
        tasks=workload.tasks if uniform is None else None,
        stage_edges={"parent": parent, "child": child},
        job_edges=workload.job_edges,
        downloads=workload.downloads,
        **beside(workload),
        meta={**workload.meta, "rewired": {"seed": int(seed), "variant": variant}},
        validate=False,
    )


def synthesized_edges(
    graphs: Graphs, tables: Tables | str | Path | None, seed: int, variant: str = "improved"
) -> tuple[I8, I8]:
    """Synthesize a DAG for each of some DAGs; return its edges between the old rows."""
    if not isinstance(tables, Tables):
        tables = read_tables() if tables is None else read_tables(Path(tables))
    made = synthesize_dags(tables, graphs.job_n_stages, seed, variant).graph
    place = np.empty(graphs.n_stages, dtype=np.int64)
    place[_by_branch(made)] = _by_branch(graphs)
    return place[made.edge_parent], place[made.edge_child]


def _by_branch(graphs: Graphs) -> I8:
    """Return the stages in depth-first order, (G,) int64, job by job."""
    from sim.synth.alibaba2018.kernels.along import postorder  # loads numba

    order = postorder(graphs.job_stage0, graphs.edge0, graphs.edge_child, graphs.edge_parent)
    return order[np.argsort(graphs.stage_job[order], kind="stable")]
