"""Comparisons of every policy with the baseline, paired by trace and seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base import columns
from sim.base.arrays import Mask
from sim.metrics import METRICS
from sweep import stats
from sweep.stats.arrange import ArrangedCells, Settings, arrange, by_capacity
from sweep.stats.cell_columns import JOBS_SHARE, Rows, to_float64
from sweep.stats.done_jobs import FAILED, is_of_done_jobs
from sweep.stats.inference import EXACT
from sweep.stats.metric_format import is_fraction, style

Statistic = Literal["ratio", "difference"]
Contrast = tuple[str, Statistic]

NOWHERE = -1
ALL_TRACES = ""
"""Name of the trace in rows that pool the pairs of all traces."""

_USUAL: tuple[Contrast, ...] = (
    ("jct_speedup_mean", "ratio"),
    ("jct_mean_s", "difference"),
    ("value_attained", "difference"),
    ("deadlines_missed", "difference"),
    ("utility", "difference"),
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
        ("same_jobs", pa.bool_()),  # False: jobs failed, and each number is of the jobs done
    ]
)


@dataclass(frozen=True)
class Pairs:
    """Rows of a policy and of its baseline, pair by pair, and each pair's trace number."""

    policy_rows: Rows
    baseline_rows: Rows
    traces: Rows


def compare(
    cells: pa.Table,
    *,
    swept: Sequence[str],
    baseline: str | None,
    chosen: Sequence[str] = (),
    is_fixed: bool = False,
) -> pa.Table | None:
    """Compare each policy with the baseline on all pairs that both ran.

    If `is_fixed`, no seed changes anything, so that one pair is exact.
    """
    if baseline is None:
        return None
    arranged = arrange(cells, swept, baseline)
    contrasts = _contrasts(arranged, chosen)
    labels = [column.label for column in arranged.columns.values()]
    own_jobs = _have_own_jobs(arranged)
    compared: list[dict[str, Any]] = []
    for (trace, settings), block_rows in _worlds(arranged):
        block_labels = {"trace": trace, "settings": ", ".join(f"{k}={v}" for k, v in settings)}
        table: list[dict[str, Any]] = []
        for capacity, column, paired_rows in pairs(arranged, block_rows):
            row_labels = {**block_labels, "capacity": capacity, "policy": labels[column]}
            applicable = contrasts if trace != ALL_TRACES else filter(_is_of_any_trace, contrasts)
            table += [
                row_labels | _row(arranged, contrast, paired_rows, own_jobs, trace == ALL_TRACES)
                for contrast in applicable
            ]
            if is_fixed:
                table = [row | ({"test": EXACT} if row["n_pairs"] == 1 else {}) for row in table]
        table = [row for row in table if not math.isnan(row["estimate"])]
        adjusted = stats.holm(np.array([row["p"] for row in table], dtype=np.float64))
        compared += [row | {"p_holm": float(p)} for row, p in zip(table, adjusted, strict=True)]
    return columns.table_from_rows(compared, SCHEMA) if compared else None


def _contrasts(arranged: ArrangedCells, chosen: Sequence[str]) -> list[Contrast]:
    """Choose the metrics to compare, and by ratio or difference: `_USUAL`, or by kind of metric."""
    present = ((name, (v := arranged.values(name))[~np.isnan(v)]) for name in arranged.metrics)
    varies_by_metric = {name: bool((v != v[:1]).any()) for name, v in present if len(v)}
    # metrics that are equal everywhere are left out, unless there are no others: then all tie
    varies = {name for name, differs in varies_by_metric.items() if differs} or {*varies_by_metric}
    usual = [contrast for contrast in _USUAL if contrast[0] in varies]
    if not chosen and usual:
        return usual
    names = [name for name in (chosen or arranged.metrics) if name in varies and style(name).better]
    shown = names if chosen else names[:2]
    return [contrast for name in shown for contrast in _statistics(name)]


def _statistics(metric: str) -> list[Contrast]:
    if _is_against_baseline(metric):
        return [(metric, "ratio")]
    if is_fraction(metric):
        return [(metric, "difference")]
    return [(metric, "ratio"), (metric, "difference")]


def _is_of_any_trace(contrast: Contrast) -> bool:
    """Tell whether a mean over traces makes sense: seconds of two traces do not compare."""
    return contrast[1] == "ratio" or is_fraction(contrast[0])


def _is_against_baseline(metric: str) -> bool:
    return metric in METRICS and METRICS[metric].against_baseline


def _worlds(arranged: ArrangedCells) -> Iterator[tuple[tuple[str, Settings], Rows]]:
    """Yield blocks; if several traces share settings, first their rows pooled as one block."""
    by_settings = sorted(arranged.blocks.items(), key=lambda item: item[0][1])
    for settings, same_settings in groupby(by_settings, key=lambda item: item[0][1]):
        blocks = list(same_settings)
        if len(blocks) > 1:
            yield (ALL_TRACES, settings), np.concatenate([block_rows for _, block_rows in blocks])
        yield from blocks


def pairs(arranged: ArrangedCells, block_rows: Rows) -> Iterator[tuple[float, int, Pairs]]:
    """Yield capacity (ascending), column, and the pairs of its rows with the baseline's rows.

    The two rows of a pair have the same trace and seed.
    """
    for group in by_capacity(arranged, block_rows):
        column_of_row = arranged.column_index[group.rows]
        trace_and_seed = arranged.trace_index[group.rows] * group.n_seeds + group.seed_index
        pair_ids, pair = np.unique(trace_and_seed, return_inverse=True)
        rows = np.full((len(arranged.columns), len(pair_ids)), NOWHERE)
        rows[column_of_row, pair] = group.rows
        for column in np.unique(column_of_row).tolist():
            baseline = arranged.baselines[column]
            if baseline is not None and (rows[baseline] != NOWHERE).any():
                row_pairs = rows[[column, baseline]]
                policy_rows, baseline_rows = row_pairs[:, (row_pairs != NOWHERE).all(axis=0)]
                yield (
                    group.capacity,
                    column,
                    Pairs(policy_rows, baseline_rows, arranged.trace_index[policy_rows]),
                )


def _have_own_jobs(arranged: ArrangedCells) -> Mask:
    """Flag the rows whose times are of the jobs done under their own policy, as some failed."""
    if FAILED not in arranged.metrics:
        return np.zeros(arranged.cells.num_rows, bool)
    flags: Mask = arranged.values(FAILED) > 0
    if JOBS_SHARE in arranged.cells.column_names:
        flags &= np.isnan(to_float64(arranged.cells, JOBS_SHARE))
    return flags


def _row(
    arranged: ArrangedCells,
    contrast: Contrast,
    paired_rows: Pairs,
    own_jobs: Mask,
    is_stratified: bool,
) -> dict[str, Any]:
    metric, statistic = contrast
    values, baseline_values = (
        arranged.values(metric, paired_rows.policy_rows),
        arranged.values(metric, paired_rows.baseline_rows),
    )
    traces, is_bootstrap = paired_rows.traces if is_stratified else None, arranged.is_bootstrap
    difference = partial(stats.difference, traces=traces, is_bootstrap=is_bootstrap)
    ratio = partial(stats.ratio, traces=traces, is_bootstrap=is_bootstrap)
    if statistic == "difference":
        paired = difference(values, baseline_values)
    elif _is_against_baseline(metric):
        paired = ratio(values, np.where(np.isnan(baseline_values), np.nan, 1.0))
    elif style(metric).better == "higher":
        paired = ratio(values, baseline_values)
    else:
        paired = ratio(baseline_values, values)
    return {
        "metric": metric,
        "statistic": statistic,
        "n_pairs": paired.n,
        "estimate": paired.estimate,
        "low": paired.low,
        "high": paired.high,
        "p": paired.p,
        "test": paired.test,
        "same_jobs": not is_of_done_jobs(metric)
        or not (own_jobs[paired_rows.policy_rows] | own_jobs[paired_rows.baseline_rows]).any(),
    }
