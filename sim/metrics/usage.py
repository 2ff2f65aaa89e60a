"""How much of the cluster a run used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, Mask
from sim.cluster.sizing import demand_of

if TYPE_CHECKING:
    from sim.engine.result import Result


def utilization(run: Result, done: Mask, makespan_s: float) -> dict[str, float]:
    """Measure the utilisation of each resource, and of the bottleneck."""
    columns, cluster = run.workload.columns, run.cluster
    if np.isfinite(makespan_s) and makespan_s > 0:
        work = columns.stage_work
        if not done.all():
            work = np.where(done[columns.stage_job], work, _recorded_work(run))
        each = (work @ demand_of(columns, cluster)) / (cluster.total * makespan_s)
    else:
        each = np.full(len(cluster.resources), np.nan)
    named = {f"utilization_{r}": float(u) for r, u in zip(cluster.resources, each, strict=True)}
    return {"utilization": float(each.max()), **named}


def _recorded_work(run: Result) -> F8:
    """Sum the recorded running time of each stage's tasks, (G,); 0 without records."""
    columns = run.workload.columns
    n_stages = len(columns.stage_job)
    if run.task_start is None or run.task_finish is None or n_stages == 0:
        return np.zeros(n_stages)
    ran = np.nan_to_num(run.task_finish - run.task_start)
    summed: F8 = np.add.reduceat(ran, columns.stage_task0[:-1])
    return summed
