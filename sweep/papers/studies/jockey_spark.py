"""How far a profile taken with some executors says what happens with others: measured tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sweep.papers.studies.jockey_fig8 import MODELS
from sweep.report.findings import Finding, Finished

OF_TASKS = {
    "prediction_error_p50": "error of the makespan, median over queries, %",
    "prediction_error_p90": "error of the makespan, 90th percentile over queries, %",
    "task_error_p50": "error of a stage's mean task time, median over stages, %",
    "task_distance_p50": "distance of a stage's task times, median over stages, %",
}
"""Metrics of ``measure=trained``, as figures."""


def find(finished: Finished) -> list[Finding]:
    """Give the errors by executors trained at and run with, of models or of recorded tasks."""
    cells = [(_between(row), row) for row in finished.cells]
    if "latency_error" in finished.cells[0]:
        return [one for policy in MODELS for one in _of_model(finished, cells, policy)]
    return [
        Finding(figure, between, 100.0 * row[metric])
        for metric, figure in OF_TASKS.items()
        for between, row in cells
    ]


def _of_model(
    finished: Finished, cells: list[tuple[str, dict[str, Any]]], policy: str
) -> list[Finding]:
    errors, ratios = [], []
    for between, row in cells:
        if row["policy"] != policy:
            continue
        table = finished.table(row)
        ratio = table["predicted_s"].to_numpy() / table["took_s"].to_numpy()
        title = f"prediction error, {MODELS[policy]}, %"
        errors.append(Finding.of(title, between, (100.0 * np.abs(ratio - 1)).tolist()))
        title = f"predicted over measured, {MODELS[policy]}, median over queries"
        ratios.append(Finding(title, between, float(np.median(ratio))))
    return errors + ratios


def _between(row: dict[str, Any]) -> str:
    return f"trained with {row['trace.trained_at']}, run with {row['trace.executors']}"
