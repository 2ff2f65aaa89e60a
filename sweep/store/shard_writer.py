"""Shard writer: cells are packed into shards, which their worker puts where results are stored.

Shards count once a manifest names them, which the driver alone writes.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sweep.store import shards, storage
from sweep.store.cell import CellResult
from sweep.store.shards import Row
from sweep.store.storage import Storage

MAX_CELLS, MAX_BYTES = 4096, 2**24
"""Limits of a shard; one cell may be larger."""
MARKER = "cache/mark"
"""By its content a machine knows this storage from another one of the same name."""
PROBE_S = 1.0
_PROBED: set[tuple[str, str]] = set()
_REACHABLE: dict[tuple[str, str], Storage] = {}
"""By name and mark, in this process."""


@dataclass(frozen=True)
class PendingShard:
    """A shard that waits for its manifest."""

    manifest: bytes
    name: str
    content: bytes | None  # None if it is stored already


def to_rows(
    results: Iterable[tuple[CellResult, Mapping[str, Any]]],
) -> tuple[list[Row], dict[str, Exception]]:
    """Turn results into rows, each with its configuration for people to read.

    Return too, by key, the errors of those that can't be stored.
    """
    rows: list[Row] = []
    errors: dict[str, Exception] = {}
    for result, config in results:
        assert result.jobs is not None
        try:
            text = json.dumps(config, ensure_ascii=False)
            rows.append(shards.to_row(result.key, text, result.jobs, result.metrics))
        except (pa.ArrowException, TypeError, ValueError) as error:
            errors[result.key] = error
    return rows, errors


def write(rows: Sequence[Row], target: Storage | None) -> Iterator[PendingShard]:
    """Write rows as shards to `target`; one that can't be written from here keeps its content."""
    for group in _split(rows):
        content, manifest = shards.encode(group)
        name, is_stored = shards.digest_name(content), False
        if target is not None:
            with contextlib.suppress(OSError, ValueError):  # InputError is one
                target.put(shards.shard_path(name), content)
                is_stored = True
        yield PendingShard(manifest, name, None if is_stored else content)


def read_marker(results_storage: Storage) -> str:
    """Return the marker of a storage; write one if there is none."""
    results_storage.put_new(MARKER, secrets.token_hex(16).encode())
    return (results_storage.get(MARKER) or b"").decode()


def reachable(location: str, marker: str) -> Storage | None:
    """Return the storage at a location, if it is known to have this marker.

    A thread probes it, as that takes half a minute where a machine has no keys to a store: the
    first call waits for a second, and calls return None until there is an answer.
    """
    probe = location, marker
    if probe not in _PROBED:
        _PROBED.add(probe)
        thread = threading.Thread(target=_probe, args=probe, daemon=True)
        thread.start()
        thread.join(PROBE_S)
    return _REACHABLE.get(probe)


def _probe(location: str, marker: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # InputError is one
        candidate = storage.open_location(location)
        if candidate.get(MARKER) == marker.encode():
            _REACHABLE[location, marker] = candidate


def _split(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Split rows so that each group makes a shard."""
    group: list[Row] = []
    n_bytes = 0
    for row in rows:
        row_bytes = len(row.jobs) + len(row.config)
        if group and (len(group) >= MAX_CELLS or n_bytes + row_bytes > MAX_BYTES):
            yield group
            group, n_bytes = [], 0
        group.append(row)
        n_bytes += row_bytes
    if group:
        yield group
