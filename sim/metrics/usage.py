"""How much of the cluster a run used, at all and over time; which tasks ran beside their input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, Mask
from sim.cluster.sizing import demand_of
from sim.engine.record import Run
from sim.metrics.parts import Metric, done_of, makespan_s
from sim.workload.columns import task_homes

N_BINS = 120
"""Points of `utilization_over_time`."""

MAX_TASKS_DRAWN = 300
"""Runs of more tasks are not drawn task by task."""


METRICS = {
    "utilization": Metric("1", "higher", "work done over capacity × makespan, of the bottleneck"),
    "tasks_local": Metric("1", "higher", "fraction of the tasks that ran where their input lies"),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute how much of each resource was used, and how many tasks ran beside their input."""
    return {**utilization(run, done_of(run), makespan_s(run)), "tasks_local": local_share(run)}


def utilization(run: Run, done: Mask, makespan_s: float) -> dict[str, float]:
    """Measure the utilisation of each resource, and of the bottleneck."""
    columns, cluster = run.workload.columns, run.cluster
    if np.isfinite(makespan_s) and makespan_s > 0:
        work = columns.stage_work
        if not done.all():
            work = np.where(done[columns.stage_job], work, _recorded_work(run))
        each = maths.dot(work, demand_of(columns, cluster)) / (cluster.total * makespan_s)
    else:
        each = np.full(len(cluster.resources), np.nan)
    named = {f"utilization_{r}": float(u) for r, u in zip(cluster.resources, each, strict=True)}
    return {"utilization": float(each.max()), **named}


def _recorded_work(run: Run) -> F8:
    """Sum the recorded running time of each stage's tasks, (G,); 0 without records."""
    columns = run.workload.columns
    n_stages = len(columns.stage_job)
    if run.task_start is None or run.task_finish is None or n_stages == 0:
        return np.zeros(n_stages)
    ran = np.nan_to_num(run.task_finish - run.task_start)
    summed: F8 = np.add.reduceat(ran, columns.stage_task0[:-1])
    return summed


def utilization_over_time(run: Run, n_bins: int = N_BINS) -> dict[str, Any] | None:
    """Average what is used of the bottleneck resource over equal parts of a run."""
    if run.task_start is None or run.task_finish is None:
        return None
    ran = np.isfinite(run.task_start) & np.isfinite(run.task_finish)
    start, finish = run.task_start[ran], run.task_finish[ran]
    if len(start) == 0 or finish.max() <= start.min():
        return None
    columns, cluster = run.workload.columns, run.cluster
    stage = columns.task_stage()[ran]
    demand = demand_of(columns, cluster) / cluster.total
    work = maths.dot(np.bincount(stage, finish - start, len(columns.stage_job)), demand)
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


def tasks_over_time(run: Run, max_tasks: int = MAX_TASKS_DRAWN) -> dict[str, Any] | None:
    """Give when and where each task of a small run ran."""
    columns = run.workload.columns
    few = len(columns.task_duration) <= max_tasks
    if not few or run.task_start is None or run.task_finish is None or run.task_machine is None:
        return None
    ran = np.isfinite(run.task_start) & np.isfinite(run.task_finish)
    stage = columns.task_stage()[ran]
    return {
        "job": columns.stage_job[stage].tolist(),
        "stage": stage.tolist(),
        "machine": run.task_machine[ran].tolist(),
        "start_s": [float(f"{value:.6g}") for value in run.task_start[ran]],
        "finish_s": [float(f"{value:.6g}") for value in run.task_finish[ran]],
    }


def local_share(run: Run) -> float:
    """Of the tasks that have run and whose input lies somewhere, return the share that ran there.

    NaN if there are none.
    """
    homes = task_homes(run.workload.columns, len(run.cluster.capacity))
    if homes is None or run.task_machine is None:
        return float("nan")
    counted = (homes >= 0) & (run.task_machine >= 0)
    return float((homes == run.task_machine)[counted].mean()) if counted.any() else float("nan")
