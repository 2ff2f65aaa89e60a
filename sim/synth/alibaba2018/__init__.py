"""Workloads like Alibaba's batch jobs of 2018, after Tian et al., SoCC 2019, §7.

Jobs arrive at intervals, have stages linked by Algorithm 2 (as printed, or with its level and edge
steps improved), and stages have tasks, a duration and demands, each drawn on its own or all of
them jointly, from probability tables. The tables of the trace travel with the package
(`tables.json`); `python -m sim fit` makes others from any workload.

Jointly: a Gaussian copula over the tables, along each DAG. Each stage has a latent number for each
metric (duration, number of tasks, demands), standard normal, whose rank picks the metric's value
from its table. The latent numbers are the sum of the job's own and of the stage's, which follow
those of the stage's first child: most stages have one child, so that this keeps the correlation of
nearly all parents with their children, along with that within a stage and that of any two stages of
a job. Jobs differ in how much their stages vary (one of two spreads, as likely), and a stage may
take a value over from its child as it is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, Count, Positive, check, checked
from sim.base.random import Stream, stream
from sim.dags import Graphs
from sim.knobs import amplify, fit_machines
from sim.knobs.parts import sample_jobs
from sim.synth.alibaba2018.knobs import between
from sim.synth.alibaba2018.tables import ROLES, Histogram, Joint, Tables
from sim.synth.alibaba2018.tables_file import SHIPPED, read_tables
from sim.synth.alibaba2018.tian_algorithm2 import synthesize_dags, uniforms
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.workload import Workload


@checked
def synthesize(
    jobs: Count = 10_000,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    variant: str = "improved",
    joint: bool = False,
    max_tasks_per_stage: int | None = None,
    machine: Mapping[str, float] | None = None,
    load: Positive = 1.0,
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
        `sim.synth.alibaba2018`. In the paper's generator each is drawn on its own.
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
        check("max_tasks_per_stage", most, Annotated[int, Between(least)] | None)


def draw_attributes(
    tables: Tables, graphs: Graphs, seed: int, joint: bool = False, most_tasks: int | None = None
) -> dict[str, NDArray[Any]]:
    """Draw what each stage has, each attribute on its own or all of them jointly."""
    sources = tables.attributes
    if most_tasks is not None:
        sources["n_tasks"] = sources["n_tasks"].up_to(most_tasks)
    if not joint:
        drawn = {
            name: table.draw(uniforms(seed, name, graphs.n_stages))
            for name, table in sources.items()
        }
    elif tables.joint is None:
        raise InputError(
            "the tables don't tell what attributes have to do with each other (joint); fit them "
            "from a workload whose jobs have dependencies, or take joint=false",
            rule="no joint",
        )
    else:
        drawn = draw_jointly(tables.joint, sources, graphs, seed)
    columns: dict[str, NDArray[Any]] = {
        "n_tasks": drawn["n_tasks"].astype(np.int32),
        "duration_s": drawn["duration_s"],
    }
    for name in tables.demand:
        columns[DEMAND_PREFIX + name] = drawn[f"demand {name}"]
    return columns


def draw_jointly(
    joint: Joint, tables: dict[str, Histogram], graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages."""
    from sim.synth.alibaba2018.kernels import chance  # loads numba

    uniform = latent_uniform(joint, graphs, seed)
    role = np.minimum(graphs.n_parents, ROLES - 1)
    values = np.empty_like(uniform)
    for m, (name, ranks) in enumerate(joint.ranks.items()):
        values[:, m] = tables[name].draw(ranks.rank(uniform[:, m], role))
    chance.take_over(
        graphs.order, graphs.edge0, graphs.edge_child,
        _stream(seed, "taken over").random(values.shape), joint.taken_over, values,
    )  # fmt: skip
    return {name: values[:, m].copy() for m, name in enumerate(joint.ranks)}


def latent_uniform(joint: Joint, graphs: Graphs, seed: int) -> F8:
    """Draw the latent numbers of all stages, (G, M), as uniforms in their distribution."""
    from sim.synth.alibaba2018.kernels import chance  # loads numba

    n = len(joint.ranks)
    latent = _stream(seed, "stage").standard_normal((graphs.n_stages, n))
    chance.follow(
        graphs.order, graphs.edge0, graphs.edge_child, joint.root, joint.pull, joint.noise, latent
    )
    shared = _stream(seed, "job").standard_normal((graphs.n_jobs, n))
    shared = maths.dot(shared, joint.job.T)
    wide = _stream(seed, "unequal").random(graphs.n_jobs) < 0.5
    variance = 1.0 + joint.unequal * np.where(wide, 1.0, -1.0)
    latent *= np.repeat(np.sqrt(variance), graphs.job_n_stages)[:, None]
    latent += np.repeat(shared, graphs.job_n_stages, axis=0)
    of_job = (joint.job**2).sum(axis=1)
    of_stage = (joint.root**2).sum(axis=1)
    uniform = sum(
        0.5 * maths.normal_cdf(latent / np.sqrt(of_job + of_stage * (1.0 + sign * joint.unequal)))
        for sign in (1.0, -1.0)
    )
    drawn: F8 = np.minimum(uniform, np.nextafter(1.0, 0.0))
    return drawn


def _stream(seed: int, purpose: str) -> Stream:
    return stream(seed, "synth", "alibaba2018", "joint", purpose)
