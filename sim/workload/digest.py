"""The content digest of a workload."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.workload.record import Tables
from sim.workload.schema import OPTIONAL
from sim.workload.tables import plain, values

_VERSION = "workload 1"
_CHUNK = 1 << 24


def digest(workload: Tables) -> str:
    """Return the SHA-256 over all columns and the quanta, as 64 hex digits.

    Two workloads have the same digest when they have the same rows in the same columns, however
    they were made: from tables, dicts or files, with tasks given one by one or as one duration a
    stage. `meta` does not count, but for the quanta.
    """
    sha = hashlib.sha256()
    sha.update(json.dumps([_VERSION, dict(workload.quantum)], sort_keys=True).encode())
    for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads", *OPTIONAL):
        table: pa.Table = getattr(workload, name)
        if name in OPTIONAL and table.num_rows == 0:
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
    # A stage whose tasks all last the same counts with one duration, others with all of theirs.
    uniform = workload.stage_duration_s
    if uniform is None:
        duration = values(workload.tasks, "duration_s")
        first = workload.stage_task0[:-1]
        same = np.ones(len(duration), dtype=bool)
        same[1:] = duration[1:] == duration[:-1]
        same[first] = True
        alike = np.logical_and.reduceat(same, first)
        sizes = values(workload.stages, "n_tasks")
        _add_parts(sha, alike, duration[first][alike], duration[np.repeat(~alike, sizes)])
        for extra in workload.tasks.column_names[2:]:
            _add_column(sha, f"tasks.{extra}", workload.tasks[extra].chunk(0))
    else:
        alike = np.ones(workload.n_stages, dtype=bool)
        _add_parts(sha, alike, uniform, uniform[:0])


def _add_parts(sha: Any, *parts: NDArray[Any]) -> None:
    for part in parts:
        sha.update(f"\ntasks {len(part)}\n".encode())
        _add_bytes(sha, part)


def _add_bytes(sha: Any, array: NDArray[Any]) -> None:
    flat = np.ascontiguousarray(array)
    for begin in range(0, len(flat), _CHUNK):
        sha.update(flat[begin : begin + _CHUNK].data)
