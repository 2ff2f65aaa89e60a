"""Utilization of the cluster, in total and over time, and locality of tasks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I4, I8, Mask
from sim.cluster.sizing import stage_demands
from sim.cluster.speeds import class_speeds
from sim.engine.record import Run
from sim.engine.stops import REASONS
from sim.metrics.common import FRACTION, NAN, Metric, done_mask, makespan_s
from sim.workload.columns import task_homes
from sim.workload.elastic import has_elastic
from sim.workload.inflow import step_integral
from sim.workload.tables import requested_resources

N_BINS = 120
"""Points of `utilization_over_time`."""

CHUNK = 2**16
"""Number of tasks processed together."""

MAX_TASKS_DRAWN = 300
"""Maximum number of tasks of a run that is drawn task by task."""


METRICS = {
    "utilization": Metric(
        "1",
        "higher",
        "share of the bottleneck that tasks hold, on average while jobs arrive",
        span=FRACTION,
    ),
    "utilization_used": Metric(
        "1",
        "higher",
        "share of the bottleneck that tasks truly use, where they may hold more, meanwhile",
        span=FRACTION,
    ),
    "utilization_makespan": Metric(
        "1",
        "higher",
        "work done over capacity × makespan, of the bottleneck",
        span=FRACTION,
    ),
    "tasks_local": Metric(
        "1", "higher", "fraction of the tasks that ran where their input lies", span=FRACTION
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the utilization of each resource, and the share of tasks that ran at their input."""
    to_makespan = utilization_makespan(run, done_mask(run), makespan_s(run))
    return {
        **utilization(run),
        "utilization_makespan": to_makespan,
        "tasks_local": local_share(run),
    }


def utilization(run: Run) -> dict[str, float]:
    """Compute the utilization of each resource while jobs arrive, and of the bottleneck.

    A task uses what it holds, from its placement, a lag before its start, to its end: under most
    policies what it requests. ``utilization_used`` counts what it truly uses; NaN where the
    workload tells no requests. Slots that a
    gang holds for no task are not in use. The mean from the first submission of the workload to the
    last, or to the last finish if all jobs are submitted at one instant. The tasks of failed jobs
    count, until they are stopped; so do preempted tasks; of others that restart the last placement
    counts. NaN if the run's tasks are not recorded.
    """
    columns, cluster = run.workload.columns, run.cluster
    begin, end = arrivals(run)
    share, truly = np.full((2, len(cluster.resources)), np.nan)
    if end > begin and run.records is not None:
        seconds = seconds_within(run, run.occupancy, begin, end)
        whole = cluster.total * (end - begin)
        share = maths.dot(seconds, stage_demands(run.allocated, cluster)) / whole
        if requested_resources(run.workload.stages):
            truly = maths.dot(seconds, stage_demands(columns, cluster)) / whole
    named = {f"utilization_{r}": float(u) for r, u in zip(cluster.resources, share, strict=True)}
    both = {"utilization": float(share.max()), "utilization_used": float(truly.max())}
    return {**both, **named}


def arrivals(run: Run) -> tuple[float, float]:
    """Return when the first and the last job are submitted, s; if together, the last finish."""
    submit_s = run.workload.columns.job_submit
    begin, end = float(submit_s[0]), float(submit_s[-1])
    if end == begin:
        finish = run.job_finish[np.isfinite(run.job_finish)]
        end = float(finish.max()) if len(finish) else begin
    return begin, end


def seconds_within(
    run: Run,
    times: Callable[[slice], tuple[F8, F8]],
    begin: float,
    end: float,
    stopped: Attempts | None = None,
    stages: Mask | None = None,
) -> F8:
    """Sum the time of each stage's tasks between two times, (G,) s.

    `times` returns from when until when that of some rows of the records lasts, s; `stopped` are
    the stopped attempts that count: `stopped_use` by default. Of stages that `stages` leaves out
    the sum may be 0.
    """
    assert run.records is not None
    task0 = run.workload.columns.stage_task0
    total = np.zeros(len(task0) - 1)
    for first, last in _chunks(task0):
        if stages is not None and not stages[first:last].any():
            continue
        tasks = int(task0[first]), int(task0[last])
        rows = run.records.rows(*tasks)
        begin_s, finish_s = times(rows)
        within = np.maximum(np.minimum(finish_s, end) - np.maximum(begin_s, begin), 0.0)
        begins = task0[first:last] - task0[first]
        seconds = run.records.expand(np.nan_to_num(within), 0.0, *tasks)
        total[first:last] = np.add.reduceat(seconds, begins)
    task, begin_s, end_s = stopped or stopped_use(run)
    within = np.maximum(np.minimum(end_s, end) - np.maximum(begin_s, begin), 0.0)
    total += np.bincount(run.workload.columns.stages_of(task), within, len(total))
    return total


USED = ("timeout", "preempted", "cancelled", "resized")
"""Reasons of stopped attempts that count as use."""


Attempts = tuple[I4, F8, F8]
"""Rows of tasks, and from when until when an attempt of each ran, s."""


def stopped_use(run: Run) -> Attempts:
    """Return the attempts that count as use, of those that were stopped."""
    if run.stopped is None:
        return np.zeros(0, np.int32), np.zeros(0), np.zeros(0)
    rows = np.isin(run.stopped.reason, [REASONS.index(reason) for reason in USED])
    return run.stopped.task[rows], run.stopped.start_s[rows], run.stopped.stop_s[rows]


def running_seconds(run: Run) -> F8:
    """Sum the running time of all attempts of each stage's tasks, (G,) s.

    `run` has a record of its tasks.
    """
    assert run.records is not None
    assert run.stopped is not None
    stopped = run.stopped.task, run.stopped.start_s, run.stopped.stop_s
    return seconds_within(run, run.records.times, -np.inf, np.inf, stopped)


def _chunks(task0: I8) -> list[tuple[int, int]]:
    """Split the stages into ranges of about `CHUNK` tasks."""
    first = np.searchsorted(task0, np.arange(0, int(task0[-1]), CHUNK))
    cuts = np.unique(np.append(first, len(task0) - 1)).tolist()
    return list(itertools.pairwise(cuts))


def utilization_makespan(run: Run, done: Mask, makespan_s: float) -> float:
    """Compute the work done over capacity × makespan, of the bottleneck resource.

    Where classes of machines differ in speed, gangs that cross domains run slower, or jobs are
    elastic, work is the time for which tasks ran.
    """
    columns, cluster = run.workload.columns, run.cluster
    if not np.isfinite(makespan_s) or makespan_s <= 0:
        return NAN
    work = columns.stage_work
    has_speeds = class_speeds(columns, cluster) is not None or cluster.topology.slows
    if has_speeds or has_elastic(columns):
        work = _recorded_work(run)
    elif not done.all():
        work = np.where(done[columns.stage_job], work, _recorded_work(run))
    share = maths.dot(work, stage_demands(columns, cluster)) / (cluster.total * makespan_s)
    return float(share.max())


def _recorded_work(run: Run) -> F8:
    """Sum the recorded running time of each stage's tasks, (G,); 0 without records."""
    n_stages = len(run.workload.columns.stage_job)
    if run.records is None or n_stages == 0:
        return np.zeros(n_stages)
    return seconds_within(run, run.records.times, -np.inf, np.inf)


def utilization_over_time(run: Run, n_bins: int = N_BINS) -> dict[str, Any] | None:
    """Average the utilization of the bottleneck resource over equal parts of a run."""
    if run.task_acquired is None or run.task_finish is None:
        return None
    ran = np.isfinite(run.task_acquired) & np.isfinite(run.task_finish)
    task, begin_s, end_s = stopped_use(run)
    start = np.concatenate([run.task_acquired[ran], begin_s])
    finish = np.concatenate([run.task_finish[ran], end_s])
    if len(start) == 0 or finish.max() <= start.min():
        return None
    columns, cluster = run.workload.columns, run.cluster
    stage = np.concatenate([columns.task_stage()[ran], columns.stages_of(task)])
    demand = stage_demands(run.allocated, cluster) / cluster.total
    work = maths.dot(np.bincount(stage, finish - start, len(columns.stage_job)), demand)
    resource = int(work.argmax())
    begin, share = start.min(), demand[stage, resource]
    edges = np.linspace(0.0, finish.max() - begin, n_bins + 1)
    integral = step_integral(start - begin, share, edges)
    integral -= step_integral(finish - begin, share, edges)
    used = np.diff(integral) / np.diff(edges)
    return {
        "resource": cluster.resources[resource],
        "begin_s": float(begin),
        "end_s": float(finish.max()),
        "used": [float(f"{value:.4g}") for value in np.clip(used, 0.0, None)],
    }


def tasks_over_time(run: Run, max_tasks: int = MAX_TASKS_DRAWN) -> dict[str, Any] | None:
    """Return machine, start and finish of each task of a small run; None for a larger one."""
    columns = run.workload.columns
    if columns.n_tasks > max_tasks:
        return None
    if run.task_start is None or run.task_finish is None or run.task_machine is None:
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
    """Return the share of tasks that ran on their input's machine, of those with an input.

    NaN if there are none.
    """
    homes = task_homes(run.workload.columns, len(run.cluster.capacity))
    if homes is None or run.task_machine is None:
        return float("nan")
    counted = (homes >= 0) & (run.task_machine >= 0)
    return float((homes == run.task_machine)[counted].mean()) if counted.any() else float("nan")
