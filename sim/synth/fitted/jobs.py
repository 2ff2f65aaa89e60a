"""Draw jobs from probability tables, which can be fitted to any workload.

Jobs arrive at intervals and have stages linked by Algorithm 2 (as printed, or with its level and
edge steps improved). Stages have tasks, a duration and demands, drawn independently or jointly
(`sim.synth.fitted.draw_joint`). Arrivals are drawn by `sim.synth.fitted.arrivals`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, check
from sim.dags import Graphs
from sim.synth.fitted.arrivals import draw_arrivals
from sim.synth.fitted.draw_joint import draw_by_size, draw_jointly, spread_tasks
from sim.synth.fitted.tables import DEMAND, Tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags, uniforms
from sim.transforms.parts import sample_jobs, submission_times
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.workload import Workload

ArrivalMode = Literal["fitted", "independent"]


def draw_jobs(
    tables: Tables,
    jobs: int,
    seed: int,
    variant: str = "improved",
    joint: bool = False,
    arrivals: ArrivalMode = "fitted",
    max_tasks_per_stage: int | None = None,
    load: float = 1.0,
) -> Workload:
    """Draw a workload; `policies.alibaba.synth.synthesize` explains the options.

    Its ``meta["synth"]`` has the options.
    """
    if max_tasks_per_stage is not None:
        low = int(tables.n_tasks.values[0])
        check("max_tasks_per_stage", max_tasks_per_stage, Annotated[int, Between(low)] | None)
    n_stages = tables.n_stages.draw(uniforms(seed, "n_stages", jobs)).astype(np.int64)
    graph = synthesize_dags(tables, n_stages, seed, variant).graph
    stage_number = np.arange(graph.n_stages) - np.repeat(graph.job_stage0[:-1], n_stages)
    attributes = draw_attributes(tables, graph, seed, joint, max_tasks_per_stage)
    longest = attributes.pop("longest", None)
    tasks = None
    if longest is not None:
        n_tasks = attributes["n_tasks"]
        tasks = {
            "stage": np.repeat(np.arange(graph.n_stages, dtype=np.int32), n_tasks),
            "duration_s": spread_tasks(attributes.pop("duration_s"), longest, n_tasks, seed),
        }
    return Workload.from_tables(
        jobs={
            "job_id": _numbered("synth-", np.arange(jobs), 7),
            "submit_s": _submit_times(tables, jobs, load, seed, arrivals),
        },
        stages={
            "job": graph.stage_job,
            "name": _numbered("S", np.arange(1, n_stages.max() + 1)).take(stage_number),
            **attributes,
        },
        tasks=tasks,
        stage_edges={"parent": graph.edge_parent, "child": graph.edge_child},
        meta={
            "name": "synth-fitted",
            "quantum": dict(tables.quantum),
            "synth": {
                "jobs": int(jobs),
                "seed": int(seed),
                "variant": variant,
                "joint": bool(joint),
                "max_tasks_per_stage": max_tasks_per_stage,
                "load": float(load),
                **({} if tables.arrivals is None else {"arrivals": arrivals}),
                "source": tables.provenance.get("source", "unknown"),
            },
        },
    )


def _submit_times(tables: Tables, jobs: int, load: float, seed: int, arrivals: ArrivalMode) -> F8:
    """Draw the submission times of jobs, from 0."""
    n = jobs if load == 1.0 else max(1, round(jobs / load))
    if arrivals == "fitted" and tables.arrivals is not None:
        submit_s = draw_arrivals(tables.arrivals, n, seed)
    else:
        interval_s = tables.interval_s.draw(uniforms(seed, "interval_s", n))
        interval_s[0] = 0.0
        submit_s = interval_s.cumsum()
    if load == 1.0:
        return submit_s
    rows, copy = sample_jobs(n, jobs, seed)
    sampled_s: F8 = np.sort(submission_times(submit_s, rows, copy, seed))
    sampled_s -= sampled_s[0]
    return sampled_s


def _numbered(prefix: str, numbers: I8, width: int = 1) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
    return pc.binary_join_element_wise(prefix, digits, "")


def draw_attributes(
    tables: Tables, graphs: Graphs, seed: int, joint: bool = False, max_tasks: int | None = None
) -> dict[str, NDArray[Any]]:
    """Draw the attributes of each stage, independently or jointly."""
    sources = tables.attributes
    if max_tasks is not None:
        sources["n_tasks"] = sources["n_tasks"].up_to(max_tasks)
    if not joint:
        drawn = {
            name: table.draw(uniforms(seed, name, graphs.n_stages))
            for name, table in sources.items()
        }
    elif tables.by_size is not None:
        drawn = draw_by_size(tables.by_size, max_tasks, graphs, seed)
    elif tables.joint is None:
        raise InputError(
            "these tables have no joint distribution of attributes; fit them from a workload, or "
            "take joint=false",
            rule="no joint",
        )
    else:
        drawn = draw_jointly(tables.joint, sources, graphs, seed)
    columns: dict[str, NDArray[Any]] = {
        "n_tasks": drawn["n_tasks"].astype(np.int32),
        "duration_s": drawn["duration_s"],
    }
    for name in tables.demand:
        columns[DEMAND_PREFIX + name] = drawn[DEMAND + name]
    if "longest" in drawn:
        columns["longest"] = drawn["longest"]
    return columns
