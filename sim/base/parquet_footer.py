"""Sizes of the column chunks of a Parquet file, read from its footer.

Not by pyarrow's ``row_group(i).column(j)``: on some damaged footers that ends the whole process
(``terminate called``), where Arrow's other functions raise an error. A footer is refused, too, in
which a list's type is not that of its items, which Arrow takes for them whatever it says.

References
----------
Apache Parquet, ``parquet.thrift``; Apache Thrift, *Compact protocol encoding*.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

MAGIC: Final = b"PAR1"
_LENGTH = struct.Struct("<I")
_I32, _I64, _DOUBLE, _TEXT, _LIST, _SET, _MAP, _STRUCT, _UUID = 5, 6, 7, 8, 9, 10, 11, 12, 13
_ONE_BYTE, _WHOLE = (1, 2, 3), (4, _I32, _I64)
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_ENCODINGS, _NUM_VALUES, _UNCOMPRESSED_SIZE = 2, 5, 6
_DICTIONARY = {2, 8}
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_MAX_DEPTH = 32


@dataclass(frozen=True)
class Chunk:
    """A column's part of a row group: its values, their bytes unpacked, and if by dictionary."""

    n_values: int
    n_bytes: int
    by_dictionary: bool


def column_chunks(path: str | os.PathLike[str]) -> list[list[Chunk]]:
    """Return the column chunks of each row group.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the footer is damaged.
    OSError
        If the file can't be read.
    """
    reader = _Compact(_footer(path))
    try:
        groups = _field(reader.fields(), _ROW_GROUPS, _LIST, [])
        return [[_chunk(column) for column in _field(g, _COLUMNS, _LIST, [])] for g in groups]
    except (IndexError, ValueError, TypeError, AttributeError) as error:
        raise pa.ArrowInvalid("the footer is damaged") from error


def _footer(path: str | os.PathLike[str]) -> bytes:
    with Path(path).open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        n_end = _LENGTH.size + len(MAGIC)
        file.seek(max(0, size - n_end))
        end = file.read(n_end)
        n_bytes = _LENGTH.unpack(end[: _LENGTH.size])[0] if len(end) == n_end else size
        if end[_LENGTH.size :] != MAGIC or n_bytes + n_end > size:
            raise pa.ArrowInvalid("the footer is cut off, or encrypted")
        file.seek(size - n_end - n_bytes)
        return file.read(n_bytes)


def _chunk(column: dict[int, tuple[int, Any]]) -> Chunk:
    meta = _field(column, _META_DATA, _STRUCT, {})
    return Chunk(
        n_values=_field(meta, _NUM_VALUES, _I64, 0),
        n_bytes=_field(meta, _UNCOMPRESSED_SIZE, _I64, 0),
        by_dictionary=not _DICTIONARY.isdisjoint(_field(meta, _ENCODINGS, _LIST, [])),
    )


def _field(fields: dict[int, tuple[int, Any]], number: int, kind: int, default: Any) -> Any:
    """Return a field's value; a field of another type is ignored, as Thrift's readers do."""
    actual, value = fields.get(number, (kind, default))
    return value if actual == kind else default


class _Compact:
    """Parser of Thrift's compact protocol: values by type."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def fields(self, depth: int = 0) -> dict[int, tuple[int, Any]]:
        """Return the fields of a struct: type and value by number; the last of a number counts."""
        if depth > _MAX_DEPTH:
            raise ValueError("too deep")
        result: dict[int, tuple[int, Any]] = {}
        number = 0
        while head := self._byte():
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._whole()
            result[number] = kind, (kind == 1 if kind in (1, 2) else self._value(kind, depth))
        return result

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _WHOLE:
            return self._whole()
        if kind == _TEXT:
            return self._take(self._varint())
        if kind == _STRUCT:
            return self.fields(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            return [self._value(head & 15, depth + 1) for _ in range(size)]
        if kind == _MAP:
            size = self._varint()
            kinds = self._byte() if size else 0
            pair = (kinds >> 4, kinds & 15)
            return [[self._value(k, depth + 1) for k in pair] for _ in range(size)]
        if kind in _ONE_BYTE:
            return self._byte()
        if kind in (_DOUBLE, _UUID):
            return self._take(8 if kind == _DOUBLE else 16)
        raise ValueError("no such type")

    def _whole(self) -> int:
        coded = self._varint()
        return (coded >> 1) ^ -(coded & 1)

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
            if shift > 63:
                raise ValueError("too long a number")

    def _byte(self) -> int:
        byte = self._content[self._position]
        self._position += 1
        return byte

    def _take(self, size: int) -> bytes:
        self._position += size
        if self._position > len(self._content):
            raise IndexError("beyond the end")
        return self._content[self._position - size : self._position]
