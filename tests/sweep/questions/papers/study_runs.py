"""Run an experiment's study on cells made by a test."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sweep.grid.options import Options
from sweep.questions.papers import studies
from sweep.report.findings import Finding, FinishedSweep

Row = dict[str, Any]


class InMemorySweep(FinishedSweep):
    """A finished sweep whose rows hold their tables."""

    def table(self, row: Any) -> pa.Table:
        return pa.table(row["table"])


def study_findings(experiment: str, rows: list[Row], *swept: str, **config: Any) -> list[Finding]:
    """Run the study of a built-in experiment on cells."""
    study = Options.from_folders([]).plain("experiment", experiment)["study"]
    full_config = {"swept": list(swept), "experiment": experiment, "config_dirs": [], **config}
    return studies.find(study, InMemorySweep(rows, full_config, None))  # type: ignore[arg-type]


def study_results(
    experiment: str, rows: list[Row], *swept: str, **config: Any
) -> dict[tuple[str, str], Finding]:
    """Run the study, and map figure and quantity to the finding."""
    return {(f.figure, f.quantity): f for f in study_findings(experiment, rows, *swept, **config)}
