"""Arrow columns from plain values and back, without importing pandas.

`pyarrow.array`, ``to_numpy``, ``to_pandas_dtype`` and ``from_pylist`` import it: 50 MB, and a
second the first time on a machine.
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
    """Return the NumPy type of an Arrow number type; ``to_pandas_dtype`` needs pandas."""
    return _DTYPES[kind]


def from_numpy(values: np.ndarray[Any, Any], valid: Mask | None = None) -> pa.Array:
    """View numbers as a column, null where not `valid`; booleans are packed."""
    flat = np.ascontiguousarray(values)
    kind = pa.from_numpy_dtype(flat.dtype)
    content = _pack(flat) if flat.dtype == bool else pa.py_buffer(flat)
    validity = None if valid is None or valid.all() else _pack(valid)
    return pa.Array.from_buffers(kind, len(flat), [validity, content])


def to_numpy(column: pa.Array) -> np.ndarray[Any, Any]:
    """View a column of numbers or booleans; float64 with NaN for null if there are nulls."""
    validity, content = column.buffers()
    begin, end = column.offset, column.offset + len(column)
    if pa.types.is_boolean(column.type):
        values = _unpack(content, begin, end)
    else:
        values = np.frombuffer(content, _DTYPES[column.type], end)[begin:]
    if not column.null_count:
        return values
    return np.where(_unpack(validity, begin, end), values, np.nan)


def _pack(flags: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _unpack(bits: pa.Buffer, begin: int, end: int) -> Mask:
    packed = np.frombuffer(bits, np.uint8)
    return np.unpackbits(packed, count=end, bitorder="little")[begin:].astype(bool)


def strings(values: Iterable[str | None], kind: pa.DataType | None = None) -> pa.Array:
    """Build a column of strings, null for None."""
    encoded = (None if value is None else value.encode() for value in values)
    return binaries(encoded, kind or pa.string())


def binaries(values: Iterable[bytes | None], kind: pa.DataType) -> pa.Array:
    """Build a column of byte strings of any length, null for None; reads `values` once."""
    content, sizes = bytearray(), array("q", [-1])
    for value in values:
        content += value or b""
        sizes.append(-1 if value is None else len(value))
    size = np.array(sizes)
    ends = np.cumsum(np.maximum(size, 0)).astype(np.int64 if kind in _LONG else np.int32)
    validity = _pack(size[1:] >= 0) if (size[1:] < 0).any() else None
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(kind, len(size) - 1, buffers)


def nullable(values: Sequence[Any], kind: Any) -> pa.Array:
    """Build a column of numbers or booleans of a NumPy type, null for None."""
    valid = np.array([value is not None for value in values], bool)
    return from_numpy(np.array([value or 0 for value in values], kind), valid)


def table_from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Build a table from rows of strings, numbers and booleans; None and missing keys are null."""
    columns = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        is_text = pa.types.is_string(field.type)
        columns.append(strings(values) if is_text else nullable(values, _DTYPES[field.type]))
    return pa.Table.from_arrays(columns, schema=schema)


def fixed_binary(values: np.ndarray[Any, Any], width: int) -> pa.Array:
    """View bytes of one width as a fixed-size binary column, without a copy."""
    flat = np.ascontiguousarray(values).view(np.uint8)
    kind = pa.binary(width)
    return pa.Array.from_buffers(kind, flat.size // width, [None, pa.py_buffer(flat)])


def to_hex(keys: pa.Array) -> pa.Array:
    """Write a fixed-size binary column as hexadecimal strings."""
    width = keys.type.byte_width
    content = keys.buffers()[1]
    part = content.slice(keys.offset * width, len(keys) * width)
    ends = np.arange(len(keys) + 1, dtype=np.int32) * np.int32(2 * width)
    text = pa.py_buffer(part.to_pybytes().hex().encode())
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(ends), text)


def from_hex(column: pa.Array, width: int) -> pa.Array:
    """Read hexadecimal strings as a fixed-size binary column."""
    joined = "".join(column.to_pylist())
    return fixed_binary(np.frombuffer(bytes.fromhex(joined), np.uint8), width)


def constant(text: str, n: int) -> pa.Array:
    """Build a column with the same string in every row."""
    ends = np.arange(n + 1, dtype=np.int32) * np.int32(len(text.encode()))
    return pa.StringArray.from_buffers(n, pa.py_buffer(ends), pa.py_buffer(text.encode() * n))
