"""Metrics job by job, of which `sim.metrics.compute` gives percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, Mask

if TYPE_CHECKING:
    from sim.engine.result import Result


def gap_lb(run: Result) -> F8:
    """Compute JCT / ``new_lb`` - 1 of each job."""
    bound = run.bounds["new_lb"]
    jct = np.where(_done(run), run.job_finish - run.job_submit, np.nan)
    gap: F8 = jct / np.where(bound > 0, bound, np.nan) - 1
    return gap


def prediction_error(run: Result) -> F8:
    """Compute |estimate - size| / size of each job; size is the sum of its tasks' durations."""
    size = run.workload.columns.job_work
    known = _done(run) & (size > 0) & np.isfinite(run.estimate_s)
    error: F8 = np.abs(run.estimate_s - size) / np.where(known, size, np.nan)
    return error


def _done(run: Result) -> Mask:
    return np.isfinite(run.job_finish) & ~run.job_failed
