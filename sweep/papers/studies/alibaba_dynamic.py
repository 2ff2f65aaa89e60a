"""How alike schedules are with real and with synthesized dependencies (SoCC 2019, Fig. 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.dags.properties import distance
from sweep.report.findings import Finding, Finished

REAL, REWIRED = "alibaba_hour", "alibaba_hour_rewired"


def find(finished: Finished) -> list[Finding]:
    """Compare completion times, cell by cell."""
    found = []
    for (policy, capacity), cells in finished.by("policy", "capacity").items():
        off, ratio = [], []
        for real, other in pairs(cells):
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
    return found


def pairs(cells: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Match the cells of the two traces by policy, capacity and seed: (real, synthesized)."""
    key = ("policy", "capacity", "seed")
    others = {tuple(row[k] for k in key): row for row in cells if row["trace"] == REWIRED}
    real = [row for row in cells if row["trace"] == REAL]
    return [(row, others[where]) for row in real if (where := tuple(row[k] for k in key)) in others]


def _jct_s(jobs: pa.Table) -> np.ndarray[Any, np.dtype[np.float64]]:
    jct = jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy()
    return np.asarray(jct[~np.isnan(jct)], dtype=np.float64)
