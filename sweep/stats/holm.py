"""Correction for comparing many: Holm's step-down procedure."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8


def holm(p: F8) -> F8:
    """Adjust p-values so that the chance of any false discovery among them stays bounded.

    Calling those significant whose adjusted value is at most α keeps the chance of one or more
    wrong calls at most α, however the tests depend on each other (Holm, Scandinavian Journal of
    Statistics 6(2), 1979). With the values ascending, the k-th of m is multiplied by m - k + 1,
    is never below the one before it, and never above 1.
    """
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1, dtype=np.float64)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted
