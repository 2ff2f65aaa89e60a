"""Workloads and DAGs that several benchmarks share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim import Workload
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.alibaba2018.shipped import SHIPPED
from sim.synth.fitted.tables_file import read_tables
from sim.synth.fitted.tian_algorithm2 import synthesize_dags


def pool_jobs(
    n_tasks: int, widths: tuple[int, int], load: float, slots: int = 1000, whole: bool = False
) -> Workload:
    """Make jobs of one stage whose lognormal tasks offer `load` to a pool of `slots`.

    Widths are uniform between the two of `widths`; `whole` rounds all times to seconds, for
    simulators that support no others.
    """
    rng = np.random.default_rng(0)
    mean = sum(widths) / 2
    width = rng.integers(widths[0], widths[1] + 1, int(n_tasks / mean)).astype(np.int32)
    duration = rng.lognormal(3, 1, int(width.sum()))
    submit = np.sort(rng.uniform(0, duration.sum() / (slots * load), len(width)))
    if whole:
        duration, submit = np.ceil(duration), np.floor(submit)
    return workload(submit - submit[0], width, duration, {"cpu": np.ones(len(width))})


def machine_jobs(load: float, machines: int = 200, n_jobs: int = 4000) -> Workload:
    """Make jobs of one stage of 25 to 75 tasks with four demands, for machines of size 1."""
    rng = np.random.default_rng(0)
    width = rng.integers(25, 76, n_jobs).astype(np.int32)
    duration = rng.lognormal(3, 1, int(width.sum()))
    demand = np.round(rng.uniform(0.02, 0.3, (n_jobs, 4)), 3)
    work = np.add.reduceat(duration, np.concatenate([[0], np.cumsum(width)[:-1]]))
    span = float((work[:, None] * demand).sum(axis=0).max()) / (machines * load)
    submit = np.sort(rng.uniform(0, span, n_jobs))
    return workload(submit - submit[0], width, duration, {f"r{r}": demand[:, r] for r in range(4)})


def workload(
    submit: np.ndarray, width: np.ndarray, duration: np.ndarray, demand: dict[str, np.ndarray]
) -> Workload:
    """Build a workload of jobs of one stage each, with its kernel columns ready."""
    n = len(submit)
    rows = np.arange(n, dtype=np.int32)
    result = Workload.from_tables(
        jobs=pa.table({"job_id": [f"j{i}" for i in range(n)], "submit_s": submit}),
        stages=pa.table(
            {"job": rows, "name": ["s"] * n, "n_tasks": width}
            | {f"demand_{name}": column for name, column in demand.items()}
        ),
        tasks=pa.table({"stage": np.repeat(rows, width), "duration_s": duration}),
    )
    _ = result.columns
    return result


def paper_dags(n_jobs: int) -> Graphs:
    """Make DAGs of the sizes of the shipped tables by Tian et al.'s Algorithm 2."""
    tables = read_tables(SHIPPED)
    sizes = tables.n_stages.draw(stream(0, "benchmark").random(n_jobs)).astype(np.int64)
    return synthesize_dags(tables, sizes, 0).graph
