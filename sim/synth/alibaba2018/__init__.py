"""Workloads like Alibaba's batch jobs of 2018, after Tian et al., SoCC 2019, §7.

Jobs arrive at intervals, have stages linked by Algorithm 2 (as printed, or with its level and edge
steps improved), and stages have tasks, a duration and demands, each drawn on its own or all of
them jointly, from probability tables. The tables of the trace travel with the package
(`tables.json`); `python -m sim fit` makes others from any workload.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8
from sim.knobs import amplify, fit_machines
from sim.knobs.parts import check_positive, sample_jobs
from sim.synth._dag import check_whole
from sim.synth.alibaba2018.attributes import draw_attributes
from sim.synth.alibaba2018.load import between
from sim.synth.alibaba2018.tables import Tables
from sim.synth.alibaba2018.tables_file import SHIPPED, read_tables
from sim.synth.alibaba2018.tian_algorithm2 import synthesize_dags, uniforms
from sim.workload.workload import Workload


def synthesize(
    jobs: int = 10_000,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    variant: str = "improved",
    joint: bool = False,
    max_tasks_per_stage: int | None = None,
    machine: Mapping[str, float] | None = None,
    load: float = 1.0,
    heterogeneity: float = 1.0,
) -> Workload:
    """Synthesize a workload from probability tables.

    All tasks of a stage last the same; all edges are barriers. The first `k` jobs are the same
    whatever `jobs` is, with the knobs `load` and `heterogeneity` at 1.

    Parameters
    ----------
    jobs : int
        How many, at least 1.
    seed : int
        Seed of all draws.
    tables : path-like, optional
        A file made by ``python -m sim fit``; left out, the shipped tables of Alibaba's trace.
    variant : {"improved", "paper"}
        How stages are linked: with the level and edge steps fitted, or by Algorithm 2 as printed;
        see `sim.synth.alibaba2018.tian_algorithm2`.
    joint : bool
        Draw durations, numbers of tasks and demands jointly, so that stages of a job, and parents
        and children, differ as much as they do in the fitted workload (§5); see
        `sim.synth.alibaba2018.attributes`. In the paper's generator each is drawn on its own.
    max_tasks_per_stage : int, optional
        Draw the number of a stage's tasks among those of at most this. Left out, the
        distribution keeps its tail: of the shipped tables a stage has 43 tasks on average, a few
        have 47,000.
    machine : dict of str to float, optional
        What one machine has that the demands are to fit (the knob *cluster configuration*, §7.4):
        `sim.knobs.fit_machines`, from the machine that the tables tell of, if they do.
    load : float
        How many times as often jobs come (§7.4): as `load.change_load` does it, but every job is
        synthesized. `jobs` is their number in the end.
    heterogeneity : float
        The heterogeneity amplifier (§7.4): `sim.knobs.amplify`, of durations and demands.

    Returns
    -------
    Workload
        With ``meta["synth"]`` telling what it was made from.

    Raises
    ------
    InputError
        If a number is out of its range, or the tables can't be read or lack what is asked for.
    """
    check_whole("jobs", jobs, 1)
    check_whole("seed", seed, None)
    path = Path(SHIPPED if tables is None else tables)
    source = read_tables(path)
    _check_limit(source, max_tasks_per_stage)

    n_stages = source.n_stages.draw(uniforms(seed, "n_stages", jobs)).astype(np.int64)
    graph = synthesize_dags(source, n_stages, seed, variant).graph
    place = np.arange(graph.n_stages) - np.repeat(graph.job_stage0[:-1], n_stages)
    attributes = draw_attributes(source, graph, seed, joint, max_tasks_per_stage)
    workload = Workload.from_tables(
        jobs={
            "job_id": _numbered("synth-", np.arange(jobs), 7),
            "submit_s": _submissions(source, jobs, load, seed),
        },
        stages={
            "job": graph.stage_job,
            "name": _numbered("S", np.arange(1, n_stages.max() + 1)).take(place),
            **attributes,
        },
        stage_edges={"parent": graph.edge_parent, "child": graph.edge_child},
        meta={
            "name": "synth-alibaba2018",
            "quantum": dict(source.quantum),
            "synth": {
                "generator": "alibaba2018",
                "jobs": int(jobs),
                "seed": int(seed),
                "variant": variant,
                "joint": bool(joint),
                "max_tasks_per_stage": max_tasks_per_stage,
                "load": float(load),
                "tables": "shipped" if tables is None else path.name,
                "tables_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "source": source.provenance.get("source", "unknown"),
            },
        },
    )
    if heterogeneity != 1.0:
        workload = amplify(workload, heterogeneity)
    if machine is not None:
        workload = fit_machines(workload, machine, of=source.provenance.get("machine"))
    return workload


def _submissions(source: Tables, jobs: int, load: float, seed: int) -> F8:
    """Draw when jobs are submitted, from 0."""
    check_positive("the load", load)
    n = jobs if load == 1.0 else max(1, round(jobs / load))
    interval_s = source.interval_s.draw(uniforms(seed, "interval_s", n))
    interval_s[0] = 0.0
    submit_s: F8 = interval_s.cumsum()
    if load == 1.0:
        return submit_s
    rows, copy = sample_jobs(n, jobs, seed)
    chosen: F8 = np.sort(between(submit_s, rows, copy, seed))
    chosen -= chosen[0]
    return chosen


def _numbered(prefix: str, numbers: I8, width: int = 1) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def _check_limit(source: Tables, most: int | None) -> None:
    if most is not None:
        least = int(source.n_tasks.values[0])
        check_whole("max_tasks_per_stage", most, least, "; or leave it out for no limit")
