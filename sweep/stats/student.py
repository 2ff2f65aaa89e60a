"""Means over seeds and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95


def interval(values: Sequence[float] | ArrayLike) -> tuple[float, float, float]:
    """Mean of a metric over seeds with its 95 % confidence interval.

    The seeds are taken as independent draws, so the interval is Student's:
    ``mean ± t(0.975, n − 1) · s / √n`` with ``s`` the sample standard deviation
    (``n − 1`` in its denominator).

    Parameters
    ----------
    values : sequence of float, shape (n_seeds,)
        One value a seed, in any unit; NaN (a failed cell, a metric that does not apply) is
        left out.

    Returns
    -------
    mean, low, high : float
        In the unit of `values`. One value gives no interval: `low` and `high` are NaN.
        No value at all: all three are NaN.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    mean, half, _ = intervals(column)
    return float(mean[0]), float(mean[0] - half[0]), float(mean[0] + half[0])


def intervals(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Do `interval` for many metrics at once.

    Parameters
    ----------
    values : float64 array, shape (n_seeds, n_metrics)
        Read only; NaN is left out, metric by metric.

    Returns
    -------
    mean : float64 array, shape (n_metrics,)
        NaN where a metric has no value.
    half : float64 array, shape (n_metrics,)
        Half the width of the 95 % interval; NaN where a metric has fewer than two values.
    n : int64 array, shape (n_metrics,)
        Values counted.
    """
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


def _t_quantile(degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    """Two-sided 95 % quantile of Student's t, shape of `degrees`."""
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    quantile: NDArray[np.float64] = stdtrit(degrees.astype(np.float64), 0.5 + CONFIDENCE / 2)
    return quantile
