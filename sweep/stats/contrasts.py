"""Every policy against the baseline, by the (trace, seed) pairs that both met."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.metrics import METRICS
from sweep import stats
from sweep.stats.arrange import ArrangedCells, Settings, arrange, by_capacity
from sweep.stats.cell_columns import Rows
from sweep.stats.inference import EXACT
from sweep.stats.metric_format import is_fraction, style

Statistic = Literal["ratio", "difference"]
Contrast = tuple[str, Statistic]

NOWHERE = -1
ALL_TRACES = ""
"""In place of a trace's name where the pairs of all traces are taken together."""

_USUAL: tuple[Contrast, ...] = (
    ("jct_speedup_mean", "ratio"),
    ("jct_mean_s", "difference"),
    ("value_attained", "difference"),
    ("deadlines_missed", "difference"),
    ("jobs_failed", "difference"),
)

SCHEMA = pa.schema(
    [
        ("trace", pa.string()),
        ("settings", pa.string()),
        ("capacity", pa.float64()),
        ("policy", pa.string()),
        ("metric", pa.string()),
        ("statistic", pa.string()),
        ("n_pairs", pa.int64()),
        *((name, pa.float64()) for name in ("estimate", "low", "high", "p", "p_holm")),
        ("test", pa.string()),
    ]
)


@dataclass(frozen=True)
class Pairs:
    """Rows of the two that are compared, side by side, and the number of each pair's trace."""

    own: Rows
    other: Rows
    traces: Rows


def compare(
    cells: pa.Table,
    *,
    swept: Sequence[str],
    baseline: str | None,
    chosen: Sequence[str] = (),
    is_fixed: bool = False,
) -> pa.Table | None:
    """Compare each policy with the baseline, wherever both ran.

    Where everything `is_fixed`, so that no seed changes anything, one pair is exact.
    """
    if baseline is None:
        return None
    them = arrange(cells, swept, baseline)
    contrasts = _contrasts(them, chosen)
    labels = [column.label for column in them.columns.values()]
    compared: list[dict[str, Any]] = []
    for (trace, settings), members in _worlds(them):
        about = {"trace": trace, "settings": ", ".join(f"{k}={v}" for k, v in settings)}
        table: list[dict[str, Any]] = []
        for capacity, column, both in pairs(them, members):
            of = {**about, "capacity": capacity, "policy": labels[column]}
            fitting = contrasts if trace != ALL_TRACES else filter(_is_of_any_trace, contrasts)
            table += [of | _row(them, contrast, both, trace == ALL_TRACES) for contrast in fitting]
            if is_fixed:
                table = [row | ({"test": EXACT} if row["n_pairs"] == 1 else {}) for row in table]
        table = [row for row in table if not math.isnan(row["estimate"])]
        adjusted = stats.holm(np.array([row["p"] for row in table], dtype=np.float64))
        compared += [row | {"p_holm": float(p)} for row, p in zip(table, adjusted, strict=True)]
    return columns.table_from_rows(compared, SCHEMA) if compared else None


def _contrasts(them: ArrangedCells, chosen: Sequence[str]) -> list[Contrast]:
    """Choose what to compare, and how: the usual, or of each metric what suits its kind."""
    there = ((name, (v := them.values(name))[~np.isnan(v)]) for name in them.names)
    known = {name: bool((v != v[:1]).any()) for name, v in there if len(v)}
    # what is the same everywhere is left out, unless there is nothing else: then all tie
    varies = {name for name, differs in known.items() if differs} or {*known}
    usual = [contrast for contrast in _USUAL if contrast[0] in varies]
    if not chosen and usual:
        return usual
    names = [name for name in (chosen or them.names) if name in varies and style(name).better]
    shown = names if chosen else names[:2]
    return [contrast for name in shown for contrast in _statistics(name)]


def _statistics(metric: str) -> list[Contrast]:
    if _is_against_baseline(metric):
        return [(metric, "ratio")]
    if is_fraction(metric):
        return [(metric, "difference")]
    return [(metric, "ratio"), (metric, "difference")]


def _is_of_any_trace(contrast: Contrast) -> bool:
    """Tell whether a mean over traces makes sense: seconds of one are no seconds of another."""
    return contrast[1] == "ratio" or is_fraction(contrast[0])


def _is_against_baseline(metric: str) -> bool:
    return metric in METRICS and METRICS[metric].against_baseline


def _worlds(them: ArrangedCells) -> Iterator[tuple[tuple[str, Settings], Rows]]:
    """Blocks; before those of several traces under the same settings, all of these together."""
    by_settings = sorted(them.blocks.items(), key=lambda item: item[0][1])
    for settings, group in groupby(by_settings, key=lambda item: item[0][1]):
        blocks = list(group)
        if len(blocks) > 1:
            yield (ALL_TRACES, settings), np.concatenate([members for _, members in blocks])
        yield from blocks


def pairs(them: ArrangedCells, members: Rows) -> Iterator[tuple[float, int, Pairs]]:
    """Pairs with the baseline by capacity, ascending, and column: of the same trace and seed."""
    for world in by_capacity(them, members):
        column = them.column[world.rows]
        trace_and_seed = them.trace[world.rows] * world.n_seeds + world.place
        known, pair = np.unique(trace_and_seed, return_inverse=True)
        rows = np.full((len(them.columns), len(known)), NOWHERE)
        rows[column, pair] = world.rows
        for at in np.unique(column).tolist():
            base = them.bases[at]
            if base is not None and (rows[base] != NOWHERE).any():
                both = rows[[at, base]]
                own, other = both[:, (both != NOWHERE).all(axis=0)]
                yield world.capacity, at, Pairs(own, other, them.trace[own])


def _row(them: ArrangedCells, contrast: Contrast, both: Pairs, several: bool) -> dict[str, Any]:
    metric, statistic = contrast
    own, other = them.values(metric, both.own), them.values(metric, both.other)
    traces = both.traces if several else None
    if statistic == "difference":
        paired = stats.difference(own, other, traces)
    elif _is_against_baseline(metric):
        paired = stats.ratio(own, np.where(np.isnan(other), np.nan, 1.0), traces)
    elif style(metric).better == "higher":
        paired = stats.ratio(own, other, traces)
    else:
        paired = stats.ratio(other, own, traces)
    return {
        "metric": metric,
        "statistic": statistic,
        "n_pairs": paired.n,
        "estimate": paired.estimate,
        "low": paired.low,
        "high": paired.high,
        "p": paired.p,
        "test": paired.test,
    }
