"""Shared parts of metrics: their definition, and values that several are computed from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.base.arrays import F8, Mask
from sim.engine.record import Run

NAN = float("nan")
Span = tuple[float, float]
"""Smallest and largest value that a metric can have."""
UNBOUNDED: Span = (-math.inf, math.inf)
POSITIVE: Span = (0.0, math.inf)
FRACTION: Span = (0.0, 1.0)


@dataclass(frozen=True)
class Metric:
    """Definition of a metric."""

    unit: str  # ``s``, or ``1`` for ratios and fractions
    better: Literal["lower", "higher"]
    meaning: str  # one line for readers
    against_baseline: bool = False  # True if it compares a run with the baseline's
    # of its values: intervals of means stay within it (`sweep.stats.inference.ends`)
    span: Span = UNBOUNDED


def done_mask(run: Run) -> Mask:
    """Flag the jobs done: finished, and not failed."""
    return np.isfinite(run.job_finish) & ~run.job_failed


def makespan_s(run: Run) -> float:
    """Return the last finish of the jobs done minus the first submission; NaN if none is done."""
    finish = run.job_finish[done_mask(run)]
    return float(finish.max() - run.workload.columns.job_submit[0]) if len(finish) else NAN


def mean(values: F8 | Mask) -> float:
    """Return the mean; NaN for no values."""
    return float(values.mean()) if len(values) else NAN


def percentiles(values: F8, *q: float) -> list[float]:
    """Return percentiles by linear interpolation; NaN for no values."""
    if len(values) == 0:
        return [NAN] * len(q)
    return [float(v) for v in np.percentile(values, q)]
