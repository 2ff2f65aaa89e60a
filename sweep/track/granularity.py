"""How finely a sweep is logged: a run a cell, a run for all seeds of one setting, or one run.

MLflow's UI slows past some hundreds of runs, so what is chosen by itself follows their number.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from sweep.stats import intervals
from sweep.stats.arrange import AXES
from sweep.track.rows import Row, allowed

Granularity = Literal["cell", "policy", "sweep"]
NAMES: tuple[Granularity, ...] = get_args(Granularity)
MOST_CELLS, MOST_GROUPS = 200, 1000
MOST_METRICS = 990  # MLflow takes 1,000 at a time
HALF = "half"
HEADLINE = (
    *("jct_mean_s", "jct_p99_s", "jct_speedup_p50", "slowdown_mean", "gap_lb_p50"),
    *("value_attained", "deadlines_missed", "jobs_failed"),
)


def choose(asked: str | None, cells: pa.Table, swept: Sequence[str]) -> Granularity:
    """Return what was asked for; by default the finest that leaves the UI usable."""
    for name in NAMES:
        if name == asked:
            return name
    if cells.num_rows <= MOST_CELLS:
        return "cell"
    keys = [key for key in dict.fromkeys((*AXES, *swept)) if key in cells.column_names]
    groups = cells.group_by([key for key in keys if key != "seed"]).aggregate([])
    return "policy" if groups.num_rows <= MOST_GROUPS else "sweep"


def at(granularity: Granularity, rows: Sequence[Row]) -> list[Row]:
    """Make what becomes a child run each, of a row a cell."""
    if granularity == "sweep":
        return []
    return list(rows) if granularity == "cell" else over_seeds(rows)


def over_seeds(rows: Sequence[Row]) -> list[Row]:
    """Average cells that differ in nothing but their seed."""
    return [_mean(group) for group in _groups(rows)]


def headline(rows: Sequence[Row]) -> dict[str, float]:
    """Name the means of the most telling metrics ``<metric>/<what varies>``, the first 990."""
    means = over_seeds(rows)
    names = [name for name in varying(means) if name != "seed"]
    means_of = {
        allowed("/".join([metric, " ".join(row.params.get(n, "-") for n in names)]).rstrip("/")): v
        for metric in HEADLINE
        for row in means
        if (v := row.metrics.get(metric)) is not None
    }
    return dict(list(means_of.items())[:MOST_METRICS])


def varying(rows: Sequence[Row]) -> list[str]:
    """Names of the parameters that are not the same in every row: what a comparison is about."""
    names = dict.fromkeys(name for row in rows for name in row.params)
    return [name for name in names if len({row.params.get(name) for row in rows}) > 1]


def _groups(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        setting = tuple((name, value) for name, value in row.params.items() if name != "seed")
        groups.setdefault(setting, []).append(row)
    return list(groups.values())


def _mean(group: Sequence[Row]) -> Row:
    first = group[0]
    names = list(dict.fromkeys(name for row in group for name in row.metrics))
    values = [[row.metrics.get(name, math.nan) for name in names] for row in group]
    means, halves, _ = intervals(np.array(values, dtype=np.float64).reshape(len(group), -1))
    metrics = dict(zip(names, means.tolist(), strict=True))
    metrics |= {f"{HALF}/{n}": h for n, h in zip(names, halves.tolist(), strict=True)}
    failed = [row for row in group if row.is_failed]
    blamed = failed[0] if failed else first
    keys = "\n".join(sorted(row.key for row in group))
    return Row(
        key=hashlib.sha256(keys.encode()).hexdigest(),
        params={name: value for name, value in first.params.items() if name != "seed"},
        metrics={
            **{name: value for name, value in metrics.items() if math.isfinite(value)},
            "cells": float(len(group)),
            "cells_failed": float(len(failed)),
        },
        error=blamed.error,
        traceback=blamed.traceback,
        reproduce=blamed.reproduce,
        is_failed=bool(failed),
        kind="policy",
        members=tuple(row.key for row in group),
    )
