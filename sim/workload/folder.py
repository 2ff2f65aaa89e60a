"""A workload on disk: a folder of Parquet files, one a table."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.base import files
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.workload.record import Tables
from sim.workload.schema import OPTIONAL, TABLES
from sim.workload.tables import normalise, values

_ROWS = 1 << 20
_META = b"workload.meta"
_DIGEST = b"workload.digest"


def write(workload: Tables, folder: str | os.PathLike[str], digest: str) -> None:
    """Write `workload`, whose digest is given, as ``<table>.parquet`` files.

    The same content gives the same bytes. Each file is written under a temporary name and moved
    into place when all are complete, so that a reader sees whole files only; each also holds
    the workload's digest, by which `read` notices files of different writes in one folder.
    `meta` goes into the metadata of ``jobs.parquet``.
    """
    target = Path(folder)
    try:
        meta = json.dumps(dict(workload.meta), sort_keys=True).encode()
    except TypeError as error:
        raise InputError(f"meta must hold what JSON can: {error}", rule="wrong meta") from error
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't make the folder: {error}", file=target) from error
    optional = [name for name in OPTIONAL if getattr(workload, name).num_rows]
    with contextlib.ExitStack() as all_whole:  # each takes its place when the last is written
        for name in (*TABLES, *optional):
            extra = {_DIGEST: digest.encode()}
            if name == "jobs":
                extra[_META] = meta
            file = all_whole.enter_context(files.replacing(target / f"{name}.parquet"))
            _write_file(file, _pieces(workload, name), extra)
    for name in set(OPTIONAL) - set(optional):
        (target / f"{name}.parquet").unlink(missing_ok=True)


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a folder of Parquet files: what `Workload.from_tables` takes, by name."""
    source = Path(folder)
    if not source.is_dir():
        problem = "is a file, not a folder" if source.exists() else "does not exist"
        raise InputError(
            f"the folder of a workload {problem}; it holds {', '.join(TABLES)} as .parquet files",
            file=source,
            rule="missing folder",
        )
    paths = {name: source / f"{name}.parquet" for name in TABLES}
    for path in paths.values():
        if not path.is_file():
            raise InputError(
                "the file is missing from the workload", file=path, rule="missing file"
            )
    optional = {name: source / f"{name}.parquet" for name in OPTIONAL}
    paths |= {name: path for name, path in optional.items() if path.is_file()}
    tables = {n: normalise(n, _read_file(p)) for n, p in paths.items() if n != "tasks"}
    meta = _joint_metadata(paths)
    duration_s = _uniform_durations(paths["tasks"], tables["stages"])
    if duration_s is None:
        tables["tasks"] = _read_file(paths["tasks"])
    else:
        tables["stages"] = tables["stages"].append_column("duration_s", pa.array(duration_s))
    return {**tables, "meta": meta}


def _pieces(workload: Tables, name: str) -> Iterator[pa.Table]:
    if name != "tasks":
        yield getattr(workload, name)
        return
    for begin in range(0, workload.n_tasks, _ROWS):
        yield workload.task_rows(begin, min(begin + _ROWS, workload.n_tasks))


def _write_file(file: BinaryIO, pieces: Iterator[pa.Table], extra: dict[bytes, bytes]) -> None:
    first = next(pieces)
    schema = first.schema.with_metadata(extra)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        writer.write_table(first.cast(schema), row_group_size=_ROWS)
        for piece in pieces:
            writer.write_table(piece.cast(schema), row_group_size=_ROWS)
    file.flush()
    os.fsync(file.fileno())


def _read_file(path: Path) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            return file.read()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"not a readable Parquet file: {error}", file=path, rule="not Parquet")


def _joint_metadata(paths: dict[str, Path]) -> dict[str, Any]:
    metadata = {}
    for name, path in paths.items():
        try:
            metadata[name] = pq.read_schema(path).metadata or {}
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
    digests = {name: kept[_DIGEST] for name, kept in metadata.items() if _DIGEST in kept}
    for name, digest in digests.items():
        if digest != digests.get("jobs", digest):
            raise InputError(
                "the file was not written together with jobs.parquet (a write was interrupted, or "
                "files were mixed); write the workload again",
                file=paths[name],
                rule="mixed files",
            )
    try:
        meta = json.loads(metadata["jobs"].get(_META, b"{}"))
    except ValueError as error:
        raise InputError(
            f"its metadata is no JSON: {error}", file=paths["jobs"], rule="wrong meta"
        ) from error
    return dict(meta)


def _uniform_durations(path: Path, stages: pa.Table) -> F8 | None:
    """Return the one duration of each stage's tasks, or None if that is not all there is."""
    n_tasks = values(stages, "n_tasks")
    counts = np.zeros(len(n_tasks), np.int64)
    duration_s = np.full(len(n_tasks), np.nan)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            kinds = [schema.field(i).type for i in range(len(schema))]
            if schema.names != ["stage", "duration_s"] or kinds != [pa.int32(), pa.float64()]:
                return None
            for batch in file.iter_batches(batch_size=_ROWS):
                if any(column.null_count for column in batch.columns):
                    return None
                stage, duration = (column.to_numpy() for column in batch.columns)
                if not len(stage) or stage.min() < 0 or stage.max() >= len(counts):
                    return None
                fresh = counts[stage] == 0
                duration_s[stage[fresh][::-1]] = duration[fresh][::-1]
                if (stage[1:] < stage[:-1]).any() or (duration_s[stage] != duration).any():
                    return None
                counts[stage[0] : stage[-1] + 1] += np.bincount(stage - stage[0])
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return duration_s if (counts == n_tasks).all() else None


@contextlib.contextmanager
def naming_the_file(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Add to an error which of the folder's files its table came from."""
    try:
        yield
    except InputError as error:
        table = re.match(r"\w*", error.message)
        if error.file is not None or table is None:
            raise
        source = Path(folder)
        file = source / f"{table[0]}.parquet" if table[0] in TABLES | OPTIONAL else source
        raise InputError(error.message, file=file, rule=error.rule) from error
