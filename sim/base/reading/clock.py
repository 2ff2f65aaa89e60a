"""Resolution of a log's clock."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8

UNITS_S = (60.0, 1.0, 0.1, 0.01, 1e-3, 1e-6)
"""Resolutions that logs have, s: minutes, seconds and parts of them."""
MIN_TIMES = 10
"""Number of distinct times from which on whole minutes are no coincidence."""


def resolution_s(*times_s: F8) -> float:
    """Return the coarsest unit (`UNITS_S`) of which all recorded times are multiples, s.

    Whole minutes count only from `MIN_TIMES` distinct times on. NaN is an unknown time; times finer
    than a microsecond count as microseconds.
    """
    times = np.concatenate([column[~np.isnan(column)] for column in times_s])
    is_short = len(np.unique(times)) < MIN_TIMES
    for unit in UNITS_S[is_short:]:
        whole = np.rint(times / unit)
        rounding = 1e-9 + np.abs(times) * 2.0**-52
        if (np.abs(times - whole * unit) <= rounding).all():
            return unit
    return UNITS_S[-1]
