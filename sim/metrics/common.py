"""What metrics are made of: what one is, and what several are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sim.base.arrays import F8, Mask
from sim.engine.record import Run

NAN = float("nan")


@dataclass(frozen=True)
class Metric:
    """What a metric is."""

    unit: str  # ``s``, or ``1`` for ratios and fractions
    better: Literal["lower", "higher"]
    meaning: str  # one line for people
    against_baseline: bool = False  # whether it compares a run with the baseline's


def done_mask(run: Run) -> Mask:
    """Tell which jobs are done: finished, and not failed."""
    return np.isfinite(run.job_finish) & ~run.job_failed


def makespan_s(run: Run) -> float:
    """Return the last finish of the jobs done minus the first submission of all; NaN if none is."""
    finish = run.job_finish[done_mask(run)]
    return float(finish.max() - run.workload.columns.job_submit[0]) if len(finish) else NAN


def mean(values: F8 | Mask) -> float:
    """Return the mean, NaN of nothing."""
    return float(values.mean()) if len(values) else NAN


def percentiles(values: F8, *q: float) -> list[float]:
    """Return percentiles by linear interpolation, NaN of nothing."""
    if len(values) == 0:
        return [NAN] * len(q)
    return [float(v) for v in np.percentile(values, q)]
