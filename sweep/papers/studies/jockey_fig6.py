"""Controlled runs over time (Jockey, EuroSys 2012, Fig. 6)."""

from __future__ import annotations

import math

import pyarrow as pa

from sweep.report.findings import Finding, Finished

CASES = {
    "jockey_fig6a": ("F, 45 min, 1.85 times the work", "103"),
    "jockey_fig6b": ("E, 45 min, a slow stage", "in time"),
    "jockey_fig6c": ("G, 60 min, a light run", "in time"),
}
"""What is run, and the completion that the paper has, percent of the deadline."""

CURVES = ("raw", "tokens", "running", "oracle")
ALONG = "minutes since the submission"
STEP_MIN = 5


def find(finished: Finished) -> list[Finding]:
    """Give completion, and the four curves of each run: every five minutes, and as a plot."""
    found = []
    for row in finished.cells:
        case, paper = CASES.get(row["trace"], (row["trace"], ""))
        percent = 100.0 * row["relative_finish"]
        found.append(Finding(case, "completion, % of the deadline", percent, paper=paper))
        table = finished.table(row)
        for curve in CURVES:
            for minute, value in samples(table, curve):
                if minute % STEP_MIN == 0:
                    found.append(Finding(f"{case}, {curve}", f"after {minute} min", value))
                found.append(Finding(case, "", value, curve=curve, along=ALONG, at=minute))
    return found


def samples(table: pa.Table, curve: str) -> list[tuple[int, float]]:
    """Return each minute and the value then, where there is a value."""
    pairs = zip(table["elapsed_s"].to_pylist(), table[curve].to_pylist(), strict=True)
    at = [(round(elapsed_s / 60), value) for elapsed_s, value in pairs]
    return [(m, v) for m, v in at if not math.isnan(v)]
