"""What an experiment's study finds in cells that a test makes up."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sweep.grid.options import Options
from sweep.papers import studies
from sweep.report.findings import Finding, FinishedSweep

Row = dict[str, Any]


class Known(FinishedSweep):
    """A sweep whose cells hold their own tables."""

    def table(self, row: Any) -> pa.Table:
        return pa.table(row["table"])


def findings(experiment: str, rows: list[Row], *swept: str, **config: Any) -> list[Finding]:
    """Let the study of an experiment of ours look at some cells."""
    study = Options.from_folders([]).plain("experiment", experiment)["study"]
    whole = {"swept": list(swept), "experiment": experiment, "config_dirs": [], **config}
    return studies.find(study, Known(rows, whole, None))  # type: ignore[arg-type]


def looked(
    experiment: str, rows: list[Row], *swept: str, **config: Any
) -> dict[tuple[str, str], Finding]:
    """Do so, by figure and by what was measured."""
    return {(f.figure, f.quantity): f for f in findings(experiment, rows, *swept, **config)}
