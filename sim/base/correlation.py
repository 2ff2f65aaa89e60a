"""Correlation of two series: Pearson's and Spearman's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8


def correlation(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Compute Pearson's correlation; NaN if one series is constant."""
    if len(x) < 2 or not (x != x[0]).any() or not (y != y[0]).any():
        return np.nan
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))


def rank_correlation(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Compute Spearman's ρ, with ties at their mean rank; NaN if one series is constant."""
    return correlation(_ranks(x), _ranks(y))


def _ranks(x: NDArray[Any]) -> F8:
    _, code, n = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(n) - (n - 1) / 2)[code.reshape(-1)]
