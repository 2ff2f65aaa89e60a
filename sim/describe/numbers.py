"""Summaries that are NaN where there is nothing to summarise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim import dags


def mean(values: NDArray[Any]) -> float:
    """Return the mean; of a mask, the share."""
    return float(values.mean()) if len(values) else np.nan


def deviation(values: NDArray[Any]) -> float:
    """Return the standard deviation (of the values as they are, not of a sample)."""
    return float(values.std()) if len(values) else np.nan


def largest(values: NDArray[Any]) -> float:
    """Return the largest."""
    return float(values.max()) if len(values) else np.nan


def quantile(values: NDArray[Any], q: float) -> float:
    """Return a quantile, interpolated."""
    return float(np.quantile(values, q)) if len(values) else np.nan


def slope(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the slope of the least-squares line; NaN through points of one x."""
    return dags.slope(x, y) if len(x) and (x != x[0]).any() else np.nan
