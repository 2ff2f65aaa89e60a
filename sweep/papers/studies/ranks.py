"""How alike the ranks of policies are on two workloads, and means of ratios."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.report.findings import Finding
from sweep.stats import interval


def taus(real: F8, made: F8) -> list[float]:
    """Return Kendall's tau of what policies (rows) have on two workloads, by seed (columns)."""
    from scipy.stats import kendalltau  # half a second to import

    return [float(kendalltau(*both).statistic) for both in zip(real.T, made.T, strict=True)]


def pairs_kept(real: F8, made: F8, where: str) -> Finding:
    """Give the share of pairs of policies in the same order, of those that differ on the first.

    They differ where the 95 % interval of their difference, paired over seeds, leaves 0 out.
    """
    kept = []
    for a, b in combinations(range(len(real)), 2):
        mean, low, high = interval(real[a] - real[b])
        if low > 0 or high < 0:
            kept.append(float((made[a] - made[b]).mean()) * mean > 0)
    share = float(np.mean(kept)) if kept else math.nan
    return Finding("clearly different pairs in order", f"{where}, {len(kept)} pairs", share)


def geometric(title: str, what: str, logs: Sequence[float], **others: Any) -> Finding:
    """Give the mean of the exponentials of logarithms, and Student's interval of these."""
    one = Finding.from_seeds(title, what, logs)
    return Finding(title, what, math.exp(one.ours), math.exp(one.low), math.exp(one.high), **others)
