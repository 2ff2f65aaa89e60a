"""Findings from an evaluator's table that has the paper's numbers itself."""

from __future__ import annotations

from sim.describe.statistics import SECTIONS
from sim.published import Printed
from sweep.questions.papers.figures import Findings, column, mean
from sweep.questions.papers.figures import published as printed
from sweep.report.findings import Finding, FinishedSweep


def published(finished: FinishedSweep) -> Findings:
    """Compare each published number of a workload with the synthesized one's mean over seeds."""
    tables = [finished.table(row).to_pylist() for row in finished.cells]
    for rows in zip(*tables, strict=True):
        figure, quantity, paper = (rows[0][key] for key in ("figure", "what", "paper"))
        yield from mean(figure, quantity, column(rows, "ours"), paper=f"{paper:.4g}")


def described(finished: FinishedSweep) -> Findings:
    """Compare each number of Tian et al. (SoCC 2019) with the trace's and with random DAGs'."""
    for row in finished.table(finished.cells[0]).to_pylist():
        number = _number(row["dataset"], row["section"], row["key"])
        if number and (row["paper"] == row["paper"] or row["dataset"] == "random"):
            if row["kind"] == "count":
                continue
            scale, unit = (100.0, ", %") if row["kind"] == "share" else (1.0, "")
            prefix = "random DAGs: " if row["dataset"] == "random" else ""
            quantity = ", ".join(filter(None, (row["group"], row["label"]))) + unit
            figure = prefix + SECTIONS[row["section"]]
            paper, is_exact = f"{scale * float(number):.4g}", row["dataset"] != "random"
            text = Printed(paper, number.path)
            yield Finding(figure, quantity, scale * row["value"], paper=text, exact=is_exact)


def _number(dataset: str, section: str, key: str) -> Printed:
    """Return the number of Tian et al. for a statistic; empty if there is none."""
    relation, _, statistic = key.partition("_")
    keys: list[tuple[str, ...]] = [("random" if dataset == "random" else "trace", section, key)]
    if section == "variability" and statistic.startswith(("duration_", "span_")):
        keys.append(("durations", f"{relation}_{statistic.partition('_')[2]}"))
    return next(filter(None, (printed("alibaba", *path) for path in keys)), Printed(""))
