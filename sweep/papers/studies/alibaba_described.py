"""What DAGs of production jobs look like, number by number (Tian et al., SoCC 2019, §3 to §7.1)."""

from __future__ import annotations

from typing import Any

from sim.describe.description import SECTIONS
from sweep.report.findings import Finding, Finished

OF_RANDOM = {
    ("structure", "out_degree_at_most_3"): 0.641,
    ("structure", "length_slope"): 0.764,
    ("levels", "one_level"): 0.2992,
}
"""What the paper has of random DAGs (§4.2, §7.1)."""


def find(finished: Finished) -> list[Finding]:
    """Give every number that the paper has too, of the trace and of random DAGs."""
    found = []
    for row in finished.table(finished.cells[0]).to_pylist():
        paper = row["paper"]
        if row["dataset"] == "random":
            paper = OF_RANDOM.get((row["section"], row["key"]), paper)
        if paper == paper and row["kind"] != "count":
            found.append(_finding(row, paper))
    return found


def _finding(row: dict[str, Any], paper: float) -> Finding:
    scale, unit = (100.0, ", %") if row["kind"] == "share" else (1.0, "")
    of = "random DAGs: " if row["dataset"] == "random" else ""
    what = ", ".join(filter(None, (row["group"], row["label"]))) + unit
    figure = of + SECTIONS[row["section"]]
    return Finding(figure, what, scale * row["value"], paper=f"{scale * paper:.4g}")
