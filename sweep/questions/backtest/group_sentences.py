"""Groups of jobs of which a backtest was farthest off, in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

MIN_JOBS, N_WORST = 5, 3
Rows = Sequence[Mapping[str, Any]]


def group_sentences(table: pa.Table) -> list[str]:
    """Write, for each policy, the groups whose recorded and simulated waits are farthest apart."""
    rows = table.to_pylist()
    lines = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        if not any(row["jobs"] >= MIN_JOBS for row in own):
            continue
        if far := farthest(own):
            lines.append(f"{policy}: most of the error is in {listed(far)}")
        else:
            lines.append(
                f"{policy}: no group's recorded mean wait is outside the range of its runs"
            )
    return lines


def farthest(rows: Rows, above: float = 0.0) -> Rows:
    """Return at most `N_WORST` rows of one policy: the largest errors times jobs first.

    Of groups of at least `MIN_JOBS` jobs, of several of their kind, that the runs' range misses,
    and whose error is above some fraction.
    """
    kinds = Counter(row["by"] for row in rows)
    outside = [
        row
        for row in rows
        if kinds[row["by"]] > 1
        and row["jobs"] >= MIN_JOBS
        and not row["low"] <= row["wait_mean_recorded_s"] <= row["high"]
        and math.isfinite(row["error"])
        and abs(row["error"]) > above
    ]
    return sorted(outside, key=lambda row: -abs(_wrong_s(row)))[:N_WORST]


def listed(rows: Rows) -> str:
    """List groups with their errors.

    >>> listed([{"by": "partition", "group": "debug", "error": -0.725, "jobs": 28}])
    'partition debug −72 % (28 jobs)'
    """
    parts = [
        f"{row['by']} {row['group']} {100 * row['error']:+,.0f} % ({row['jobs']:,} jobs)"
        for row in rows
    ]
    return ", ".join(parts).replace("-", "−")


def _wrong_s(row: Mapping[str, Any]) -> float:
    return float((row["wait_mean_s"] - row["wait_mean_recorded_s"]) * row["jobs"])
