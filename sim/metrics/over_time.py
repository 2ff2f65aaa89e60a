"""What a run looks like over time, in few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base.arrays import F8
from sim.cluster.sizing import demand_of

if TYPE_CHECKING:
    from sim.engine.result import Result


N_BINS = 120
"""Points of `utilization_over_time`."""

MAX_TASKS_DRAWN = 300
"""Runs of more tasks are not drawn task by task."""


def utilization_over_time(run: Result, n_bins: int = N_BINS) -> dict[str, Any] | None:
    """Average what is used of the bottleneck resource over equal parts of a run."""
    if run.task_start is None or run.task_finish is None:
        return None
    ran = np.isfinite(run.task_start) & np.isfinite(run.task_finish)
    start, finish = run.task_start[ran], run.task_finish[ran]
    if len(start) == 0 or finish.max() <= start.min():
        return None
    columns, cluster = run.workload.columns, run.cluster
    stage = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.stage_task0))[ran]
    demand = demand_of(columns, cluster) / cluster.total
    work = np.bincount(stage, finish - start, len(columns.stage_job)) @ demand
    resource = int(work.argmax())
    begin, held = start.min(), demand[stage, resource]
    edges = np.linspace(0.0, finish.max() - begin, n_bins + 1)
    integral = _since(start - begin, held, edges) - _since(finish - begin, held, edges)
    used = np.diff(integral) / np.diff(edges)
    return {
        "resource": cluster.resources[resource],
        "begin_s": float(begin),
        "end_s": float(finish.max()),
        "used": [float(f"{value:.4g}") for value in np.clip(used, 0.0, None)],
    }


def _since(time: F8, weight: F8, edges: F8) -> F8:
    """Σ weight × (edge - time) over the times before each edge."""
    at = np.searchsorted(edges, time, side="left")  # the first edge that is not before the time
    n = len(edges)
    total = np.cumsum(np.bincount(at, weight, n)[:n])
    moment = np.cumsum(np.bincount(at, weight * time, n)[:n])
    since: F8 = edges * total - moment
    return since


def tasks_over_time(run: Result, max_tasks: int = MAX_TASKS_DRAWN) -> dict[str, Any] | None:
    """Give when and where each task of a small run ran."""
    columns = run.workload.columns
    few = len(columns.task_duration) <= max_tasks
    if not few or run.task_start is None or run.task_finish is None or run.task_machine is None:
        return None
    ran = np.isfinite(run.task_start) & np.isfinite(run.task_finish)
    stage = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.stage_task0))[ran]
    return {
        "job": columns.stage_job[stage].tolist(),
        "stage": stage.tolist(),
        "machine": run.task_machine[ran].tolist(),
        "start_s": [float(f"{value:.6g}") for value in run.task_start[ran]],
        "finish_s": [float(f"{value:.6g}") for value in run.task_finish[ran]],
    }
