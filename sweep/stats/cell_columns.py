"""Columns of ``cells.parquet``: names of axes, flags and metrics; read and format their values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.columns import to_numpy
from sim.cluster.load import CLUSTER_COLUMNS
from sim.metrics.groups import split

AXES = ("policy", "trace", "capacity", "seed")
ERROR = ("error_stage", "error_type", "error_message", "error_traceback")
ABOUT = ("is_pool", "is_counted", "is_oracle")
"""Columns of flags: the cluster is a pool of slots; its configuration states a count; the policy
knows a truth that nobody knows beforehand, so it can't be run on a real cluster."""
BOOTSTRAP = "is_bootstrap"
"""Column: seeds are draws of a log (``seeds=bootstrap``); without it they are independent."""
COST = "cost_month"
"""Column: what the cell's machines cost a month; only where a price is configured."""
KNOWS = "knows"
"""Column: source of the durations that the policy uses (`policies.knows.Knows`); null without."""
UNDECLARED = "undeclared"
"""Value of `KNOWS` for a policy that reads a truth which it does not declare."""
JOBS_SHARE = "jobs_share"
"""Column of comparisons, not of ``cells.parquet``: see `sweep.stats.done_jobs`."""
NOT_METRICS = frozenset(
    (
        *AXES,
        "status",
        KNOWS,
        *CLUSTER_COLUMNS,
        *ERROR,
        "reproduce",
        "key",
        *ABOUT,
        BOOTSTRAP,
        COST,
        JOBS_SHARE,
    )
)
ALL_METRICS = "all"
"""Value of ``metrics=`` that shows every metric."""
OF_GROUPS = "wait_p95_s"
"""Metric that is shown of groups of jobs (``metrics.by``), unless others are chosen."""

Rows = np.ndarray[Any, np.dtype[np.int64]]
"""Row numbers, or one number per row."""


def table_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of tables of cells, from ``config.yaml``."""
    is_fixed = bool(config.get("is_fixed"))
    return {"swept": config["swept"], "baseline": config["baseline"], "is_fixed": is_fixed}


def chosen_metrics(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the metrics to show; empty if the configuration names none."""
    chosen = tuple(config["metrics"] or ())
    return () if ALL_METRICS in chosen else chosen


def shown_metrics(cells: pa.Table, config: Mapping[str, Any]) -> pa.Table:
    """Drop the metrics that the configuration does not show.

    Groups of jobs (``metrics.by``) are shown of the metrics that are chosen, or else of
    `OF_GROUPS`.
    """
    chosen = chosen_metrics(config)
    if not chosen:
        return cells
    grouped = {name: parts[0] for name in cells.column_names if (parts := split(name))}
    metrics = {*chosen} & {*grouped.values()} or {OF_GROUPS}
    groups = (name for name, metric in grouped.items() if metric in metrics)
    keep = {*NOT_METRICS, "config", *config["swept"], *chosen, *groups}
    return cells.select([name for name in cells.column_names if name in keep])


def cell_key(cells: pa.Table, row: int) -> str:
    """Return a cell's key as hexadecimal text; a table may hold it as bytes."""
    key = cells.column("key")[row].as_py()
    return key.hex() if isinstance(key, bytes) else str(key)


def factorize(column: pa.ChunkedArray) -> tuple[list[Any], Rows]:
    """Encode a column: its distinct values, and each row's index into them."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    elif column.num_chunks > 1:
        column = column.unify_dictionaries()
    chunks = column.chunks
    if not chunks:
        return [], np.empty(0, np.int64)
    return chunks[-1].dictionary.to_pylist(), np.concatenate(
        [to_numpy(chunk.indices) for chunk in chunks]
    )


def to_float64(cells: pa.Table, name: str) -> F8:
    """Return a column as float64, NaN for null; it may be read-only."""
    column = cells.column(name).cast(pa.float64()).combine_chunks()
    values: F8 = to_numpy(column)
    return values


def text(value: object) -> str:
    """Write a value as a label: the shortest text that parses to it again; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
