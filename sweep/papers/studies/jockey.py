"""Missed deadlines and allocation above the oracle's, by policy (Jockey, EuroSys 2012, Fig. 4)."""

from __future__ import annotations

from typing import Any

from sweep.report.findings import Finding, Finished

Row = dict[str, Any]

MISSED = {
    "jockey": "1 of 94",
    "jockey_static": "18",
    "jockey_amdahl": "16",
    "max_allocation": "0",
}
"""Percent (§1, §5.2, §5.3)."""

IMPACT = {"jockey": "35", "max_allocation": "3 times Jockey's"}
"""Percent above the oracle's allocation: Fig. 11's baseline, and §5.6."""

MUCH = 3.0
"""How many times as much is much more."""

ORDERS = (
    ("misses", "jockey", "max_allocation", 1.0),
    ("misses", "jockey_static", "jockey", MUCH),
    ("misses", "jockey_amdahl", "jockey", MUCH),
    ("impact", "jockey", "jockey_amdahl", 1.0),
    ("impact", "jockey_static", "jockey", 1.0),
    ("impact", "max_allocation", "jockey_static", 1.0),
    ("impact", "max_allocation", "jockey", 1.0),
)
"""Of which figure the first policy is to have at least so many times the second's."""

METRICS = {"misses": "deadlines_missed", "impact": "allocation_above_oracle"}


def find(finished: Finished) -> list[Finding]:
    """Give both figures for each policy, and the orders that are wanted of them."""
    policies = {policy: cells for (policy,), cells in finished.by("policy").items()}
    found = [
        Finding("runs", name, float(len(cells)), paper="more than 80")
        for name, cells in policies.items()
    ]
    shown = {"misses": "missed deadlines, %", "impact": "allocation above the oracle's, %"}
    means: dict[tuple[str, str], float] = {}
    for figure, metric in METRICS.items():
        paper = MISSED if figure == "misses" else IMPACT
        for name, cells in policies.items():
            values = [100.0 * row[metric] for row in cells]
            one = Finding.of(shown[figure], name, values, paper=paper.get(name, ""))
            means[figure, name] = one.ours
            found.append(one)
    for figure, more, less, times in ORDERS:
        if more in policies and less in policies:
            ratio = over(means[figure, more], means[figure, less])
            what = f"{figure}, {more} over {less}"
            found.append(Finding("orders", what, ratio, at_least=times))
    return found


def over(more: float, less: float) -> float:
    """Return the ratio; two zeros are as much as each other."""
    if less == 0.0:
        return 1.0 if more == 0.0 else float("inf")
    return more / less
