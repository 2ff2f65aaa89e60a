"""How good a setting is against the default on the same seeds: lower is better, 0 the same."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8
from sweep import stats
from sweep.grid.grid import Cell
from sweep.search.cell_results import CellResults
from sweep.stats import Paired
from sweep.stats.metric_format import is_fraction, style

_FLOOR = 1e-9
"""Of what is positive, so that a 0 has a logarithm."""


class Scores:
    """Scores of settings by several metrics."""

    def __init__(self, answers: CellResults, metrics: Sequence[str]) -> None:
        self._answers, self._metrics = answers, metrics

    def values(self, cells: Sequence[Cell], metric: str) -> F8:
        """Return a metric of each cell, NaN of those that failed."""
        return np.array([self._answers.metric(cell, metric) for cell in cells], dtype=np.float64)

    def against(self, cells: Sequence[Cell], base: Sequence[Cell]) -> list[float]:
        """Return a setting's mean score by each metric, inf if a cell of it failed."""
        found = []
        for metric in self._metrics:
            own, theirs = self.values(cells, metric), self.values(base, metric)
            score = _score(metric, own, theirs)
            found.append(float(score.mean()) if np.isfinite(score).all() else math.inf)
        return found

    def test(self, metric: str, cells: Sequence[Cell], base: Sequence[Cell]) -> Paired:
        """Compare a setting with the default: how many times as good, of fractions by how much."""
        own, theirs = self.values(cells, metric), self.values(base, metric)
        if is_fraction(metric):
            return stats.difference(own, theirs)
        if style(metric).better == "higher":
            return stats.ratio(own, theirs)
        return stats.ratio(theirs, own)


def gain(metric: str, score: float) -> float:
    """Return a score as `Scores.test` would: 1.2 for a fifth better, of fractions the change."""
    sign = -1.0 if style(metric).better == "higher" else 1.0
    return sign * score if is_fraction(metric) else math.exp(-score)


def _score(metric: str, own: F8, theirs: F8) -> F8:
    sign = -1.0 if style(metric).better == "higher" else 1.0
    if is_fraction(metric):
        return np.asarray(sign * (own - theirs))
    least = _FLOOR * max(1.0, float(np.nanmax(np.abs(theirs), initial=0.0)))
    logs = np.log(np.maximum(own, least)) - np.log(np.maximum(theirs, least))
    return np.asarray(sign * logs)
