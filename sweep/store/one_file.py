"""Cells that an older version kept: one Parquet file each, which knows its own checksum."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweep.store.cell import CellResult
from sweep.store.place import Place, read

VERSION = 1
"""Of the layout of a file; a file of another version is computed anew."""

_MARK = b"checksum-sha256:"


class OneFile:
    """Cells under ``<results>/cache/cells``, which are read and never written.

    Each file's checksum is over its bytes with the checksum itself as zeros, so that a file is
    known to be whole before Parquet looks at it.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._sizes: dict[str, int] | None = None

    def sizes(self) -> dict[str, int]:
        """Return the keys that have a file, and the files' sizes."""
        if self._sizes is None:
            there = self._place.list("cache/cells/")
            self._sizes = {
                name.rpartition("/")[2].removesuffix(".parquet"): size
                for name, size in there.items()
            }
        return self._sizes

    def get(self, key: str) -> CellResult | None:
        """Read a cell; None if it is not there, damaged, or from another version."""
        file = self._open(key)
        if file is None:
            return None
        return CellResult(key, _metrics(file), file.read(use_threads=False))

    def metrics(self, key: str) -> dict[str, float] | None:
        """Read a cell's metrics alone; None if it is not there or its file is damaged."""
        file = self._open(key)
        return None if file is None else _metrics(file)

    def config(self, key: str) -> dict[str, Any] | None:
        """Return the configuration a cell was computed with; None if there is no such cell."""
        file = self._open(key)
        if file is None:
            return None
        config: dict[str, Any] = _meta(file)["config"]
        return config

    def _open(self, key: str) -> pq.ParquetFile | None:
        content = read(self._place, name_of(key)) if key in self.sizes() else None
        if content is None or not _is_whole(content):
            return None
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
            meta = _meta(file)
            _metrics(file)
        except (pa.ArrowException, OSError, AttributeError, KeyError, TypeError, ValueError):
            return None  # whole, but laid out otherwise: by another version
        known = meta.keys() >= {"key", "metrics", "config"} and meta.get("version", 1) == VERSION
        return file if known and meta["key"] == key else None


def name_of(key: str) -> str:
    """Name the file of a cell."""
    return f"cache/cells/{key[:2]}/{key}.parquet"


def _is_whole(content: bytes) -> bool:
    at = content.rfind(_MARK)
    if at < 0:
        return False
    at += len(_MARK)
    blank = content[:at] + b"0" * 64 + content[at + 64 :]
    return hashlib.sha256(blank).hexdigest().encode() == content[at : at + 64]


def _meta(file: pq.ParquetFile) -> dict[str, Any]:
    meta = json.loads(file.metadata.metadata[b"cell"])
    if not isinstance(meta, dict):
        raise TypeError(f"a cell's description is a mapping, not {type(meta).__name__}")
    return meta


def _metrics(file: pq.ParquetFile) -> dict[str, float]:
    return {name: float(value) for name, value in _meta(file)["metrics"].items()}
