"""How alike schedules are with real and with synthesized dependencies (SoCC 2019, Fig. 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.dags.compare import distance
from sweep.findings import Finding, Finished

REAL, REWIRED = "alibaba_hour", "alibaba_hour_rewired"


def find(finished: Finished) -> list[Finding]:
    """Compare completion times cell by cell, and how policies rank at each capacity."""
    found = []
    for (policy, capacity), cells in finished.by("policy", "capacity").items():
        off, ratio = [], []
        for real, other in _pairs(cells):
            off.append(distance(_jct_s(finished.table(real)), _jct_s(finished.table(other))))
            ratio.append(other["jct_mean_s"] / real["jct_mean_s"])
        where = f"{policy}, capacity {capacity:g}"
        found.append(Finding.of("Fig. 13", f"KS distance of the JCTs, {where}", off, at_most=0.05))
        found.append(
            Finding.of(
                "Fig. 13",
                f"mean JCT, synthesized over real, {where}",
                ratio,
                at_least=0.95,
                at_most=1.05,
            )
        )
    return found + _ranks(finished)


def _ranks(finished: Finished) -> list[Finding]:
    """Kendall's tau-b of the policies' mean JCTs, where there are enough policies to rank."""
    from scipy.stats import kendalltau

    found = []
    for (capacity,), cells in finished.by("capacity").items():
        of_seed: dict[int, list[tuple[float, float]]] = {}
        for real, other in _pairs(cells):
            of_seed.setdefault(real["seed"], []).append((real["jct_mean_s"], other["jct_mean_s"]))
        n_policies = min(map(len, of_seed.values()))
        if n_policies < 3:
            continue
        tau = [float(kendalltau(*zip(*pairs, strict=True)).statistic) for pairs in of_seed.values()]
        what = f"Kendall's τ of {n_policies} policies by mean JCT, capacity {capacity:g}"
        found.append(Finding.of("ranking", what, tau))
    return found


def _pairs(cells: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Match the cells of the two traces by policy, capacity and seed."""
    key = ("policy", "capacity", "seed")
    others = {tuple(row[k] for k in key): row for row in cells if row["trace"] == REWIRED}
    real = [row for row in cells if row["trace"] == REAL]
    return [(row, others[where]) for row in real if (where := tuple(row[k] for k in key)) in others]


def _jct_s(jobs: pa.Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    jct = jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy()
    return np.asarray(jct[~np.isnan(jct)], dtype=np.float64)
