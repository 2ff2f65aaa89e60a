"""Timelines of cells of a finished sweep: the cells run again, and what happened is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.base.errors import InputError
from sweep.driver.one_cell import plan_cell
from sweep.driver.request import repeat_request
from sweep.execution import notes, rerun
from sweep.driver import captured_run as capture
from sweep.questions.timeline import columns
from sweep.stats.cell_columns import AXES, text
from sweep.store.folder import SweepFolder


def timeline(folder: SweepFolder, row: Mapping[str, Any]) -> columns.Timeline:
    """Run a cell again in this process; return its timeline.

    If its evaluator simulates several times, the last run is drawn.

    Raises
    ------
    InputError
        If the cell fails, or its evaluator simulates nothing.
    """
    labels = {key: row[key] for key in (*AXES, *folder.config()["swept"])}
    prepared, planned = plan_cell(repeat_request(folder), labels)
    runs: list[capture.Captured] = []
    result = rerun.rerun(prepared.inputs, planned, capture.capturing(runs))
    if result.error is not None:
        raise InputError(f"this cell fails: {result.error['message']}", rule="failed cell")
    if not runs:
        raise InputError("its evaluator simulates nothing that could be drawn", rule="no run")
    if planned.key != row["key"]:
        notes.note("its code or trace changed since: it may differ from the sweep's")
    words = [f"{key}={text(value)}" for key, value in labels.items() if value is not None]
    title = f"{labels['policy']} on {labels['trace']}"
    rest = [word for word in words if word.partition("=")[0] not in ("policy", "trace")]
    return columns.build_timeline(runs[-1], ", ".join([title, *rest]))
