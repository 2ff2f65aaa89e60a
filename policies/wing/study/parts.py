"""Parts of Wing, each taken away alone and paired by seed."""

from __future__ import annotations

from sweep.questions.papers.figures import Findings, compare_seeds, grouped, mean
from sweep.report.findings import FinishedSweep

AGG, DIRECT = "wing_agg", "wing_direct"
WING = (
    ("aggregate instead of own value", AGG, DIRECT),
    ("the same, of true values", "wing_oracle/agg", "wing_oracle/direct"),
    ("value", AGG, "wing_without/value"),
    ("resource-time", AGG, "wing_without/resource_time"),
    ("true instead of estimated values", "wing_oracle/agg", AGG),
    ("the same, of own values", "wing_oracle/direct", DIRECT),
    ("all, over PRIO", AGG, "priority"),
    ("all, over order of arrival", AGG, "fifo"),
    ("own value alone, over order of arrival", DIRECT, "fifo"),
)
"""Parts of Wing, with the schemes that attain value with it and without it (decision 32)."""


def wing(finished: FinishedSweep) -> Findings:
    """Compute the points of value that each part brings, by seed."""
    for (capacity,), cells in finished.group_by("capacity").items():
        schemes = grouped(cells, "policy")
        for label, *pair in WING:
            points = compare_seeds(schemes, pair, "value_attained", _points)
            yield from mean(f"capacity {capacity:g}, points of value", label, points)
        for policy, rows in schemes.items():
            values = [100.0 * row["value_attained"] for row in rows]
            yield from mean(f"capacity {capacity:g}, value attained %", policy, values)


def _points(a: float, b: float) -> float:
    return 100.0 * (a - b)
