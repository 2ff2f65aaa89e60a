"""Keeping cells: shards are put where results lie, by whoever has computed their cells.

They count once a manifest says so, which is the driver's to write.
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

MOST_CELLS, MOST_BYTES = 4096, 2**24
"""A shard's, at most; one cell may be larger."""
MARK = "cache/mark"
"""By its content a machine knows that it reaches this place, and not another of the same name."""
LOOK_S = 1.0
_SOUGHT: set[tuple[str, str]] = set()
_REACHED: dict[tuple[str, str], Storage] = {}
"""By name and mark, in this process."""


@dataclass(frozen=True)
class PendingShard:
    """A shard that waits for its manifest."""

    about: bytes  # what the manifest is to say
    name: str
    content: bytes | None  # None if it lies in its place


def to_rows(
    results: Iterable[tuple[CellResult, Mapping[str, Any]]],
) -> tuple[list[Row], dict[str, Exception]]:
    """Turn results into rows, each with its configuration for people to read.

    Return too why some can't be kept, by their keys.
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


def write(rows: Sequence[Row], there: Storage | None) -> Iterator[PendingShard]:
    """Put rows into shards; one that can't be put from here is to be handed over."""
    for part in _in_parts(rows):
        content, about = shards.encode(part)
        name, is_put = shards.digest_name(content), False
        if there is not None:
            with contextlib.suppress(OSError, ValueError):  # InputError is one
                there.put(shards.shard_path(name), content)
                is_put = True
        yield PendingShard(about, name, None if is_put else content)


def marker_of(there: Storage) -> str:
    """Return what marks a place, marked now if it was not."""
    there.put_new(MARK, secrets.token_hex(16).encode())
    return (there.get(MARK) or b"").decode()


def reachable(where: str, mark: str) -> Storage | None:
    """Return the place of a name, if the one with this mark is known to be reached from here.

    It is looked for aside, as that takes half a minute where a machine has no keys to a store: who
    asks waits for a second once, and gets None while the answer is out.
    """
    asked = where, mark
    if asked not in _SOUGHT:
        _SOUGHT.add(asked)
        thread = threading.Thread(target=_look_for, args=asked, daemon=True)
        thread.start()
        thread.join(LOOK_S)
    return _REACHED.get(asked)


def _look_for(where: str, mark: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # InputError is one
        found = storage.open_location(where)
        if found.get(MARK) == mark.encode():
            _REACHED[where, mark] = found


def _in_parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut rows such that each part makes a shard."""
    part: list[Row] = []
    n_bytes = 0
    for row in rows:
        size = len(row.jobs) + len(row.config)
        if part and (len(part) >= MOST_CELLS or n_bytes + size > MOST_BYTES):
            yield part
            part, n_bytes = [], 0
        part.append(row)
        n_bytes += size
    if part:
        yield part
