"""Shards: many cells in one Parquet file, and the manifest by which they are found.

A shard has a row a cell: its key, the configuration it was computed with, and its table as an
Arrow record batch. A manifest holds the keys of a shard's cells and their metrics. Both are
named by the SHA-256 of their bytes, are written once and never changed: what does not have its
digest is damaged, and nobody can overwrite what somebody else has written. A shard counts from
when its manifest is there; one manifest may be of several.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.base import columns
from sim.base.arrays import F8, Mask

SHARDS, MANIFESTS = "cache/shards/", "cache/manifests/"
VERSION, OF_MANY = 1, 2
KEY_BYTES = 32
ROWS_A_GROUP = 256
ABSENT = np.uint64(0x7FF8_0000_0000_0A85).view(np.float64)
"""Stands where a cell has no metric of a name: a NaN like no other."""


@dataclass(frozen=True)
class Row:
    """A cell as it lies in a shard."""

    key: bytes
    config: str  # JSON
    schema: bytes  # of its table
    jobs: bytes  # its table, as one record batch
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Manifest:
    """The cells of a shard."""

    name: str  # of the file, which other shards may share
    shard: str  # name of the shard
    n_bytes: int  # size of the shard
    keys: bytes  # `KEY_BYTES` a cell, in the order of the shard's rows
    sizes: np.ndarray[Any, np.dtype[np.int64]]  # bytes of each cell's table, before compression
    names: tuple[str, ...]  # of the metrics
    packed: bytes  # the metrics, name by name

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.sizes)

    def metrics(self) -> F8:
        """Unpack the metrics, a row a name; `ABSENT` where a cell has none."""
        n_bytes = 8 * len(self.names) * len(self)
        values = pa.Codec("zstd").decompress(self.packed, n_bytes) if n_bytes else b""
        return np.frombuffer(values, np.float64).reshape(len(self.names), len(self))


def to_row(key: str, config: str, jobs: pa.Table, metrics: Mapping[str, float]) -> Row:
    """Turn a result into a row.

    Raises pyarrow's errors, TypeError or ValueError where its table can't be kept.
    """
    columns = [_plain(column) for column in jobs.columns]
    fields = [
        pa.field(name, column.type, field.nullable)
        for name, column, field in zip(jobs.column_names, columns, jobs.schema, strict=True)
    ]
    schema = pa.schema(fields, jobs.schema.metadata)
    batch = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else None
    content = b"" if batch is None else batch.serialize().to_pybytes()
    about = schema.serialize().to_pybytes()
    return Row(bytes.fromhex(key), config, about, content, metrics)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Put a column into one piece; what has a dictionary, without it."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunks, or too large for one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def read_jobs(schema: bytes, jobs: bytes) -> pa.Table:
    """Read a row's table."""
    about = pa.ipc.read_schema(pa.py_buffer(schema))
    if not len(about):
        return pa.table({}).replace_schema_metadata(about.metadata)
    batch = pa.ipc.read_record_batch(pa.py_buffer(jobs), about)
    return pa.Table.from_batches([batch], about)


def are_absent(values: F8) -> Mask:
    """Flag the values that stand where a cell has no metric; other NaNs are results."""
    bits: Mask = np.ascontiguousarray(values).view(np.uint64) == ABSENT.view(np.uint64)
    return bits


def encode(rows: Sequence[Row]) -> tuple[bytes, bytes]:
    """Write a shard and its manifest; names follow from the bytes, see `digest_name`."""
    schemas = list(dict.fromkeys(row.schema for row in rows))
    number = {schema: at for at, schema in enumerate(schemas)}
    table = pa.table(
        {
            "key": columns.fixed_binary(
                np.array([row.key for row in rows], f"S{KEY_BYTES}"), KEY_BYTES
            ),
            "schema": columns.from_numpy(np.array([number[row.schema] for row in rows], np.int32)),
            "jobs": columns.binaries([row.jobs for row in rows], pa.large_binary()),
            "config": columns.strings([row.config for row in rows], pa.large_string()),
        }
    )
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink, table.schema, compression="zstd", use_dictionary=["schema"], store_schema=False
    ) as writer:
        writer.write_table(table, row_group_size=ROWS_A_GROUP)
        texts = [schema.hex() for schema in schemas]
        writer.add_key_value_metadata({"schemas": json.dumps(texts), "version": str(VERSION)})
    shard = sink.getvalue().to_pybytes()
    return shard, _manifest(rows, shard)


def _manifest(rows: Sequence[Row], shard: bytes) -> bytes:
    names = tuple(dict.fromkeys(name for row in rows for name in row.metrics))
    values = np.full((len(names), len(rows)), ABSENT)
    at = {name: k for k, name in enumerate(names)}
    for k, row in enumerate(rows):
        for name, value in row.metrics.items():
            values[at[name], k] = value
    packed = pa.Codec("zstd").compress(values.tobytes(), asbytes=True) if values.size else b""
    about = {
        "version": VERSION,
        "shard": digest_name(shard),
        "bytes": len(shard),
        "cells": len(rows),
        "metrics": names,
    }
    sizes = np.array([len(row.jobs) for row in rows], "<i8").tobytes()
    keys = b"".join(row.key for row in rows)
    return json.dumps(about, ensure_ascii=False).encode() + b"\n" + keys + sizes + packed


def digest_name(content: bytes) -> str:
    """Name a shard or a manifest."""
    return hashlib.sha256(content).hexdigest()


def shard_path(shard: str) -> str:
    """Return where a shard lies."""
    return f"{SHARDS}{shard}.parquet"


def join(manifests: Sequence[bytes]) -> bytes:
    """Make one manifest of those of several shards."""
    if len(manifests) == 1:
        return manifests[0]
    head = {"version": OF_MANY, "manifests": [len(each) for each in manifests]}
    return b"\n".join((json.dumps(head).encode(), b"".join(manifests)))


def read_manifests(name: str, content: bytes) -> list[Manifest]:
    """Read a manifest, shard by shard; none if it is damaged or from another version."""
    if digest_name(content) != name:
        return []
    head, _, rest = content.partition(b"\n")
    about = json.loads(head)
    if about["version"] == OF_MANY and "manifests" in about:
        ends = np.cumsum([0, *about["manifests"]]).tolist()
        parts = [rest[begin:end] for begin, end in itertools.pairwise(ends)]
    else:
        parts = [content] if about["version"] == VERSION else []
    return [_read_manifest(name, part) for part in parts]


def _read_manifest(name: str, content: bytes) -> Manifest:
    head, _, rest = content.partition(b"\n")
    about = json.loads(head)
    n = about["cells"]
    keys, sizes, packed = (
        rest[: KEY_BYTES * n],
        rest[KEY_BYTES * n : (KEY_BYTES + 8) * n],
        rest[(KEY_BYTES + 8) * n :],
    )
    return Manifest(
        name,
        about["shard"],
        about["bytes"],
        keys,
        np.frombuffer(sizes, "<i8"),
        tuple(about["metrics"]),
        packed,
    )


class Shard:
    """A shard that was read and is whole."""

    def __init__(self, content: bytes) -> None:
        self._file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        texts = json.loads(self._file.metadata.metadata[b"schemas"])
        self._schemas = [bytes.fromhex(text) for text in texts]
        self._group = -1
        self._rows: pa.Table | None = None

    def jobs(self, row: int) -> tuple[bytes, bytes, bytes]:
        """Return a cell's key, its table's schema, and its table."""
        key, schema, jobs = self._at(row, ["key", "schema", "jobs"])
        return key, self._schemas[schema], jobs

    def config(self, row: int) -> str:
        """Return a cell's configuration."""
        table = self._file.read_row_group(row // ROWS_A_GROUP, ["config"], use_threads=False)
        text: str = table["config"][row % ROWS_A_GROUP].as_py()
        return text

    def configs(self) -> list[str]:
        """Return the configuration of every cell."""
        texts: list[str] = self._file.read(["config"], use_threads=False)["config"].to_pylist()
        return texts

    def _at(self, row: int, columns: list[str]) -> list[Any]:
        group, inner = divmod(row, ROWS_A_GROUP)
        if self._rows is None or self._group != group:
            self._rows = self._file.read_row_group(group, columns, use_threads=False)
            self._group = group
        return [self._rows[name][inner].as_py() for name in columns]

    def rows(self) -> list[tuple[bytes, str, bytes, bytes]]:
        """Return the key, configuration, schema and table of every cell."""
        table = self._file.read(use_threads=False)
        columns = (table[name].to_pylist() for name in ("key", "config", "schema", "jobs"))
        return [
            (key, config, self._schemas[schema], jobs)
            for key, config, schema, jobs in zip(*columns, strict=True)
        ]
