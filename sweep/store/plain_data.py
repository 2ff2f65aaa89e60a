"""Safe reading of JSON and Parquet of another person: bounded in depth, rows and columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base import parquet
from sim.base.errors import InputError
from sweep.grid.yaml_aliases import MAX_DEPTH, too_deep

MAX_COLUMNS, MAX_GROUPS = 2_000, 10_000
FREE_VALUES, MIN_VALUE_BYTES = 200_000, 4
"""Columns may have so many values; more must take so many bytes each of the file."""


def loads(content: str | bytes) -> Any:
    """Parse JSON of at most `MAX_DEPTH` levels.

    Raises
    ------
    ValueError
        If it is no JSON, or nested more deeply.
    """
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise ValueError(too_deep()) from error
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise ValueError(too_deep())
        level = [inner for outer in level for inner in _values(outer)]
    return value


def _values(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.values()]
    return value if isinstance(value, list) else []


def check_parquet(path: Path) -> pa.Schema:
    """Refuse a Parquet file of which a few bytes stand for very many; return its columns.

    Raises
    ------
    InputError
        If it declares more columns, row groups or values than its size can be of, or more than
        memory holds; if two columns have one name.
    ArrowException, OSError
        If it is not Parquet, or damaged.
    """
    with pq.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        _check_count(path, "columns", metadata.num_columns, MAX_COLUMNS)
        _check_count(path, "row groups", metadata.num_row_groups, MAX_GROUPS)
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        limit = max(FREE_VALUES, path.stat().st_size // MIN_VALUE_BYTES)
        _check_count(path, "rows", metadata.num_rows, limit)
        for column in range(metadata.num_columns):
            n_values = sum(group.column(column).num_values for group in groups)
            name = metadata.schema.column(column).path
            _check_count(path, f"values in its column {name!r}", n_values, limit)
        parquet.check_file(path, file)
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise InputError(f"it has two columns {name!r}", file=path, rule="archive")
    return schema


def _check_count(path: Path, subject: str, n: int, limit: int) -> None:
    if not 0 <= n <= limit:
        message = f"it declares {n:,} {subject}, of at most {limit:,} for its size"
        raise InputError(message, file=path, rule="too large")
