"""Numbers that a measure itself puts beside the paper's."""

from __future__ import annotations

from typing import Any

from sim.describe.statistics import SECTIONS
from sim.published import numbers
from sweep.report.findings import Finding, Finished


def published(finished: Finished) -> list[Finding]:
    """Give every published number of a synthesized workload, beside the mean of ours over seeds."""
    tables = [finished.table(row).to_pylist() for row in finished.cells]
    return [
        Finding.of(
            rows[0]["figure"],
            rows[0]["what"],
            [row["ours"] for row in rows],
            paper=f"{rows[0]['paper']:.4g}",
        )
        for rows in zip(*tables, strict=True)
    ]


def described(finished: Finished) -> list[Finding]:
    """Give every number that Tian et al. (SoCC 2019) have too, of the trace and of random DAGs."""
    of_random = numbers("alibaba")["random"]
    findings = []
    for row in finished.table(finished.cells[0]).to_pylist():
        paper = row["paper"]
        if row["dataset"] == "random":
            paper = of_random.get(row["section"], {}).get(row["key"], paper)
        if paper == paper and row["kind"] != "count":
            findings.append(_described(row, paper))
    return findings


def _described(row: dict[str, Any], paper: float) -> Finding:
    scale, unit = (100.0, ", %") if row["kind"] == "share" else (1.0, "")
    of = "random DAGs: " if row["dataset"] == "random" else ""
    what = ", ".join(filter(None, (row["group"], row["label"]))) + unit
    figure = of + SECTIONS[row["section"]]
    return Finding(figure, what, scale * row["value"], paper=f"{scale * paper:.4g}")
