"""Columns of ``cells.parquet``: their names, which are metrics, how values are read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.columns import to_numpy
from sim.cluster.load import FACTS

AXES = ("policy", "trace", "capacity", "seed")
ERROR = ("error_stage", "error_type", "error_message", "error_traceback")
ABOUT = ("is_pool", "is_counted")
"""Columns of flags: the cluster is a pool of slots; its configuration states a count."""
NOT_METRICS = frozenset((*AXES, "status", *FACTS, *ERROR, "reproduce", "key", *ABOUT))
ALL_METRICS = "all"
"""In place of the names of metrics to show."""

Rows = np.ndarray[Any, np.dtype[np.int64]]
"""Numbers of rows, or a number a row."""


def table_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Take out of ``config.yaml`` what tables of the cells are made by."""
    is_fixed = bool(config.get("is_fixed"))
    return {"swept": config["swept"], "baseline": config["baseline"], "is_fixed": is_fixed}


def chosen_metrics(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the metrics to show; empty where no names were given."""
    chosen = tuple(config["metrics"] or ())
    return () if ALL_METRICS in chosen else chosen


def shown_metrics(cells: pa.Table, config: Mapping[str, Any]) -> pa.Table:
    """Leave out the metrics that are not among those to show, if there are such."""
    chosen = chosen_metrics(config)
    if not chosen:
        return cells
    keep = {*NOT_METRICS, "config", *config["swept"], *chosen}
    return cells.select([name for name in cells.column_names if name in keep])


def cell_key(cells: pa.Table, at: int) -> str:
    """Return a cell's key, which a table may hold as bytes."""
    key = cells.column("key")[at].as_py()
    return key.hex() if isinstance(key, bytes) else str(key)


def factorize(column: pa.ChunkedArray) -> tuple[list[Any], Rows]:
    """Return the values of a column, each once, and of each row which it is."""
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
    """Write a label: shortest text that reads back the same; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value)
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
