"""Share of pairs of jobs that start in the recorded order."""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8, I8


def pairs_in_order(recorded_s: F8, simulated_s: F8, grace_s: float = 0.0) -> float:
    """Compute the share of pairs of jobs that start in the recorded order.

    Pairs with the same recorded start are left out: the log does not order them. A pair is out of
    order if the simulation starts the later job earlier, by more than `grace_s`; so a simulated tie
    is in order. In O(n log² n), by merging.

    Parameters
    ----------
    recorded_s, simulated_s : (N,) float64
        Starts of the same jobs, s.
    grace_s : float
        Difference of simulated starts that lags alone can make, s.

    Returns
    -------
    float
        NaN where no two recorded starts differ.
    """
    n = len(recorded_s)
    order = np.lexsort((simulated_s, recorded_s))  # ties by simulated start: never out of order
    starts = simulated_s[order]
    ordered = np.sort(starts)
    rank = np.empty(n, np.int64)
    rank[np.argsort(starts, kind="stable")] = np.arange(n)
    limit = np.searchsorted(ordered, starts + grace_s, side="right")
    n_ties = np.unique(recorded_s, return_counts=True)[1]
    n_pairs = n * (n - 1) // 2 - int((n_ties * (n_ties - 1) // 2).sum())
    if n_pairs == 0:
        return math.nan
    return 1.0 - _count_above(rank, limit) / n_pairs


def _count_above(rank: I8, limit: I8) -> int:
    """Count the pairs i < j with ``rank[i] >= limit[j]``, block by block of doubling size."""
    n = len(rank)
    position = np.arange(n)
    n_above, width = 0, 1
    while width < n:
        block, is_left = position // (2 * width), position // width % 2 == 0
        left = np.sort(block[is_left] * (n + 1) + rank[is_left])
        ends = np.searchsorted(left, (block[~is_left] + 1) * (n + 1))
        begins = np.searchsorted(left, block[~is_left] * (n + 1) + limit[~is_left])
        n_above += int((ends - begins).sum())
        width *= 2
    return n_above
