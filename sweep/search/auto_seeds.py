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
from sweep.grid import grid
from sweep.grid.request import Request
from sweep.search.strategy import Batch, Batches
from sweep.stats import contrasts
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import style
from sweep.stats.summary import summarise

NARROW, SPENT, FAILED = "narrow enough", "seeds_max", "cells failed"


@dataclass(frozen=True)
class Widest:
    """The widest interval of a sweep: half its width, and where it is."""

    half: float
    where: str


class AutoSeeds:
    """Adds seeds to a grid until its intervals are narrow."""

    def __init__(self, request: Request) -> None:
        self.request, self.id_part = request, request.precision
        self._grid = grid.build(request)

    @property
    def is_fixed(self) -> bool:
        """Tell whether no seed changes anything, so that one is enough."""
        return self._grid.is_fixed

    def batches(self, inputs: Inputs) -> Batches:
        """Ask for the grid with ever more seeds."""
        while True:
            request = self._grid.request
            answers = yield Batch(self._grid)
            n_seeds, about = more(request, answers.table(), len(answers.errors))
            if n_seeds == len(request.axes["seed"]):
                notes.note(in_words(request, about))
                self.request = dataclasses.replace(request, seeds=about)
                return dataclasses.replace(self._grid, request=self.request)
            self._grid = grid.build(with_seeds(request, n_seeds))

    def tables(self) -> Mapping[str, pa.Table]:
        """Nothing was found besides the cells."""
        return {}


def more(request: Request, cells: pa.Table, n_failed: int) -> tuple[int, dict[str, Any]]:
    """Decide how many seeds there shall be, after all cells of so many are done."""
    wanted = request.precision
    assert wanted is not None
    n = len(request.axes["seed"])
    worst = widest(request, cells)
    about = {"n": n, "widest": worst.half, "where": worst.where}
    if n_failed:
        return n, {**about, "because": FAILED}
    if worst.half <= wanted.width:
        return n, {**about, "because": NARROW}
    if n >= wanted.most:
        return n, {**about, "because": SPENT}
    # an interval narrows with the root of the number of seeds; never more than twice as many
    needed = n * (worst.half / wanted.width) ** 2
    following = min(2 * n, wanted.most, math.ceil(needed) if math.isfinite(needed) else 2 * n)
    return max(n + 1, following), about


def widest(request: Request, cells: pa.Table) -> Widest:
    """Find the widest interval of the metric.

    Against a baseline it is that of the paired comparison: of fractions half the interval of the
    difference, of anything else half the interval of the ratio, relative to it. Without one it is
    that of the mean over seeds: of fractions as it is, of anything else relative to the mean.
    """
    wanted = request.precision
    assert wanted is not None
    swept = [key for key in request.axes if key not in ("policy", "trace", "capacity", "seed")]
    if wanted.metric not in cells.column_names:
        raise InputError(
            f"seeds_metric={wanted.metric} is no metric of this sweep; "
            f"{', '.join(c for c in cells.column_names if c.startswith('jct'))} may be",
            rule="unknown metric",
        )
    if request.baseline is not None:
        return _of_contrasts(request.baseline, wanted.metric, swept, cells)
    return _of_means(wanted.metric, swept, cells)


def _of_contrasts(baseline: str, metric: str, swept: list[str], cells: pa.Table) -> Widest:
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


def _of_means(metric: str, swept: list[str], cells: pa.Table) -> Widest:
    summary = summarise(cells, swept=swept)
    worst = Widest(0.0, "")
    if metric not in summary.metrics:
        return worst
    at = summary.metrics.index(metric)
    for block in summary.blocks:
        for k, capacity in enumerate(block.capacities):
            for c, column in enumerate(summary.columns):
                mean, half = float(block.mean[k, c, at]), float(block.half[k, c, at])
                if math.isnan(mean):
                    continue
                half = half if _is_fraction(metric) else half / abs(mean) if mean else half
                half = math.inf if math.isnan(half) else half
                if half > worst.half:
                    where = f"{column.label}, {block.title}, capacity {text(capacity)}"
                    worst = Widest(half, where)
    return worst


def _is_fraction(metric: str) -> bool:
    return style(metric).kind in ("percent", "index")


def with_seeds(request: Request, n: int) -> Request:
    """Ask for the first `n` seeds."""
    return dataclasses.replace(request, axes={**request.axes, "seed": tuple(range(n))})


def in_words(request: Request, about: Mapping[str, Any]) -> str:
    """Say how many seeds there are in the end, and why."""
    wanted = request.precision
    assert wanted is not None
    percent = 100 * about["widest"]
    size = f"±{percent:.2g} %" if math.isfinite(percent) else "unknown"
    where = f" ({about['where']})" if about["where"] else ""
    because = {
        NARROW: "which is narrow enough",
        SPENT: f"and seeds_max={wanted.most} allows no more",
        FAILED: "and cells failed, so no more were added",
    }[about["because"]]
    return (
        f"seeds=auto: {about['n']} seeds; the widest interval of {wanted.metric} is {size}{where}, "
        f"{because} (asked: ±{100 * wanted.width:.2g} %)"
    )
