"""Significance tests of the changes between two sweeps, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from sweep import stats
from sweep.questions.compare.matching import CHANGED, SAME, Matched
from sweep.stats.arrange import group_ids, split_by_id
from sweep.stats.cell_columns import Rows as Numbers
from sweep.stats.inference import EXACT
from sweep.stats.metric_format import format_contrast, format_value

SEED = "seed"


@dataclass(frozen=True)
class Change:
    """Change of a metric under one policy, on one trace, at one capacity, over all seeds."""

    labels: Mapping[str, str]  # without the seed
    metric: str
    a: float  # mean over the seeds that both have
    b: float
    paired: stats.Paired  # of B - A
    p_holm: float  # after Holm's correction over all changes; NaN where there is no test

    @property
    def is_significant(self) -> bool:
        """True if p is at most 5 %, or if every seed has the same difference."""
        return self.paired.test == EXACT or self.p_holm <= stats.ALPHA


def changes(matched: Matched) -> list[Change]:
    """Test every metric that changed, for each policy, trace, capacity and swept parameter.

    Differences are between equal seeds, which have the same jobs, faults and noise in both sweeps
    unless the configurations differ in that. Significant changes come first.
    """
    groups = _groups(matched)
    differences: list[tuple[int, tuple[str, float, float, stats.Paired]]] = []
    for metric in matched.metrics():
        is_finite = np.isfinite(metric.a) & np.isfinite(metric.b)
        differs = is_finite & (metric.a != metric.b)
        for index, members in enumerate(groups):
            if differs[members].any():
                a, b = (end[members[is_finite[members]]] for end in (metric.a, metric.b))
                ends = float(a.mean()), float(b.mean())
                differences.append((index, (metric.name, *ends, stats.difference(b, a))))
    differences.sort(key=itemgetter(0))
    adjusted = stats.holm(
        np.array([difference[-1].p for _, difference in differences], dtype=np.float64)
    )
    tested = [
        Change(_labels(matched, int(groups[index][0])), *difference, float(p))
        for (index, difference), p in zip(differences, adjusted, strict=True)
    ]
    return sorted(tested, key=lambda change: not change.is_significant)


def _groups(matched: Matched) -> list[Numbers]:
    """Group the pairs without failures by all labels but the seed, in order of appearance."""
    compared = np.flatnonzero(matched.has(SAME, CHANGED))
    ids = group_ids(
        [
            (len(matched.texts[name]), codes[compared])
            for name, codes in matched.codes.items()
            if name != SEED
        ]
    )
    return [compared[rows] for rows in split_by_id(ids)]


def _labels(matched: Matched, pair: int) -> dict[str, str]:
    return {key: value for key, value in matched.labels_of(pair).items() if key != SEED}


def rows(tested: Sequence[Change]) -> tuple[list[str], list[list[str]]]:
    """Write a row for each change: labels, both means, difference, interval, p."""
    label_keys = [key for key in _keys(tested) if any(change.labels.get(key) for change in tested)]
    header = [*label_keys, "metric", "seeds", "in A", "in B", "change", "95 % interval", "p"]
    return header, [
        [
            *(change.labels.get(key, "") for key in label_keys),
            change.metric,
            str(change.paired.n),
            format_value(change.metric, change.a)[0],
            format_value(change.metric, change.b)[0],
            *format_contrast(
                change.metric,
                "difference",
                change.paired.estimate,
                change.paired.low,
                change.paired.high,
            ),
            _p_text(change),
        ]
        for change in tested
    ]


def _keys(tested: Sequence[Change]) -> dict[str, Any]:
    return dict.fromkeys(key for change in tested for key in change.labels)


def _p_text(change: Change) -> str:
    """Write p after the correction, or the reason for not testing."""
    if math.isnan(change.p_holm):
        return change.paired.test
    p = "<0.001" if change.p_holm < 0.001 else f"{change.p_holm:.3f}"
    return p if change.is_significant else f"{p} n.s."


LEGEND = (
    "B - A over the seeds that both have, paired; p after Holm's correction over all of these. "
    "n.s.: no significant difference at 5 % after it, also where the interval, which is of one "
    "comparison alone, leaves 0 out; few: too few seeds for a test; exact: every seed "
    "gave the same difference."
)
