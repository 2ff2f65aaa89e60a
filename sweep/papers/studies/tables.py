"""Numbers that an evaluator itself puts beside the paper's."""

from __future__ import annotations

from sim.describe.statistics import SECTIONS
from sim.published import numbers
from sweep.papers.figures import Findings, column, mean
from sweep.report.findings import Finding, FinishedSweep


def published(finished: FinishedSweep) -> Findings:
    """Give every published number of a synthesized workload, beside the mean of ours over seeds."""
    tables = [finished.table(row).to_pylist() for row in finished.cells]
    for rows in zip(*tables, strict=True):
        figure, what, paper = (rows[0][key] for key in ("figure", "what", "paper"))
        yield from mean(figure, what, column(rows, "ours"), paper=f"{paper:.4g}")


def described(finished: FinishedSweep) -> Findings:
    """Give every number that Tian et al. (SoCC 2019) have too, of the trace and of random DAGs."""
    of_random = numbers("alibaba")["random"]
    for row in finished.table(finished.cells[0]).to_pylist():
        paper = row["paper"]
        if row["dataset"] == "random":
            paper = of_random.get(row["section"], {}).get(row["key"], paper)
        if paper == paper and row["kind"] != "count":
            scale, unit = (100.0, ", %") if row["kind"] == "share" else (1.0, "")
            of = "random DAGs: " if row["dataset"] == "random" else ""
            what = ", ".join(filter(None, (row["group"], row["label"]))) + unit
            figure = of + SECTIONS[row["section"]]
            yield Finding(figure, what, scale * row["value"], paper=f"{scale * paper:.4g}")
