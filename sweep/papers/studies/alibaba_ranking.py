"""Whether policies rank the same with real and with synthesized dependencies."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.stats import kendalltau

from sweep.papers.studies.alibaba_dynamic import pairs
from sweep.report.findings import Finding, Finished
from sweep.stats import interval


def find(finished: Finished) -> list[Finding]:
    """Give Kendall's tau of mean JCTs at each capacity, and how clear differences are kept.

    Tau-b counts pairs of policies that are within a hair of each other as much as any. So the
    share of pairs that keep their order is given too, of those that differ on the real jobs: the
    95 % interval of their difference, paired over seeds, leaves 0 out.
    """
    taus, orders = [], []
    for (capacity,), cells in finished.by("capacity").items():
        names = sorted({row["policy"] for row in cells})
        seeds = sorted({row["seed"] for row in cells})
        jct = np.full((2, len(names), len(seeds)), np.nan)
        for both in pairs(cells):
            for kind, row in enumerate(both):
                jct[kind, names.index(row["policy"]), seeds.index(row["seed"])] = row["jct_mean_s"]
        where = f"{len(names)} policies, capacity {capacity:g}"
        tau = [float(kendalltau(*of_seed).statistic) for of_seed in jct.transpose(2, 0, 1)]
        taus.append(Finding.of("Kendall's tau of mean JCT", where, tau))
        kept = [
            float(np.sign((real[a] - real[b]).mean()) == np.sign((made[a] - made[b]).mean()))
            for real, made in [jct]
            for a, b in combinations(range(len(names)), 2)
            if _differ(real[a] - real[b])
        ]
        what = f"{where}, {len(kept)} pairs"
        orders.append(Finding("clearly different pairs in order", what, float(np.mean(kept))))
    return taus + orders


def _differ(difference: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    _, low, high = interval(difference)
    return low > 0 or high < 0
