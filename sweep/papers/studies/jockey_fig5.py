"""How completion times lie relative to deadlines, by policy (Jockey, EuroSys 2012, Fig. 5)."""

from __future__ import annotations

import numpy as np

from sweep.report.findings import Finding, Finished

PERCENTILES = (5, 25, 50, 75, 95)

EARLY = {"max_allocation": "about 30"}
"""Median completion of the deadline, percent (§5.2)."""

LATE = {"jockey_static": "10", "jockey_amdahl": "1", "jockey": "3"}
"""How late the median late job is, percent (§5.2)."""


def find(finished: Finished) -> list[Finding]:
    """Give percentiles of completion over deadline, and how late the median late job is."""
    found = []
    for (policy,), cells in finished.by("policy").items():
        percent = np.array([100.0 * row["relative_finish"] for row in cells])
        for p in PERCENTILES:
            paper = EARLY.get(policy, "") if p == 50 else ""
            value = float(np.percentile(percent, p))
            what = f"{p}th percentile"
            found.append(
                Finding(f"{policy}, completion, % of the deadline", what, value, paper=paper)
            )
        late = percent[percent > 100.0] - 100.0
        value = float(np.median(late)) if len(late) else float("nan")
        what = "median late job, % late"
        paper = LATE.get(policy, "")
        found.append(Finding(f"{policy}, completion, % of the deadline", what, value, paper=paper))
    return found
