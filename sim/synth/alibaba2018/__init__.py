"""Workloads like Alibaba's batch jobs of 2018, after Tian et al., SoCC 2019, §7.

Jobs arrive at intervals, have stages linked by Algorithm 2 (as printed, or with its level and edge
steps improved), and stages have tasks, a duration and demands, each drawn on its own or all of
them jointly, from probability tables. The tables of the trace travel with the package
(`tables.json`); `python -m sim fit` makes others from any workload.

Jointly: see `sim.synth.fitted.draw_joint`. When jobs come: `sim.synth.fitted.arrivals`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, Count, Positive, check, checked
from sim.dags import Graphs
from sim.knobs import amplify, fit_machines
from sim.knobs.parts import sample_jobs
from sim.synth.alibaba2018.knobs import between
from sim.synth.alibaba2018.shipped import SHIPPED
from sim.synth.fitted.arrivals import draw_arrivals
from sim.synth.fitted.draw_joint import draw_by_size, draw_jointly, spread_tasks
from sim.synth.fitted.tables import Tables
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags, uniforms
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.workload import Workload


@checked
def synthesize(
    jobs: Count = 10_000,
    seed: int = 0,
    tables: str | os.PathLike[str] | None = None,
    variant: str = "improved",
    joint: bool = False,
    arrivals: Literal["fitted", "independent"] = "fitted",
    max_tasks_per_stage: int | None = None,
    machine: Mapping[str, float] | None = None,
    load: Positive = 1.0,
    heterogeneity: float = 1.0,
) -> Workload:
    """Synthesize a workload from probability tables.

    All edges are barriers, and all tasks of a stage last the same, unless they did not where the
    tables are from: then the longest is drawn too, and the others are spread below it. The first
    `k` jobs are the same whatever `jobs` is, with the knobs `load` and `heterogeneity` at 1 and
    tasks of a stage alike.

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
        see `sim.synth.fitted.tian_algorithm2`.
    joint : bool
        Draw durations, numbers of tasks and demands jointly, so that stages of a job, and parents
        and children, differ as much as they do in the fitted workload (§5), given the job's size
        too if the tables are of a workload; see `sim.synth.fitted.draw_joint`. In the paper's
        generator each is drawn on its own.
    arrivals : {"fitted", "independent"}
        Take blocks of the times at which the fitted workload's jobs came (see
        `sim.synth.fitted.arrivals`), where the tables tell them; or draw each interval on its
        own.
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
    longest = attributes.pop("longest", None)
    tasks = None
    if longest is not None:
        n_tasks = attributes["n_tasks"]
        tasks = {
            "stage": np.repeat(np.arange(graph.n_stages, dtype=np.int32), n_tasks),
            "duration_s": spread_tasks(attributes.pop("duration_s"), longest, n_tasks, seed),
        }
    workload = Workload.from_tables(
        jobs={
            "job_id": _numbered("synth-", np.arange(jobs), 7),
            "submit_s": _submissions(source, jobs, load, seed, arrivals == "fitted"),
        },
        stages={
            "job": graph.stage_job,
            "name": _numbered("S", np.arange(1, n_stages.max() + 1)).take(place),
            **attributes,
        },
        tasks=tasks,
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
                **({} if source.arrivals is None else {"arrivals": arrivals}),
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


def _submissions(source: Tables, jobs: int, load: float, seed: int, fitted: bool) -> F8:
    """Draw when jobs are submitted, from 0."""
    n = jobs if load == 1.0 else max(1, round(jobs / load))
    if fitted and source.arrivals is not None:
        submit_s = draw_arrivals(source.arrivals, n, seed)
    else:
        interval_s = source.interval_s.draw(uniforms(seed, "interval_s", n))
        interval_s[0] = 0.0
        submit_s = interval_s.cumsum()
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
    elif tables.by_size is not None:
        drawn = draw_by_size(tables.by_size, most_tasks, graphs, seed)
    elif tables.joint is None:
        raise InputError(
            "the tables don't tell what attributes have to do with each other (joint); fit them "
            "from a workload, or take joint=false",
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
    if "longest" in drawn:
        columns["longest"] = drawn["longest"]
    return columns
