"""Arrow's columns from plain values and back, without what imports pandas.

`pyarrow.array`, ``to_numpy``, ``to_pandas_dtype`` and ``from_pylist`` do so: 50 MB, and a second
on a machine that has not before.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import Mask

_LONG = (pa.large_string(), pa.large_binary())
_DTYPES = {pa.from_numpy_dtype(code): np.dtype(code) for code in "?bBhHiIlLfd"}


def numpy_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """Return NumPy's type of an Arrow type of numbers; ``to_pandas_dtype`` asks for pandas."""
    return _DTYPES[kind]


def from_numpy(values: np.ndarray[Any, Any], there: Mask | None = None) -> pa.Array:
    """View numbers as a column, null where they are not `there`; truth values are packed."""
    flat = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(flat.dtype)
    content = _bits(flat) if flat.dtype == bool else pa.py_buffer(flat)
    known = None if there is None or there.all() else _bits(there)
    return pa.Array.from_buffers(kind, len(flat), [known, content])


def to_numpy(column: pa.Array) -> np.ndarray[Any, Any]:
    """View a column of numbers or truth values; float64 with NaN where there are nulls."""
    known, content = column.buffers()
    begin, end = column.offset, column.offset + len(column)
    if pa.types.is_boolean(column.type):
        found = _unpacked(content, begin, end)
    else:
        found = np.frombuffer(content, _DTYPES[column.type], end)[begin:]
    if not column.null_count:
        return found
    return np.where(_unpacked(known, begin, end), found, np.nan)


def _bits(flags: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _unpacked(bits: pa.Buffer, begin: int, end: int) -> Mask:
    packed = np.frombuffer(bits, np.uint8)
    return np.unpackbits(packed, count=end, bitorder="little")[begin:].astype(bool)


def strings(values: Iterable[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """Make a column of texts, null where there is None."""
    column = (None if value is None else value.encode() for value in values)
    return binaries(column, kind or pa.string())


def binaries(values: Iterable[bytes | None], kind: pa.DataType) -> pa.Array:
    """Make a column of bytes of any length, null where there is None; each is made once."""
    content, sizes = bytearray(), array("q", [-1])
    for value in values:
        content += value or b""
        sizes.append(-1 if value is None else len(value))
    size = np.array(sizes)
    ends = np.cumsum(np.maximum(size, 0)).astype(np.int64 if kind in _LONG else np.int32)
    there = _bits(size[1:] >= 0) if (size[1:] < 0).any() else None
    buffers = [there, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, len(size) - 1, buffers)


def nullable(values: Sequence[Any], kind: Any) -> pa.Array:
    """Make a column of numbers or truth values of a NumPy kind, null where there is None."""
    there = np.array([value is not None for value in values], bool)
    return from_numpy(np.array([value or 0 for value in values], kind), there)


def table_from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table of rows of texts, numbers and truth values, null where there is None."""
    found = {field: [row.get(field.name) for row in rows] for field in schema}
    made = [
        strings(values) if pa.types.is_string(field.type) else nullable(values, _DTYPES[field.type])
        for field, values in found.items()
    ]
    return pa.Table.from_arrays(made, schema=schema)


def fixed_binary(values: np.ndarray[Any, Any], width: int) -> pa.Array:
    """View bytes that are all of one width as a column; nothing is copied."""
    flat = np.ascontiguousarray(values).view(np.uint8)
    kind = pa.binary(width)
    return pa.Array.from_buffers(kind, flat.size // width, [None, pa.py_buffer(flat)])


def to_hex(keys: pa.Array) -> pa.Array:
    """Write bytes of one width as texts."""
    width = keys.type.byte_width
    content = keys.buffers()[1]
    part = content.slice(keys.offset * width, len(keys) * width)
    ends = np.arange(len(keys) + 1, dtype=np.int32) * np.int32(2 * width)
    text = pa.py_buffer(part.to_pybytes().hex().encode())
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(ends), text)


def from_hex(column: pa.Array, width: int) -> pa.Array:
    """Read them again."""
    joined = "".join(column.to_pylist())
    return fixed_binary(np.frombuffer(bytes.fromhex(joined), np.uint8), width)


def constant(text: str, n: int) -> pa.Array:
    """Make a column that has one text in every row."""
    ends = np.arange(n + 1, dtype=np.int32) * np.int32(len(text.encode()))
    return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(text.encode() * n))
