"""Stops of jobs, and the work that they lose.

A job *stops* at an instant at which running tasks of it are stopped: preempted, evicted, ended at a
limit, or by a failure of theirs or of a machine; not where an elastic job gives back places. Work
is lost where a task ran and no checkpoint kept its work: all of an attempt of a job that never
completes, and what was kept, too, if the task later fails and begins anew. The time to restart of
an attempt that is stopped is lost with it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I4, Mask
from sim.cluster.sizing import stage_demands
from sim.engine.record import Run
from sim.engine.stops import REASONS, StoppedAttempts
from sim.metrics.common import FRACTION, NAN, POSITIVE, Metric, done_mask, mean
from sim.metrics.usage import running_seconds

STOPS, WORK_LOST, SHARE_LOST = "stops_mean", "work_lost_mean_s", "work_lost"
METRICS = {
    STOPS: Metric(
        "1", "lower", "mean number of times at which running tasks of a job stopped", span=POSITIVE
    ),
    WORK_LOST: Metric(
        "s", "lower", "mean over jobs of the running time of tasks lost by stops", span=POSITIVE
    ),
    SHARE_LOST: Metric(
        "1", "lower", "share of the bottleneck's running work lost by stops", span=FRACTION
    ),
}
OF_JOBS = (STOPS, WORK_LOST)
"""Metrics that groups of jobs have, too."""
BEGIN_ANEW = ("failed", "input lost", "output lost")
"""Reasons after which a task has no checkpoint any more."""


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the stops, and the work that they lost.

    ``stops_mean``, ``work_lost_mean_s``: means over all jobs. ``work_lost``: Σ time lost × demand
    over Σ running time × demand, of the resource with the largest value. NaN without records of
    tasks.
    """
    if run.stopped is None or run.records is None:
        return dict.fromkeys(METRICS, NAN)
    all_jobs = np.ones(len(run.job_start), np.bool_)
    share = _share_lost(run, run.stopped) if len(run.stopped.task) else 0.0
    return {**means(by_job(run), all_jobs), SHARE_LOST: share}


def means(values: tuple[F8, F8], jobs: Mask) -> dict[str, float]:
    """Return the means of `by_job` over some jobs, by name of the metric."""
    return {name: mean(column[jobs]) for name, column in zip(OF_JOBS, values, strict=True)}


def by_job(run: Run) -> tuple[F8, F8]:
    """Return the number of stops of each job, and its tasks' time lost, s: (J,) float64 each.

    NaN without records of tasks.
    """
    n_jobs, stopped = len(run.job_start), run.stopped
    if stopped is None:
        return np.full(n_jobs, np.nan), np.full(n_jobs, np.nan)
    job = _jobs_of(run, stopped)
    order = np.lexsort((stopped.stop_s, job))
    order = order[stopped.reason[order] != REASONS.index("resized")]  # the job goes on
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (np.diff(stopped.stop_s[order]) != 0.0) | (np.diff(job[order]) != 0)
    n_stops = np.bincount(job[order][is_first], minlength=n_jobs).astype(np.float64)
    return n_stops, np.bincount(job, lost_s(run, stopped), n_jobs).astype(np.float64)


def lost_s(run: Run, stopped: StoppedAttempts) -> F8:
    """Return the time of each stopped attempt of a run whose work was lost, (N,) s."""
    is_kept = done_mask(run)[_jobs_of(run, stopped)]
    is_restart = np.isin(stopped.reason, [REASONS.index(reason) for reason in BEGIN_ANEW])
    if is_restart.any():
        row = np.arange(len(is_restart))  # by time
        last_restart, unit = np.full(run.workload.n_tasks, -1), _units_of(run, stopped)
        np.maximum.at(last_restart, unit[is_restart], row[is_restart])
        is_kept &= row > last_restart[unit]
    return stopped.stop_s - stopped.start_s - np.where(is_kept, stopped.kept_s, 0.0)


def _units_of(run: Run, stopped: StoppedAttempts) -> I4:
    """Return the task whose work each stopped attempt is of: its own, or an elastic job's first."""
    columns = run.workload.columns
    stage = columns.stages_of(stopped.task)
    is_elastic = columns.job_width_min[columns.stage_job[stage]] > 0
    return np.where(is_elastic, columns.stage_task0[stage], stopped.task).astype(np.int32)


def _jobs_of(run: Run, stopped: StoppedAttempts) -> I4:
    """Return the job of each stopped attempt, (N,)."""
    columns = run.workload.columns
    return columns.stage_job[columns.stages_of(stopped.task)]


def _share_lost(run: Run, stopped: StoppedAttempts) -> float:
    """Compute the share of the running work that was lost, of the resource where it is largest."""
    columns = run.workload.columns
    demands = stage_demands(columns, run.cluster)
    stage = columns.stages_of(stopped.task)
    by_stage = np.bincount(stage, lost_s(run, stopped), len(columns.stage_job))
    lost, ran = maths.dot(by_stage, demands), maths.dot(running_seconds(run), demands)
    return float(np.max(lost / np.where(ran > 0, ran, np.inf)))
