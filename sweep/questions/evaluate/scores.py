"""Scores: a candidate's runs beside those of the baseline, paired by workload and seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from sweep.stats.best import is_ratio
from sweep.stats.inference import Paired, difference, ratio
from sweep.stats.metric_format import style, value_text

GAP = "gap_lb_p50"


@dataclass(frozen=True)
class Outcome:
    """Metrics of one run."""

    name: str  # of its workload
    seed: int
    value: float  # of the metric that counts
    gap: float


class WorkloadScore(TypedDict):
    """Score on one workload, over its seeds."""

    score: float
    interval: tuple[float, float]
    value: float
    baseline: float
    gap_lb_p50: float
    seeds: list[int]


@dataclass(frozen=True)
class Score:
    """Ratio, or difference, of a metric to the baseline's, so that more is better.

    Attributes
    ----------
    value : float
        Geometric mean of ratios over pairs of equal workload and seed; of fractions the mean
        difference.
    interval : (float, float)
        95 %; NaN with fewer than three pairs, or fewer than two of a workload.
    is_ratio : bool
    gap : float
        Mean over runs of the median gap of jobs to their lower bounds.
    per_workload : dict of str to WorkloadScore
    """

    value: float
    interval: tuple[float, float]
    is_ratio: bool
    gap: float
    per_workload: dict[str, WorkloadScore]


def score(metric: str, own: Sequence[Outcome], baseline: Sequence[Outcome]) -> Score:
    """Compare a candidate's runs with the baseline's, in the same order."""
    values = np.array([[run.value for run in own], [run.value for run in baseline]])
    by_ratio = is_ratio(metric, values.T)
    names = np.array([run.name for run in own])
    whole = _compare(metric, values, names, by_ratio)
    per_workload: dict[str, WorkloadScore] = {}
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        part = _compare(metric, values[:, rows], names[rows], by_ratio)
        per_workload[name] = {
            "score": part.estimate,
            "interval": (part.low, part.high),
            "value": float(values[0, rows].mean()),
            "baseline": float(values[1, rows].mean()),
            "gap_lb_p50": _mean([own[row].gap for row in rows.tolist()]),
            "seeds": [own[row].seed for row in rows.tolist()],
        }
    gap = _mean([run.gap for run in own])
    return Score(whole.estimate, (whole.low, whole.high), by_ratio, gap, per_workload)


def _compare(metric: str, values: np.ndarray, names: np.ndarray, by_ratio: bool) -> Paired:
    own, baseline = values
    sides = (own, baseline) if style(metric).better == "higher" else (baseline, own)
    return (ratio if by_ratio else difference)(*sides, names)


def _mean(values: Sequence[float]) -> float:
    present = [value for value in values if not math.isnan(value)]
    return float(np.mean(present)) if present else math.nan


def score_words(metric: str, result: Score, baseline: str) -> str:
    """Say how a candidate fares against the baseline."""
    low, high = result.interval
    if math.isnan(result.value):
        return f"its {style(metric).label} can't be compared with {baseline}'s"
    if result.is_ratio:
        text = f"{style(metric).label} {result.value:.3f} times better than {baseline}'s"
        return text if math.isnan(low) else f"{text} (95 % {low:.3f} to {high:.3f})"
    text = f"{style(metric).label} better than {baseline}'s by {value_text(metric, result.value)}"
    if math.isnan(low):
        return text
    return f"{text} (95 % {value_text(metric, low)} to {value_text(metric, high)})"
