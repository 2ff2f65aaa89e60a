"""Results by content: one Parquet file a cell, which knows its own checksum."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sim.base import files
from sweep.store.cell import CellResult
from sweep.store.sources import KeptSources

VERSION = 1
"""Of the layout of a file; a file of another version is computed anew."""

_FEW = 1000
"""Files that are asked for one by one; for more the folder is listed."""

_MARK = b"checksum-sha256:"
_BLANK = _MARK + b"0" * 64


class Cache:
    """The results of cells under ``<results>/cache/cells``.

    Each file's checksum is over its bytes with the checksum itself as zeros, so that a file is
    known to be whole before Parquet looks at it. Whoever writes a cell writes the same content;
    two processes may do so at once.
    """

    def __init__(self, results: Path) -> None:
        self.folder = results / "cache" / "cells"
        self.sources = KeptSources(results)

    def file(self, key: str) -> Path:
        """Where the cell of this key is kept."""
        return self.folder / key[:2] / f"{key}.parquet"

    def n_bytes(self, key: str) -> int:
        """Size of a cell's file; 0 if there is none."""
        try:
            return self.file(key).stat().st_size
        except OSError:
            return 0

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

    def among(self, keys: Collection[str]) -> list[str]:
        """Return those of the keys that have a file, in their order; it may be a damaged one."""
        if len(keys) <= _FEW:
            return [key for key in keys if self.file(key).exists()]
        there = {*self.keys_kept()}
        return [key for key in keys if key in there]

    def put(self, result: CellResult, config: Mapping[str, Any]) -> None:
        """Keep a cell that did not fail, with its configuration for people to read."""
        assert result.jobs is not None
        metrics = {name: _text(value) for name, value in result.metrics.items()}
        meta = {"key": result.key, "metrics": metrics, "config": config}
        files.write_bytes(self.file(result.key), _sealed(_parquet(result.jobs, meta)))

    def config(self, key: str) -> dict[str, Any] | None:
        """Return the configuration a cell was computed with; None if there is no such cell."""
        file = self._open(key)
        if file is None:
            return None
        config: dict[str, Any] = _meta(file)["config"]
        return config

    def keys_kept(self) -> Iterator[str]:
        """Keys of all cells kept, sorted; their files are not looked at."""
        for file in sorted(self.folder.glob("??/*.parquet")):
            yield file.stem

    def _open(self, key: str) -> pq.ParquetFile | None:
        try:
            content = self.file(key).read_bytes()
        except OSError:
            return None
        if not _is_whole(content):
            return None
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
            meta = _meta(file)
            _metrics(file)
        except (pa.ArrowException, OSError, AttributeError, KeyError, TypeError, ValueError):
            return None  # whole, but laid out otherwise: by another version
        known = meta.keys() >= {"key", "metrics", "config"} and meta.get("version", 1) == VERSION
        return file if known and meta["key"] == key else None


def _parquet(table: pa.Table, meta: Mapping[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    # without the Arrow schema, which would repeat the metadata in another form
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", use_dictionary=False, store_schema=False
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(
            {
                **(table.schema.metadata or {}),  # what a measure keeps beside its table
                "cell": json.dumps(meta, ensure_ascii=False),
                "checksum": _BLANK.decode(),
            }
        )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _sealed(content: bytes) -> bytes:
    checksum = _MARK + hashlib.sha256(content).hexdigest().encode()
    return content.replace(_BLANK, checksum)


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


def _text(value: float) -> float | str:
    """JSON has no NaN and no infinities: those become text."""
    return value if math.isfinite(value) else repr(value)
