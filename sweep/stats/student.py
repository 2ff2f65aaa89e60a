"""Means over seeds and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8, I8

CONFIDENCE = 0.95


def interval(values: Sequence[float] | ArrayLike) -> tuple[float, float, float]:
    """Mean of a metric over seeds with its 95 % confidence interval.

    The seeds are taken as independent draws, so the interval is Student's:
    ``mean ± t(0.975, n − 1) · s / √n`` with ``s`` the sample standard deviation
    (``n − 1`` in its denominator).
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    mean, half, _ = intervals(column)
    return float(mean[0]), float(mean[0] - half[0]), float(mean[0] + half[0])


def intervals(
    values: F8,
) -> tuple[F8, F8, I8]:
    """Do `interval` for many metrics at once."""
    present = ~np.isnan(values)
    n = present.sum(axis=0).astype(np.int64)
    mean = np.full(values.shape[1], math.nan)
    half = np.full(values.shape[1], math.nan)
    some = n > 0
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite mean has no interval
        mean[some] = np.where(present, values, 0.0).sum(axis=0)[some] / n[some]
        several = n > 1
        if several.any():
            deviation = np.where(present, values - mean, 0.0)[:, several]
            variance = (deviation**2).sum(axis=0) / (n[several] - 1)
            half[several] = _t_quantile(n[several] - 1) * np.sqrt(variance / n[several])
    return mean, half, n


def _t_quantile(degrees: I8) -> F8:
    """Two-sided 95 % quantile of Student's t, shape of `degrees`."""
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    quantile: F8 = stdtrit(degrees.astype(np.float64), 0.5 + CONFIDENCE / 2)
    return quantile
