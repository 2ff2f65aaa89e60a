"""Findings from an evaluator's table that has the paper's numbers itself."""

from __future__ import annotations

from sim.describe.statistics import SECTIONS
from sim.published import numbers
from sweep.questions.papers.figures import Findings, column, mean
from sweep.report.findings import Finding, FinishedSweep


def published(finished: FinishedSweep) -> Findings:
    """Compare each published number of a workload with the synthesized one's mean over seeds."""
    tables = [finished.table(row).to_pylist() for row in finished.cells]
    for rows in zip(*tables, strict=True):
        figure, quantity, paper = (rows[0][key] for key in ("figure", "what", "paper"))
        yield from mean(figure, quantity, column(rows, "ours"), paper=f"{paper:.4g}")


def described(finished: FinishedSweep) -> Findings:
    """Compare each number of Tian et al. (SoCC 2019) with the trace's and with random DAGs'."""
    random_dags = numbers("alibaba")["random"]
    for row in finished.table(finished.cells[0]).to_pylist():
        paper = row["paper"]
        if row["dataset"] == "random":
            paper = random_dags.get(row["section"], {}).get(row["key"], paper)
        if paper == paper and row["kind"] != "count":
            scale, unit = (100.0, ", %") if row["kind"] == "share" else (1.0, "")
            prefix = "random DAGs: " if row["dataset"] == "random" else ""
            quantity = ", ".join(filter(None, (row["group"], row["label"]))) + unit
            figure = prefix + SECTIONS[row["section"]]
            printed, is_exact = f"{scale * paper:.4g}", row["dataset"] != "random"
            yield Finding(figure, quantity, scale * row["value"], paper=printed, exact=is_exact)
