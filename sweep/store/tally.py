"""Counts of a sweep's journal, read on from where this process last stopped reading it."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from sweep.store.journal_lines import is_intact

_HEADER = re.compile(rb'\{"event": "(cell|begin|asked|end)", "time": ([\d.]+)')
_FAILED, _STATUS_BYTES = b'"status": "failed"', 120
_HEAD_BYTES = 200


@dataclass(frozen=True)
class Tally:
    """Counts of a journal.

    Attributes
    ----------
    started_s, requested_s : float or None
        Last start; last start or request of the fully cached sweep, s since 1970.
    n_cells, n_todo : int
        Cells of the last round, and those of them that were not cached.
    n_came, n_failed : int
        Cells that came since, and how many of them failed.
    has_ended : bool
        True if the last attempt ended.
    question : str
        Question in the asker's words; empty if there is none.
    """

    started_s: float | None = None
    requested_s: float | None = None
    n_cells: int = 0
    n_todo: int = 0
    n_came: int = 0
    n_failed: int = 0
    has_ended: bool = False
    question: str = ""


@dataclass
class _Position:
    """Counts up to an offset of a file that begins with `head`."""

    head: bytes = b""
    offset: int = 0
    tally: Tally = field(default_factory=Tally)


_POSITIONS: dict[Path, _Position] = {}
_READING = threading.Lock()


def read(file: Path) -> Tally:
    """Count the intact lines of a journal; nothing of a file that can't be read."""
    with _READING:
        try:
            with file.open("rb") as stream:
                head = stream.read(_HEAD_BYTES)
                position = _POSITIONS.setdefault(file, _Position())
                if not (position.offset and head.startswith(position.head)):  # another file
                    position = _POSITIONS[file] = _Position()
                _read_on(stream, position)
                position.head = head[: position.offset]
                return position.tally
        except OSError:
            _POSITIONS.pop(file, None)
            return Tally()


def _read_on(stream: BinaryIO, position: _Position) -> None:
    stream.seek(position.offset)
    n_came = n_failed = 0
    for line in stream:
        is_whole = is_intact(line)
        if not is_whole and not line.endswith(b"\n"):
            break  # it is being written
        position.offset += len(line)
        header = _HEADER.match(line) if is_whole else None
        if header is None:
            continue
        if header[1] == b"cell":
            n_came += 1
            n_failed += _FAILED in line[:_STATUS_BYTES]
        else:
            position.tally = _with_cells(position.tally, n_came, n_failed)
            n_came = n_failed = 0
            position.tally = _after(position.tally, header[1], float(header[2]), line)
    position.tally = _with_cells(position.tally, n_came, n_failed)


def _with_cells(tally: Tally, n_came: int, n_failed: int) -> Tally:
    return replace(tally, n_came=tally.n_came + n_came, n_failed=tally.n_failed + n_failed)


def _after(tally: Tally, event: bytes, time_s: float, line: bytes) -> Tally:
    if event == b"end":
        return replace(tally, has_ended=True)
    if event == b"asked":
        return replace(tally, requested_s=time_s, started_s=tally.started_s or time_s)
    begin = json.loads(line)
    n_cells, n_todo = (int(begin.get(name) or 0) for name in ("cells", "todo"))
    return Tally(time_s, time_s, n_cells, n_todo, question=str(begin.get("question") or ""))
