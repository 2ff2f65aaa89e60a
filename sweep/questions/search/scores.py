"""Scores of settings against the default on the same seeds: lower is better, 0 is equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8
from sweep import stats
from sweep.execution.cell_results import CellResults
from sweep.grid.grid import Cell
from sweep.stats import Paired
from sweep.stats.metric_format import is_fraction, style

_FLOOR = 1e-9
"""Relative lower limit of positive metrics, so that a 0 has a logarithm."""


class Scores:
    """Scores of settings by several metrics."""

    def __init__(self, results: CellResults, metrics: Sequence[str]) -> None:
        self._results, self._metrics = results, metrics

    def values(self, cells: Sequence[Cell], metric: str) -> F8:
        """Return a metric of each cell, NaN for failed cells."""
        return np.array([self._results.metric(cell, metric) for cell in cells], dtype=np.float64)

    def against(self, cells: Sequence[Cell], base: Sequence[Cell]) -> list[float]:
        """Return a setting's mean score by each metric, inf if one of its cells failed."""
        means = []
        for metric in self._metrics:
            values, default_values = self.values(cells, metric), self.values(base, metric)
            score = _score(metric, values, default_values)
            means.append(float(score.mean()) if np.isfinite(score).all() else math.inf)
        return means

    def test(self, metric: str, cells: Sequence[Cell], base: Sequence[Cell]) -> Paired:
        """Compare a setting with the default: ratio (times better), difference for fractions."""
        values, default_values = self.values(cells, metric), self.values(base, metric)
        if is_fraction(metric):
            return stats.difference(values, default_values)
        if style(metric).better == "higher":
            return stats.ratio(values, default_values)
        return stats.ratio(default_values, values)


def gain(metric: str, score: float) -> float:
    """Convert a score to the scale of `Scores.test`: 1.2 is 20 % better; fractions: the change."""
    sign = -1.0 if style(metric).better == "higher" else 1.0
    return sign * score if is_fraction(metric) else math.exp(-score)


def _score(metric: str, values: F8, default_values: F8) -> F8:
    sign = -1.0 if style(metric).better == "higher" else 1.0
    if is_fraction(metric):
        return np.asarray(sign * (values - default_values))
    floor = _FLOOR * max(1.0, float(np.nanmax(np.abs(default_values), initial=0.0)))
    logs = np.log(np.maximum(values, floor)) - np.log(np.maximum(default_values, floor))
    return np.asarray(sign * logs)
