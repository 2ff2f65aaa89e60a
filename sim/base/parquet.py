"""Safe reading of foreign Parquet files, in which a few bytes may encode any number of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.base.errors import InputError
from sim.base.memory import COPIES, NEGLIGIBLE_BYTES, MemoryGuard, available_bytes

_STRING_BYTES = 16

Path = str | os.PathLike[str]


def read(path: Path) -> pa.Table:
    """Read a whole file if memory suffices.

    Raises
    ------
    InputError
        If its rows, strings or lists take more memory than is free; names the file.
    ArrowException, OSError
        If it is not Parquet, or damaged.
    """
    with pq.ParquetFile(path) as file:
        check_file(path, file)
        texts = _repeated_texts(file)
    growth = MemoryGuard(path, copies=1)
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        groups = []
        for group in range(file.num_row_groups):
            groups.append(file.read_row_group(group))
            growth.check()
        whole = pa.concat_tables(groups) if groups else file.read()
    for name in texts:
        _check_texts(path, name, whole[name])
        position = whole.column_names.index(name)
        whole = whole.set_column(position, name, whole[name].cast(pa.string()))
    return whole


def check_file(path: Path, file: pq.ParquetFile) -> None:
    """Refuse a file whose values exceed the free memory; a list counts with all its items."""
    metadata, kinds = file.metadata, file.schema_arrow.types
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    n_items = sum(
        max(0, group.column(column).num_values - group.num_rows)
        for group in groups
        for column in range(metadata.num_columns)
    )
    check_rows(path, metadata.num_rows, kinds, 8 * n_items)


def check_rows(path: Path, rows: int, kinds: Sequence[pa.DataType], more_bytes: int = 0) -> None:
    """Refuse a table whose rows, and `more_bytes`, exceed the free memory."""
    needed, free = (rows * sum(map(_width, kinds)) + more_bytes) * COPIES, available_bytes()
    if needed > free:
        raise _too_large(path, f"it has {rows:,} rows, which take", needed, free)


def _repeated_texts(file: pq.ParquetFile) -> list[str]:
    """Return the string columns that may be much larger in memory than in the file.

    A string that occurs a million times in a column is stored once in the file. Such a column is
    read dictionary-encoded, at the cost of 0.2 µs for each distinct string.
    """
    metadata, columns = file.metadata, []
    for field in file.schema_arrow:
        if not pa.types.is_string(field.type):
            continue
        paths = [file.schema.column(k).path for k in range(metadata.num_columns)]
        position = paths.index(field.name)
        max_bytes = 0
        for group in range(metadata.num_row_groups):
            chunk = metadata.row_group(group).column(position)
            if {"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & {*chunk.encodings}:
                max_bytes += chunk.num_values * chunk.total_uncompressed_size
        if max_bytes > max(NEGLIGIBLE_BYTES, available_bytes() / COPIES):
            columns.append(field.name)
    return columns


def _check_texts(path: Path, name: str, column: pa.ChunkedArray) -> None:
    """Refuse a dictionary-encoded column whose decoded strings exceed the free memory."""
    needed, free = 0, available_bytes()
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        needed += COPIES * (pc.sum(lengths.take(chunk.indices)).as_py() or 0)
    if needed > free:
        text = f"the texts of its column {name} take"
        raise _too_large(path, text, needed, free)


def _too_large(path: Path, text: str, needed: float, free: float) -> InputError:
    return InputError(
        f"{text} about {needed / 1e9:.1f} GB while they are read and simulated; "
        f"{free / 1e9:.1f} GB are free: take a part of it, or a larger machine",
        file=path,
        rule="too large",
    )


def _width(kind: pa.DataType) -> int:
    """Estimate the bytes that a value of a column takes in memory."""
    if pa.types.is_dictionary(kind):
        return _width(kind.index_type)
    try:
        bits: int = kind.bit_width
    except ValueError:
        return _STRING_BYTES
    return max(1, bits // 8)
