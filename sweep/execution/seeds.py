"""``seeds=auto``: add seeds until every interval is narrow enough, or the budget is spent.

It stops for the width of intervals, never for what they show: the estimates stay fair. The number
of seeds follows from the results alone, so the same command gives the same sweep wherever it runs.
A budget in seconds could not promise that; there is none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sweep.execution import compute, notes, plan, rows, together
from sweep.execution.compute import Runner
from sweep.execution.inputs import Inputs
from sweep.execution.plan import Prepared
from sweep.grid import grid
from sweep.grid.request import SEEDS_AUTO, Request
from sweep.stats import contrasts
from sweep.stats.arrange import text
from sweep.stats.metric_format import style
from sweep.stats.summary import summarise
from sweep.store.cell import CellError
from sweep.store.journal import Journal

NARROW, SPENT, FAILED = "narrow enough", "seeds_max", "cells failed"


@dataclass(frozen=True)
class Widest:
    """The widest interval of a sweep: half its width, and where it is."""

    half: float
    where: str


def settle(request: Request, runner: Runner, before_cells: Callable[[], object]) -> Request:
    """Add seeds until there are enough: the request with all of them, their cells computed.

    The attempt of the last round stays open in the journal: the sweep itself goes on with it.
    """
    while True:
        prepared, errors = _round(request, runner, before_cells)
        cells = rows.narrow(prepared, errors)
        n_seeds, about = more(request, cells, len(errors))
        if n_seeds == len(request.axes["seed"]):
            notes.note(in_words(request, about))
            return dataclasses.replace(request, seeds=about)
        journal = Journal(request.settings.results, prepared.sweep)
        if journal.open_attempt() is not None:
            journal.append("end", failed=0, seeds=n_seeds)
        request = with_seeds(request, n_seeds)


def _round(
    request: Request, runner: Runner, before_cells: Callable[[], object]
) -> tuple[Prepared, dict[str, CellError]]:
    """Run the cells of so many seeds, into the cache alone."""
    cells = grid.build(request)
    results = request.settings.results
    inputs = Inputs(results, convert=runner.convert)
    journal = Journal(results, plan.prepare(cells, inputs).sweep)
    with journal.locked(lambda: notes.note("another process runs these cells; waiting for it")):
        prepared = plan.prepare(cells, Inputs(results, convert=runner.convert))
        todo = prepared.rows_to_do()
        errors: dict[str, CellError] = {}
        if len(todo):
            compute.begin(prepared, journal, len(todo))
            before_cells()
            in_order = prepared.in_order(todo)
            errors = together.run(prepared, in_order, len(todo), journal, runner)
            if errors:
                runner.close()  # cells may be left on their way
    return prepared, errors


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
    """Ask for the first `n` seeds; its words then name them."""
    words = [word for word in request.words if word.partition("=")[0] not in SEEDS_AUTO]
    words = [word for word in words if not word.startswith("seed=")]
    return dataclasses.replace(
        request,
        axes={**request.axes, "seed": tuple(range(n))},
        words=(*words, f"seed=range(0,{n})"),
    )


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
