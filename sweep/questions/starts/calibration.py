"""Calibration on the log's past: the expected start is scaled, then the interval conformalized.

Source: Romano, Patterson and Candès, *Conformalized quantile regression*, NeurIPS 2019, with an end
of the interval each (their theorem 2). Errors are relative to the time that was left, as later
starts are known less well. Jobs of one moment depend on each other, so that the cover is that of
many moments, not a guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8

MISSED = 0.1
"""Share of the starts that may lie beyond each end of the interval."""
LEAST_S = 60.0
"""Time that is added to what is left, so that a start within seconds has an error, too."""


@dataclass(frozen=True)
class Past:
    """Forecasts of starts that are known by now.

    Attributes
    ----------
    moment : (N,) int64
        Number of the moment of each forecast.
    left_s, low_s, median_s, high_s : (N,) float64
        Time from the moment to the start, and as it was drawn, s.
    """

    moment: I8
    left_s: F8
    low_s: F8
    median_s: F8
    high_s: F8

    def covered(self, calibration: Calibration) -> float:
        """Return the share of the starts within the calibrated intervals; NaN for none."""
        low_s, _, high_s = calibration.apply(self.low_s, self.median_s, self.high_s)
        inside = (self.left_s >= low_s) & (self.left_s <= high_s)
        return float(inside.mean()) if len(inside) else math.nan

    def error(self, calibration: Calibration) -> float:
        """Return the mean absolute error of the median over the mean time left; NaN for none."""
        _, median_s, _ = calibration.apply(self.low_s, self.median_s, self.high_s)
        known = np.isfinite(median_s)
        if not known.any():
            return math.nan
        off_s = np.abs(median_s - self.left_s)[known]
        return float(off_s.mean() / max(float(self.left_s[known].mean()), 1.0))

    def halves(self) -> tuple[Past, Past]:
        """Return the forecasts of the first half of the moments, and of the others."""
        is_first = self.moment < (self.moment.max(initial=-1) + 1) / 2
        return self._rows(is_first), self._rows(~is_first)

    def _rows(self, rows: object) -> Past:
        columns = (self.moment, self.left_s, self.low_s, self.median_s, self.high_s)
        return Past(*(column[rows] for column in columns))  # type: ignore[call-overload]


@dataclass(frozen=True)
class Calibration:
    """Correction of drawn starts.

    Attributes
    ----------
    factor : float
        Of the time left.
    low, high : float
        Shares of the time left by which the ends of the interval then move out; below 0 in.
    """

    factor: float = 1.0
    low: float = 0.0
    high: float = 0.0

    def apply(self, low_s: F8, median_s: F8, high_s: F8) -> tuple[F8, F8, F8]:
        """Return low end, median and high end, s from the moment: the median lies between them."""
        low_s, median_s, high_s = (
            (ends_s + LEAST_S) * self.factor - LEAST_S for ends_s in (low_s, median_s, high_s)
        )
        scale_s = np.where(np.isfinite(median_s), median_s, 0.0) + LEAST_S
        low = np.minimum(low_s - self.low * scale_s, median_s)
        high = np.maximum(high_s + self.high * scale_s, median_s)
        return np.maximum(low, 0.0), np.maximum(median_s, 0.0), np.maximum(high, 0.0)


NONE = Calibration()


def calibration_of(past: Past) -> Calibration:
    """Return the calibration by which past intervals would have missed a tenth at each end."""
    known = np.isfinite(past.median_s) & np.isfinite(past.low_s)
    if not known.any():
        return NONE
    left_s, median_s = past.left_s[known] + LEAST_S, past.median_s[known] + LEAST_S
    factor = float(np.median(left_s / median_s))
    scale_s = factor * median_s
    low_s, high_s = (factor * (end_s[known] + LEAST_S) for end_s in (past.low_s, past.high_s))
    below, above = (low_s - left_s) / scale_s, (left_s - high_s) / scale_s  # -inf: the end is open
    return Calibration(factor, _quantile(below), _quantile(above))


def joined(parts: Sequence[Past]) -> Past:
    """Join forecasts."""
    columns = ("moment", "left_s", "low_s", "median_s", "high_s")
    return Past(*(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def _quantile(scores: F8) -> float:
    """Return the smallest score that all but a tenth of the next one's kind are at most."""
    rank = min(math.ceil((1 - MISSED) * (len(scores) + 1)), len(scores))
    score = float(np.sort(scores)[rank - 1])
    return score if math.isfinite(score) else 0.0
