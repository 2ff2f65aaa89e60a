"""Metrics job by job, of which `sim.metrics.compute` gives percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sim.engine.result import Result

F8 = NDArray[np.float64]


def gap_lb(run: Result) -> F8:
    """Compute JCT / ``new_lb`` - 1 of each job.

    Returns
    -------
    (J,) float64
        NaN for a job that is not done, or whose bound is 0.
    """
    bound = run.bounds["new_lb"]
    jct = np.where(_done(run), run.job_finish - run.job_submit, np.nan)
    gap: F8 = jct / np.where(bound > 0, bound, np.nan) - 1
    return gap


def prediction_error(run: Result) -> F8:
    """Compute |estimate - size| / size of each job, the size being the sum of its tasks' durations.

    Returns
    -------
    (J,) float64
        NaN for a job that is not done, has no size, or of which nothing was estimated.
    """
    size = run.workload.columns.job_work
    known = _done(run) & (size > 0) & np.isfinite(run.estimate_s)
    error: F8 = np.abs(run.estimate_s - size) / np.where(known, size, np.nan)
    return error


def _done(run: Result) -> NDArray[np.bool_]:
    return np.isfinite(run.job_finish) & ~run.job_failed
