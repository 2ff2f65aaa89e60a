"""Shards: many cells in one Parquet file, each with a manifest as its index entry.

A shard has one row per cell: its key, the configuration it was computed with, and its table as an
Arrow record batch. A manifest holds the keys of a shard's cells and their metrics. Both are
named by the SHA-256 of their bytes, are written once and never changed: a file that does not have
its digest is damaged, and no writer can overwrite the file of another. A shard counts from the
moment when its manifest exists; one manifest may cover several shards.
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
VERSION, VERSION_MANY = 1, 2
KEY_BYTES = 32
ROWS_A_GROUP = 256
ABSENT = np.uint64(0x7FF8_0000_0000_0A85).view(np.float64)
"""Marks a metric that a cell does not have: a NaN with a bit pattern of its own."""


@dataclass(frozen=True)
class Row:
    """Row of a shard: one cell."""

    key: bytes
    config: str  # JSON
    schema: bytes  # of its table
    jobs: bytes  # its table, as one record batch
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Manifest:
    """Manifest of one shard: keys and metrics of its cells."""

    name: str  # of the file, which may hold manifests of other shards
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
        """Unpack the metrics, one row per name; `ABSENT` where a cell has none."""
        n_bytes = 8 * len(self.names) * len(self)
        values = pa.Codec("zstd").decompress(self.packed, n_bytes) if n_bytes else b""
        return np.frombuffer(values, np.float64).reshape(len(self.names), len(self))


def to_row(key: str, config: str, jobs: pa.Table, metrics: Mapping[str, float]) -> Row:
    """Turn a result into a row.

    Raises pyarrow's errors, TypeError or ValueError where its table can't be stored.
    """
    columns = [_plain(column) for column in jobs.columns]
    fields = [
        pa.field(name, column.type, field.nullable)
        for name, column, field in zip(jobs.column_names, columns, jobs.schema, strict=True)
    ]
    schema = pa.schema(fields, jobs.schema.metadata)
    batch = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else None
    content = b"" if batch is None else batch.serialize().to_pybytes()
    schema_bytes = schema.serialize().to_pybytes()
    return Row(bytes.fromhex(key), config, schema_bytes, content, metrics)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Combine a column's chunks into one array; decode dictionaries."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunks, or too large for one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def read_jobs(schema: bytes, jobs: bytes) -> pa.Table:
    """Read a row's table."""
    arrow_schema = pa.ipc.read_schema(pa.py_buffer(schema))
    if not len(arrow_schema):
        return pa.table({}).replace_schema_metadata(arrow_schema.metadata)
    batch = pa.ipc.read_record_batch(pa.py_buffer(jobs), arrow_schema)
    return pa.Table.from_batches([batch], arrow_schema)


def are_absent(values: F8) -> Mask:
    """Flag the values that mark an absent metric; other NaNs are results."""
    bits: Mask = np.ascontiguousarray(values).view(np.uint64) == ABSENT.view(np.uint64)
    return bits


def encode(rows: Sequence[Row]) -> tuple[bytes, bytes]:
    """Encode rows as a shard and its manifest; names follow from the bytes, see `digest_name`."""
    schemas = list(dict.fromkeys(row.schema for row in rows))
    number = {schema: position for position, schema in enumerate(schemas)}
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
    position = {name: k for k, name in enumerate(names)}
    for k, row in enumerate(rows):
        for name, value in row.metrics.items():
            values[position[name], k] = value
    packed = pa.Codec("zstd").compress(values.tobytes(), asbytes=True) if values.size else b""
    header = {
        "version": VERSION,
        "shard": digest_name(shard),
        "bytes": len(shard),
        "cells": len(rows),
        "metrics": names,
    }
    sizes = np.array([len(row.jobs) for row in rows], "<i8").tobytes()
    keys = b"".join(row.key for row in rows)
    return json.dumps(header, ensure_ascii=False).encode() + b"\n" + keys + sizes + packed


def digest_name(content: bytes) -> str:
    """Name of a shard or a manifest: its digest."""
    return hashlib.sha256(content).hexdigest()


def shard_path(shard: str) -> str:
    """Path of a shard below the results."""
    return f"{SHARDS}{shard}.parquet"


def join(manifests: Sequence[bytes]) -> bytes:
    """Combine the manifests of several shards into one."""
    if len(manifests) == 1:
        return manifests[0]
    head = {"version": VERSION_MANY, "manifests": [len(manifest) for manifest in manifests]}
    return b"\n".join((json.dumps(head).encode(), b"".join(manifests)))


def read_manifests(name: str, content: bytes) -> list[Manifest]:
    """Parse a manifest, shard by shard; none if it is damaged or from another version."""
    if digest_name(content) != name:
        return []
    head, _, rest = content.partition(b"\n")
    header = json.loads(head)
    if header["version"] == VERSION_MANY and "manifests" in header:
        ends = np.cumsum([0, *header["manifests"]]).tolist()
        parts = [rest[begin:end] for begin, end in itertools.pairwise(ends)]
    else:
        parts = [content] if header["version"] == VERSION else []
    return [_read_manifest(name, part) for part in parts]


def _read_manifest(name: str, content: bytes) -> Manifest:
    head, _, rest = content.partition(b"\n")
    header = json.loads(head)
    n_cells = header["cells"]
    keys, sizes, packed = (
        rest[: KEY_BYTES * n_cells],
        rest[KEY_BYTES * n_cells : (KEY_BYTES + 8) * n_cells],
        rest[(KEY_BYTES + 8) * n_cells :],
    )
    return Manifest(
        name,
        header["shard"],
        header["bytes"],
        keys,
        np.frombuffer(sizes, "<i8"),
        tuple(header["metrics"]),
        packed,
    )


class Shard:
    """An intact shard, opened for reading."""

    def __init__(self, content: bytes) -> None:
        self._file = pq.ParquetFile(pa.BufferReader(content), pre_buffer=False)
        texts = json.loads(self._file.metadata.metadata[b"schemas"])
        self._schemas = [bytes.fromhex(text) for text in texts]
        self._group = -1
        self._rows: pa.Table | None = None

    def jobs(self, row: int) -> tuple[bytes, bytes, bytes]:
        """Return a cell's key, its table's schema, and its table."""
        key, schema, jobs = self._read_row(row, ["key", "schema", "jobs"])
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

    def _read_row(self, row: int, columns: list[str]) -> list[Any]:
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
