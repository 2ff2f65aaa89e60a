"""Distributions by group, of columns."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""What is kept of a distribution."""


def quantiles(values: F8, group: I4, n_groups: int, q: tuple[float, ...] = QUANTILES) -> F8:
    """Return quantiles of each group's values, interpolated; NaN values are left out."""
    known = ~np.isnan(values)
    values, group = values[known], group[known]
    order = np.lexsort((values, group))
    values = values[order]
    n = np.bincount(group, minlength=n_groups)
    first = np.cumsum(n) - n
    out = np.full((n_groups, len(q)), np.nan)
    some = np.flatnonzero(n)
    for column, share in enumerate(q):
        place = first[some] + share * (n[some] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, first[some] + n[some] - 1)
        part = place - low
        apart = np.zeros(len(some))
        np.subtract(values[high], values[low], out=apart, where=values[high] != values[low])
        rise = np.zeros(len(some))
        np.multiply(part, apart, out=rise, where=part > 0)
        out[some, column] = values[low] + rise
    return out


def medians(values: F8, group: I4, n_groups: int) -> F8:
    """Return the median of each group's values, (G,); NaN values are left out."""
    out: F8 = quantiles(values, group, n_groups, (0.5,))[:, 0]
    return out
