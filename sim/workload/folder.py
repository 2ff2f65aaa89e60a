"""Storage of a workload as a folder of Parquet files, one a table, and its content digest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sim.base import files, parquet
from sim.base.arrays import F8, I4, I8, offsets
from sim.base.errors import InputError
from sim.base.reading import parse_json
from sim.workload.columns import chunks
from sim.workload.record import Tables
from sim.workload.runs import Runs
from sim.workload.schema import COUNT, OPTIONAL_TABLES, TABLES
from sim.workload.tables import normalise, plain, values

_ROWS = 1 << 20
MAX_TASK_ROWS = 10_000_000
"""Largest number of tasks of which each is a row of ``tasks.parquet``."""
_META = b"workload.meta"
_DIGEST = b"workload.digest"


def write(workload: Tables, folder: str | os.PathLike[str], digest: str) -> None:
    """Write `workload` and its `digest` as ``<table>.parquet`` files.

    A row of ``tasks.parquet`` is a task, or, of more than `MAX_TASK_ROWS`, a run of like tasks with
    its ``count``, unless the table has columns of single tasks.

    The same content gives the same bytes. Each file is written under a temporary name and renamed
    when all are complete, so that a reader sees only complete files. Each also holds the workload's
    digest, by which `read` detects files of different writes in one folder. `meta` is stored in the
    metadata of ``jobs.parquet``.
    """
    target = Path(folder)
    try:
        meta = json.dumps(dict(workload.meta), sort_keys=True).encode()
    except TypeError as error:
        raise InputError(f"meta can't be written as JSON: {error}", rule="wrong meta") from error
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't create the folder: {error}", file=target) from error
    optional = [name for name in OPTIONAL_TABLES if getattr(workload, name).num_rows]
    with contextlib.ExitStack() as open_files:  # all are renamed when the last is written
        for name in (*TABLES, *optional):
            extra = {_DIGEST: digest.encode()}
            if name == "jobs":
                extra[_META] = meta
            file = open_files.enter_context(files.atomic_write(target / f"{name}.parquet"))
            _write_file(file, _pieces(workload, name), extra)
    for name in set(OPTIONAL_TABLES) - set(optional):
        (target / f"{name}.parquet").unlink(missing_ok=True)


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a folder of Parquet files; return the arguments of `Workload.from_tables`."""
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
    optional = {name: source / f"{name}.parquet" for name in OPTIONAL_TABLES}
    paths |= {name: path for name, path in optional.items() if path.is_file()}
    tables = {n: _read_file(p) for n, p in paths.items() if n != "tasks"}
    meta = _joint_metadata(paths)
    stages = normalise("stages", tables["stages"])
    runs = _find_runs(paths["tasks"], stages)
    if runs is None:
        tables["tasks"] = _read_file(paths["tasks"])
    elif runs.one_a_stage:
        tables["stages"] = tables["stages"].append_column("duration_s", pa.array(runs.duration_s))
    else:
        tables["tasks"] = runs.table()
    return {**tables, "meta": meta}


def _pieces(workload: Tables, name: str) -> Iterator[pa.Table]:
    if name != "tasks":
        yield getattr(workload, name)
        return
    is_long = workload.n_tasks > MAX_TASK_ROWS
    if is_long and (workload.in_runs or len(workload.tasks.column_names) == 2):
        for begin in range(0, len(workload.runs.duration_s), _ROWS):
            yield workload.runs.table(begin, begin + _ROWS)
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
        return parquet.read(path)
    except parquet.ERRORS as error:
        raise _unreadable(path, error) from error


def _check_count(path: Path, rows: int, n_tasks: I4) -> None:
    """Refuse a long table of tasks whose row count contradicts the stages; short ones are read."""
    expected = int(n_tasks.sum(dtype=np.int64))
    if rows != expected and rows > _ROWS:
        raise InputError(
            f"it has {rows:,} rows, but n_tasks in stages.parquet adds up to {expected:,}",
            file=path,
            rule="n_tasks mismatch",
        )


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"not a readable Parquet file: {error}", file=path, rule="not Parquet")


def _joint_metadata(paths: dict[str, Path]) -> dict[str, Any]:
    metadata = {}
    for name, path in paths.items():
        try:
            metadata[name] = pq.read_schema(path).metadata or {}
        except parquet.ERRORS as error:
            raise _unreadable(path, error) from error
    digests = {name: fields[_DIGEST] for name, fields in metadata.items() if _DIGEST in fields}
    for name, digest in digests.items():
        if digest != digests.get("jobs", digest):
            raise InputError(
                "the file was not written together with jobs.parquet (a write was interrupted, or "
                "files were mixed); write the workload again",
                file=paths[name],
                rule="mixed files",
            )
    try:
        meta = parse_json(metadata["jobs"].get(_META, b"{}"))
        if not isinstance(meta, dict):
            raise ValueError("it must be an object")
    except ValueError as error:
        raise InputError(
            f"its metadata is not a JSON object: {error}", file=paths["jobs"], rule="wrong meta"
        ) from error
    return meta


def _find_runs(path: Path, stages: pa.Table) -> Runs | None:
    """Return the runs of a table with a row a task, block by block.

    None if the file has other columns, breaks a rule, or has more runs than half as many as tasks.
    """
    n_tasks = values(stages, "n_tasks")
    firsts: list[I8] = []
    durations: list[F8] = []
    counts = np.zeros(len(n_tasks), np.int64)
    n_rows, n_runs, last = 0, 0, (-1, np.int64(0))
    try:
        with pq.ParquetFile(path) as file:
            parquet.check_file(path, file)
            schema = file.schema_arrow
            if COUNT.name in schema.names:
                return None
            _check_count(path, file.metadata.num_rows, n_tasks)
            kinds = [schema.field(i).type for i in range(len(schema))]
            if schema.names != ["stage", "duration_s"] or kinds != [pa.int32(), pa.float64()]:
                return None
            for batch in file.iter_batches(batch_size=_ROWS):
                if any(column.null_count for column in batch.columns):
                    return None
                stage, duration = (column.to_numpy() for column in batch.columns)
                if not len(stage) or stage.min() < 0 or stage.max() >= len(counts):
                    return None
                if (stage[1:] < stage[:-1]).any() or stage[0] < last[0]:
                    return None
                bits = duration.view(np.int64)
                is_first = np.append(
                    (stage[0], bits[0]) != last, (stage[1:] != stage[:-1]) | (bits[1:] != bits[:-1])
                )
                firsts.append(n_rows + np.flatnonzero(is_first))
                durations.append(duration[is_first])
                counts[stage[0] : stage[-1] + 1] += np.bincount(stage - stage[0])
                n_rows, n_runs = n_rows + len(stage), n_runs + len(durations[-1])
                last = (stage[-1], bits[-1])
                if 2 * n_runs > n_rows + _ROWS and n_runs > stage[-1] + 1:
                    return None
    except parquet.ERRORS as error:
        raise _unreadable(path, error) from error
    if not n_rows or (counts != n_tasks).any():
        return None
    is_short = 2 * n_runs > n_rows and n_runs > len(counts)
    first = np.concatenate([*firsts, [n_rows]])
    stage0 = np.searchsorted(first, offsets(n_tasks))
    return None if is_short else Runs(stage0, first, np.concatenate(durations))


@contextlib.contextmanager
def naming_the_file(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of its table's file to an InputError."""
    try:
        yield
    except InputError as error:
        table = re.match(r"\w*", error.message)
        if error.file is not None or table is None:
            raise
        source = Path(folder)
        file = source / f"{table[0]}.parquet" if table[0] in TABLES | OPTIONAL_TABLES else source
        raise InputError(error.message, file=file, rule=error.rule) from error


_VERSION = "workload 1"
_CHUNK = 1 << 24


def digest(workload: Tables) -> str:
    """Return the SHA-256 over all columns and the quanta, as 64 hex digits.

    Two workloads with the same rows in the same columns have the same digest, whether built from
    tables, dicts or files, with single tasks or one duration a stage. Of `meta` only the quanta
    count.
    """
    sha = hashlib.sha256()
    sha.update(json.dumps([_VERSION, dict(workload.quantum)], sort_keys=True).encode())
    for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads", *OPTIONAL_TABLES):
        table: pa.Table = getattr(workload, name)
        if name in OPTIONAL_TABLES and table.num_rows == 0:
            continue
        for column in table.column_names:
            _add_column(sha, f"{name}.{column}", table[column].chunk(0))
    _add_tasks(sha, workload)
    return sha.hexdigest()


def _add_column(sha: Any, name: str, array: pa.Array) -> None:
    if pa.types.is_list(array.type) and not array.null_count:
        _add_column(sha, f"{name} lengths", pa.array(np.diff(array.offsets.to_numpy())))
        _add_column(sha, f"{name} values", plain(array.flatten()))
        return
    sha.update(f"\n{name} {array.type} {len(array)}\n".encode())
    if pa.types.is_dictionary(array.type):
        _add_column(sha, f"{name} names", array.dictionary)
        array = array.indices
    if pa.types.is_string(array.type) and not array.null_count:
        _, ends, data = array.buffers()
        lengths = np.diff(np.frombuffer(ends, np.int32)[: len(array) + 1])
        _add_bytes(sha, lengths)
        sha.update(memoryview(data) if data is not None else b"")
    elif pa.types.is_floating(array.type) and array.null_count:
        sha.update(b"nulls")
        _add_bytes(sha, array.is_null().to_numpy(zero_copy_only=False))
        _add_bytes(sha, array.fill_null(0.0).to_numpy())
    elif pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
        if array.null_count:
            sha.update(repr(array.to_pylist()).encode())
        else:
            _add_bytes(sha, array.to_numpy())
    else:
        sha.update(repr(array.to_pylist()).encode())


def _add_tasks(sha: Any, workload: Tables) -> None:
    # A stage of equal durations counts with one duration, any other with all.
    runs = workload.runs
    if runs.one_a_stage:
        is_uniform = np.ones(workload.n_stages, dtype=bool)
    else:
        longest = np.maximum.reduceat(runs.duration_s, runs.stage0[:-1])
        is_uniform = longest == np.minimum.reduceat(runs.duration_s, runs.stage0[:-1])
    other = np.flatnonzero(~is_uniform)
    first = runs.duration_s[runs.stage0[:-1][is_uniform]]
    for part in (is_uniform, first):
        sha.update(f"\ntasks {len(part)}\n".encode())
        _add_bytes(sha, part)
    n_other = int(values(workload.stages, "n_tasks")[other].sum(dtype=np.int64))
    sha.update(f"\ntasks {n_other}\n".encode())
    for stages in chunks(workload, other):
        _add_bytes(sha, workload.stage_tasks_s(stages))
    if not workload.in_runs:
        for extra in workload.tasks.column_names[2:]:
            _add_column(sha, f"tasks.{extra}", workload.tasks[extra].chunk(0))


def _add_bytes(sha: Any, array: NDArray[Any]) -> None:
    flat = np.ascontiguousarray(array)
    for begin in range(0, len(flat), _CHUNK):
        sha.update(flat[begin : begin + _CHUNK].data)
