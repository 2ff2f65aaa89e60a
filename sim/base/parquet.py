"""Safe reading of foreign Parquet files, in which a few bytes may encode any number of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.base.errors import InputError
from sim.base.memory import COPIES, NEGLIGIBLE_BYTES, MemoryGuard, available_bytes
from sim.base.parquet_footer import Chunk, column_chunks

ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""Exceptions of Arrow on a file that is not Parquet, or damaged; the last is of a column's name."""
_STRING_BYTES = 16

Path = str | os.PathLike[str]


def read(path: Path) -> pa.Table:
    """Read a whole file if memory suffices.

    Raises
    ------
    InputError
        If its rows, strings or lists take more memory than is free; names the file.
    ArrowException, OSError, UnicodeDecodeError
        If it is not Parquet, or damaged (`ERRORS`).
    """
    with pq.ParquetFile(path) as file:
        texts = _repeated_texts(file, check_file(path, file))
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


def check_file(path: Path, file: pq.ParquetFile) -> list[list[Chunk]]:
    """Refuse a file whose values exceed the free memory; return the chunks of its row groups.

    A list counts with all its items.
    """
    metadata, chunks = file.metadata, column_chunks(path)
    expected = [metadata.num_columns] * metadata.num_row_groups
    if [len(group) for group in chunks] != expected:
        raise pa.ArrowInvalid("a row group has other columns than the schema")
    n_items = sum(
        max(0, chunk.n_values - metadata.row_group(group).num_rows)
        for group in range(metadata.num_row_groups)
        for chunk in chunks[group]
    )
    check_rows(path, metadata.num_rows, file.schema_arrow.types, 8 * n_items)
    return chunks


def check_rows(path: Path, rows: int, kinds: Sequence[pa.DataType], more_bytes: int = 0) -> None:
    """Refuse a table whose rows, and `more_bytes`, exceed the free memory."""
    needed, free = (rows * sum(map(_width, kinds)) + more_bytes) * COPIES, available_bytes()
    if needed > free:
        raise _too_large(path, f"it has {rows:,} rows, which take", needed, free)


def _repeated_texts(file: pq.ParquetFile, chunks: Sequence[Sequence[Chunk]]) -> list[str]:
    """Return the string columns that may be much larger in memory than in the file.

    A string that occurs a million times in a column is stored once in the file. Such a column is
    read dictionary-encoded, at the cost of 0.2 µs for each distinct string.
    """
    paths = [file.schema.column(k).path for k in range(file.metadata.num_columns)]
    names = []
    for field in file.schema_arrow:
        if not pa.types.is_string(field.type):
            continue
        parts = [group[paths.index(field.name)] for group in chunks]
        max_bytes = sum(part.n_values * part.n_bytes for part in parts if part.by_dictionary)
        if max_bytes > max(NEGLIGIBLE_BYTES, available_bytes() / COPIES):
            names.append(field.name)
    return names


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
