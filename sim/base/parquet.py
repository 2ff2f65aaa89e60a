"""Reading Parquet that others wrote, of which a few bytes may stand for any number of rows."""

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
    """Read a file whole, if there is room for it.

    Raises
    ------
    InputError
        That names the file, if its rows, texts or lists take more memory than is free.
    ArrowException, OSError
        If it is no Parquet, or damaged.
    """
    with pq.ParquetFile(path) as file:
        check_file(path, file)
        texts = _large_texts(file)
    growth = MemoryGuard(path, copies=1)
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        parts = []
        for group in range(file.num_row_groups):
            parts.append(file.read_row_group(group))
            growth.check()
        whole = pa.concat_tables(parts) if parts else file.read()
    for name in texts:
        _check_texts(path, name, whole[name])
        position = whole.column_names.index(name)
        whole = whole.set_column(position, name, whole[name].cast(pa.string()))
    return whole


def check_file(path: Path, file: pq.ParquetFile) -> None:
    """Refuse a file whose values memory can't hold; a list counts with all that it has."""
    about, kinds = file.metadata, file.schema_arrow.types
    n_values = sum(
        max(0, about.row_group(group).column(column).num_values - about.row_group(group).num_rows)
        for group in range(about.num_row_groups)
        for column in range(about.num_columns)
    )
    check_rows(path, about.num_rows, kinds, 8 * n_values)


def check_rows(path: Path, rows: int, kinds: Sequence[pa.DataType], more_bytes: int = 0) -> None:
    """Refuse a table of so many rows, and `more_bytes`, that memory can't hold."""
    needed, left = (rows * sum(map(_width, kinds)) + more_bytes) * COPIES, available_bytes()
    if needed > left:
        raise _too_large(path, f"it has {rows:,} rows, which take", needed, left)


def _large_texts(file: pq.ParquetFile) -> list[str]:
    """Return the columns of texts that may be much longer than the file says.

    One that stands a million times in a column is there once in the file. Such a column is read
    as it is there, coded, at the cost of 0.2 µs for each text that occurs.
    """
    about, columns = file.metadata, []
    for field in file.schema_arrow:
        if not pa.types.is_string(field.type):
            continue
        paths = [file.schema.column(k).path for k in range(about.num_columns)]
        position = paths.index(field.name)
        longest = 0
        for group in range(about.num_row_groups):
            chunk = about.row_group(group).column(position)
            if {"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & {*chunk.encodings}:
                longest += chunk.num_values * chunk.total_uncompressed_size
        if longest > max(NEGLIGIBLE_BYTES, available_bytes() / COPIES):
            columns.append(field.name)
    return columns


def _check_texts(path: Path, name: str, column: pa.ChunkedArray) -> None:
    """Refuse a coded column whose texts memory can't hold where each is there by itself."""
    needed, left = 0, available_bytes()
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
        needed += COPIES * (pc.sum(lengths.take(chunk.indices)).as_py() or 0)
    if needed > left:
        text = f"the texts of its column {name} take"
        raise _too_large(path, text, needed, left)


def _too_large(path: Path, what: str, needed: float, left: float) -> InputError:
    return InputError(
        f"{what} about {needed / 1e9:.1f} GB while they are read and simulated; "
        f"{left / 1e9:.1f} GB are free: take a part of it, or a larger machine",
        file=path,
        rule="too large",
    )


def _width(kind: pa.DataType) -> int:
    """Bytes that a value of a column takes in memory, about."""
    if pa.types.is_dictionary(kind):
        return _width(kind.index_type)
    try:
        bits: int = kind.bit_width
    except ValueError:
        return _STRING_BYTES
    return max(1, bits // 8)
