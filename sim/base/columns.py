"""Arrow's columns from plain values and back, without what imports pandas.

`pyarrow.array` and ``to_numpy`` do so: 50 MB, and a second on a machine that has not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import Mask

_LONG = (pa.large_string(), pa.large_binary())


def numbers(values: np.ndarray[Any, Any], there: Mask | None = None) -> pa.Array:
    """View numbers as a column, null where they are not `there`; truth values are packed."""
    flat = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(flat.dtype)
    content = _bits(flat) if flat.dtype == bool else pa.py_buffer(flat)
    known = None if there is None or there.all() else _bits(there)
    return pa.Array.from_buffers(kind, len(flat), [known, content])


def values_of(column: pa.Array) -> np.ndarray[Any, Any]:
    """View a column of numbers or truth values; float64 with NaN where there are nulls."""
    known, content = column.buffers()
    begin, end = column.offset, column.offset + len(column)
    if pa.types.is_boolean(column.type):
        found = _unpacked(content, begin, end)
    else:
        found = np.frombuffer(content, column.type.to_pandas_dtype(), end)[begin:]
    if not column.null_count:
        return found
    return np.where(_unpacked(known, begin, end), found, np.nan)


def _bits(flags: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _unpacked(bits: pa.Buffer, begin: int, end: int) -> Mask:
    packed = np.frombuffer(bits, np.uint8)
    return np.unpackbits(packed, count=end, bitorder="little")[begin:].astype(bool)


def texts(values: Sequence[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """Make a column of texts, null where there is None."""
    column = [None if value is None else value.encode() for value in values]
    return contents(column, kind or pa.string())


def contents(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Make a column of bytes of any length, null where there is None."""
    parts = [value or b"" for value in values]
    ends = np.zeros(len(parts) + 1, np.int64 if kind in _LONG else np.int32)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=ends[1:])
    there = None
    if None in values:
        there = _bits(np.array([value is not None for value in values]))
    buffers = [there, pa.py_buffer(ends), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(parts), buffers)


def alike(values: np.ndarray[Any, Any], width: int) -> pa.Array:
    """View bytes that are all of one width as a column; nothing is copied."""
    flat = np.ascontiguousarray(values).view(np.uint8)
    kind = pa.binary(width)
    return pa.Array.from_buffers(kind, flat.size // width, [None, pa.py_buffer(flat)])


def hexed(keys: pa.Array) -> pa.Array:
    """Write bytes of one width as texts."""
    width = keys.type.byte_width
    content = keys.buffers()[1]
    part = content.slice(keys.offset * width, len(keys) * width)
    ends = np.arange(len(keys) + 1, dtype=np.int32) * np.int32(2 * width)
    text = pa.py_buffer(part.to_pybytes().hex().encode())
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(ends), text)


def unhexed(column: pa.Array, width: int) -> pa.Array:
    """Read them again."""
    joined = "".join(column.to_pylist())
    return alike(np.frombuffer(bytes.fromhex(joined), np.uint8), width)


def same(text: str, n: int) -> pa.Array:
    """Make a column that has one text in every row."""
    ends = np.arange(n + 1, dtype=np.int32) * np.int32(len(text.encode()))
    return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(text.encode() * n))
