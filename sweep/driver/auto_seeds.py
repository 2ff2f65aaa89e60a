"""``seeds=auto``: add seeds until every interval is narrow enough, or the budget is spent.

It stops for the width of intervals, never for what they show: the estimates stay fair. The number
of seeds follows from the results alone, so the same command gives the same sweep wherever it runs.
A budget in seconds could not promise that; there is none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution import notes
from sweep.execution.inputs import Inputs
from sweep.execution.strategy import Batch, Batches
from sweep.grid import grid
from sweep.grid.request import Request
from sweep.stats import contrasts
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import is_fraction
from sweep.stats.summary import summarise

NARROW, SPENT, FAILED = "narrow enough", "seeds_max", "cells failed"


@dataclass(frozen=True)
class Widest:
    """The widest interval of a sweep: half its width, and where it is."""

    half: float
    where: str


class AutoSeeds:
    """Strategy that adds seeds to a grid until its intervals are narrow."""

    def __init__(self, request: Request) -> None:
        self.request, self.id_part = request, request.precision
        self._grid = grid.build(request)

    @property
    def is_fixed(self) -> bool:
        """True if no seed changes anything, so that one is enough."""
        return self._grid.is_fixed

    def batches(self, inputs: Inputs) -> Batches:
        """Yield the grid with more and more seeds."""
        while True:
            request = self._grid.request
            results = yield Batch(self._grid)
            n_seeds, outcome = next_seeds(request, results.table(), len(results.errors))
            if n_seeds == len(request.axes["seed"]):
                notes.note(describe(request, outcome))
                self.request = dataclasses.replace(request, seeds=outcome)
                return dataclasses.replace(self._grid, request=self.request)
            self._grid = grid.build(with_seeds(request, n_seeds))

    def tables(self) -> Mapping[str, pa.Table]:
        """Return no tables besides the cells."""
        return {}


def next_seeds(request: Request, cells: pa.Table, n_failed: int) -> tuple[int, dict[str, Any]]:
    """Choose the number of seeds of the next batch, after all cells of the present one are done."""
    target = request.precision
    assert target is not None
    n = len(request.axes["seed"])
    worst = widest(request, cells)
    outcome = {"n": n, "widest": worst.half, "where": worst.where}
    if n_failed:
        return n, {**outcome, "because": FAILED}
    if worst.half <= target.width:
        return n, {**outcome, "because": NARROW}
    if n >= target.max_seeds:
        return n, {**outcome, "because": SPENT}
    # an interval narrows with the root of the number of seeds; never more than twice as many
    needed = n * (worst.half / target.width) ** 2
    n_next = min(2 * n, target.max_seeds, math.ceil(needed) if math.isfinite(needed) else 2 * n)
    return max(n + 1, n_next), outcome


def widest(request: Request, cells: pa.Table) -> Widest:
    """Find the widest interval of the metric.

    With a baseline, it is the interval of the paired comparison: for fractions half the interval of
    the difference, for other metrics half the interval of the ratio, relative to it. Without one it
    is the interval of the mean over seeds: for fractions as it is, for others relative to the mean.
    """
    target = request.precision
    assert target is not None
    swept = [key for key in request.axes if key not in ("policy", "trace", "capacity", "seed")]
    if target.metric not in cells.column_names:
        raise InputError(
            f"seeds_metric={target.metric} is no metric of this sweep; valid, for example: "
            f"{', '.join(c for c in cells.column_names if c.startswith('jct'))}",
            rule="unknown metric",
        )
    if request.baseline is not None:
        return _widest_contrast(request.baseline, target.metric, swept, cells)
    return _widest_mean(target.metric, swept, cells)


def _widest_contrast(baseline: str, metric: str, swept: list[str], cells: pa.Table) -> Widest:
    compared = contrasts.compare(cells, swept=swept, baseline=baseline, chosen=[metric])
    rows = [] if compared is None else compared.to_pylist()
    rows = [row for row in rows if row["trace"] != contrasts.ALL_TRACES]
    is_ratio = any(row["statistic"] == "ratio" for row in rows)
    worst = Widest(0.0, "")
    for row in rows:
        if is_ratio and row["statistic"] != "ratio":
            continue
        low, high = row["low"], row["high"]
        half = math.sqrt(high / low) - 1 if is_ratio else (high - low) / 2
        half = math.inf if math.isnan(half) else half
        if half > worst.half:
            about = filter(None, (row["policy"], row["trace"], row["settings"]))
            worst = Widest(half, f"{', '.join(about)}, capacity {text(row['capacity'])}")
    return worst


def _widest_mean(metric: str, swept: list[str], cells: pa.Table) -> Widest:
    summary = summarise(cells, swept=swept)
    worst = Widest(0.0, "")
    if metric not in summary.metrics:
        return worst
    index = summary.metrics.index(metric)
    for block in summary.blocks:
        for k, capacity in enumerate(block.capacities):
            for c, column in enumerate(summary.columns):
                mean, half = float(block.mean[k, c, index]), float(block.half[k, c, index])
                if math.isnan(mean):
                    continue
                half = half if is_fraction(metric) else half / abs(mean) if mean else half
                half = math.inf if math.isnan(half) else half
                if half > worst.half:
                    where = f"{column.label}, {block.title}, capacity {text(capacity)}"
                    worst = Widest(half, where)
    return worst


def with_seeds(request: Request, n: int) -> Request:
    """Return the request with the first `n` seeds."""
    return dataclasses.replace(request, axes={**request.axes, "seed": tuple(range(n))})


def describe(request: Request, outcome: Mapping[str, Any]) -> str:
    """Write the final number of seeds and the reason for it."""
    target = request.precision
    assert target is not None
    percent = 100 * outcome["widest"]
    size = f"±{percent:.2g} %" if math.isfinite(percent) else "unknown"
    where = f" ({outcome['where']})" if outcome["where"] else ""
    because = {
        NARROW: "which is narrow enough",
        SPENT: f"and seeds_max={target.max_seeds} allows no more",
        FAILED: "and cells failed, so no more were added",
    }[outcome["because"]]
    return (
        f"seeds=auto: {outcome['n']} seeds; the widest interval of {target.metric} is "
        f"{size}{where}, {because} (seeds_width: ±{100 * target.width:.2g} %)"
    )
