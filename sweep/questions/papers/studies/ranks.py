"""Similarity of policies' ranks on two workloads, and geometric means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.report.findings import Finding
from sweep.stats import interval


def taus(real: F8, synthetic: F8) -> list[float]:
    """Compute Kendall's tau of policies' values (rows) on two workloads, by seed (columns)."""
    from scipy.stats import kendalltau  # half a second to import

    return [float(kendalltau(*pair).statistic) for pair in zip(real.T, synthetic.T, strict=True)]


def order_kept(real: F8, synthetic: F8, label: str) -> Finding:
    """Compute the share of pairs of policies in the same order, of those that differ on the first.

    They differ if the 95 % interval of their difference, paired over seeds, excludes 0.
    """
    in_order = []
    for a, b in combinations(range(len(real)), 2):
        mean, low, high = interval(real[a] - real[b])
        if low > 0 or high < 0:
            in_order.append(float((synthetic[a] - synthetic[b]).mean()) * mean > 0)
    share = float(np.mean(in_order)) if in_order else math.nan
    return Finding("clearly different pairs in order", f"{label}, {len(in_order)} pairs", share)


def geometric(title: str, quantity: str, logs: Sequence[float], **fields: Any) -> Finding:
    """Build a finding from the geometric mean, with Student's interval of the logarithms."""
    ours, low, high = map(math.exp, interval(logs))
    return Finding(title, quantity, ours, low, high, **fields)
