"""Metrics of rigid parallel jobs, all of whose tasks start together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8
from sim.engine.record import Run
from sim.metrics.common import POSITIVE, Metric, done_mask, mean

METRICS = {
    "bounded_slowdown_mean": Metric(
        "1",
        "lower",
        "mean of completion time over run time, of at least 10 s each",
        span=POSITIVE,
    )
}
TAU_S = 10.0
"""Minimum run time in the slowdown of short jobs (Feitelson and Rudolph, JSSPP 1998)."""


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute ``bounded_slowdown_mean``; empty if a job is not rigid, or if there is no gang."""
    columns = run.workload.columns
    gang = columns.job_min_tasks
    if not gang.any() or ((gang != columns.job_n_tasks) & (columns.job_n_tasks > 1)).any():
        return {}
    return {"bounded_slowdown_mean": mean(bounded_slowdown(run)[done_mask(run)])}


def bounded_slowdown(run: Run) -> F8:
    """Compute max(1, (wait + run) / max(run, 10 s)) of each job; NaN if it never ended."""
    jct, run_s = run.job_finish - run.job_submit, run.job_finish - run.job_start
    return np.maximum(1.0, jct / np.maximum(run_s, TAU_S))
