"""Errors of history, samples and both beside the formulas of SLearn (NSDI 2022, §4.1)."""

from __future__ import annotations

from sweep.report.findings import Finding, Finished

ESTIMATORS = ("history", "samples", "posterior")
AXES = ("measure.sd_tasks", "measure.samples")

WITHIN = 0.01
"""How near what is drawn is to come to the formula."""


def find(finished: Finished) -> list[Finding]:
    """Average squared errors, and jobs on the wrong side of another one, over seeds."""
    found = []
    for (sd_tasks, samples), cells in finished.by(*AXES).items():
        figure = f"σ₁ {sd_tasks:g}, {samples} samples"
        for name in ESTIMATORS:
            formula = float(cells[0][f"variance_{name}"])
            found.append(
                Finding.of(
                    figure,
                    f"{name}, mean squared error, s²",
                    [row[f"mse_{name}"] for row in cells],
                    paper=f"{formula:.4g}",
                    at_least=formula * (1 - WITHIN),
                    at_most=formula * (1 + WITHIN),
                )
            )
        for name in ESTIMATORS:
            wrong = [100.0 * row[f"wrong_{name}"] for row in cells]
            found.append(Finding.of(figure, f"{name}, wrong order %", wrong))
    return found
