"""What changed from one sweep to another, tested: cells that both have, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from sweep import stats
from sweep.report.matching import CHANGED, SAME, Matched
from sweep.stats.arrange import group_ids, split_by_id
from sweep.stats.cell_columns import Rows as Numbers
from sweep.stats.metric_format import format_contrast, format_value

SEED = "seed"
ALPHA = 0.05


@dataclass(frozen=True)
class Change:
    """How a metric changed under a policy, on a trace, at a capacity, over all seeds."""

    labels: Mapping[str, str]  # without the seed
    metric: str
    a: float  # mean over the seeds that both have
    b: float
    paired: stats.Paired  # of B - A
    p_holm: float  # after Holm's correction over all changes; NaN where there is no test

    @property
    def is_significant(self) -> bool:
        """Whether it is more than the seeds' chance: always where no seed differs from another."""
        return self.paired.test == "exact" or self.p_holm <= ALPHA


def changes(matched: Matched) -> list[Change]:
    """Test every metric that changed, for each policy, trace, capacity and swept parameter.

    The differences are those of the same seed, which meets the same jobs, faults and noise in both
    sweeps unless they were asked for otherwise. Significant ones come first.
    """
    groups = _groups(matched)
    found: list[tuple[int, tuple[str, float, float, stats.Paired]]] = []
    for metric in matched.metrics():
        both = np.isfinite(metric.a) & np.isfinite(metric.b)
        differs = both & (metric.a != metric.b)
        for at, members in enumerate(groups):
            if differs[members].any():
                a, b = (end[members[both[members]]] for end in (metric.a, metric.b))
                ends = float(a.mean()), float(b.mean())
                found.append((at, (metric.name, *ends, stats.difference(b, a))))
    found.sort(key=itemgetter(0))
    adjusted = stats.holm(np.array([each[-1].p for _, each in found], dtype=np.float64))
    tested = [
        Change(_labels(matched, int(groups[at][0])), *each, float(p))
        for (at, each), p in zip(found, adjusted, strict=True)
    ]
    return sorted(tested, key=lambda change: not change.is_significant)


def _groups(matched: Matched) -> list[Numbers]:
    """Part the pairs that neither sweep failed at by all labels but the seed, as they come."""
    there = np.flatnonzero(matched.has(SAME, CHANGED))
    number = group_ids(
        [
            (len(matched.texts[name]), codes[there])
            for name, codes in matched.codes.items()
            if name != SEED
        ]
    )
    return [there[rows] for rows in split_by_id(number)]


def _labels(matched: Matched, at: int) -> dict[str, str]:
    return {key: value for key, value in matched.labels_of(at).items() if key != SEED}


def rows(found: Sequence[Change]) -> tuple[list[str], list[list[str]]]:
    """Give a row a change: where, the means, the difference with its interval, how sure it is."""
    used = [key for key in _keys(found) if any(change.labels.get(key) for change in found)]
    header = [*used, "metric", "seeds", "in A", "in B", "change", "95 % interval", "p"]
    return header, [
        [
            *(change.labels.get(key, "") for key in used),
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
            _sure(change),
        ]
        for change in found
    ]


def _keys(found: Sequence[Change]) -> dict[str, Any]:
    return dict.fromkeys(key for change in found for key in change.labels)


def _sure(change: Change) -> str:
    """Write p after the correction, or why there is none."""
    if math.isnan(change.p_holm):
        return change.paired.test
    p = "<0.001" if change.p_holm < 0.001 else f"{change.p_holm:.3f}"
    return p if change.is_significant else f"{p} n.s."


LEGEND = (
    "B - A over the seeds that both have, paired; p after Holm's correction over all of these. "
    "n.s.: no significant difference at 5 %; few: too few seeds for a test; exact: every seed "
    "gave the same difference."
)
