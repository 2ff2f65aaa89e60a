"""Event log of a sweep: one JSON line an event, beside the results and never part of them."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sweep.store import storage, sync, tally
from sweep.store.journal_lines import is_intact, with_crc
from sweep.store.lease import EXPIRES_S, Lease
from sweep.store.tally import Tally

Event = dict[str, Any]

_CELL_PREFIX = b'{"event": "cell"'

_HELD: dict[Path, Lease] = {}
"""Leases of this process, by the journal's file."""


class Journal:
    """The events of one sweep, ``<results>/journal/<sweep id>.jsonl``.

    Each line is one write, so a kill loses at most the line being written. Each ends with the
    CRC-32 of the text before it; readers skip a line that is cut off or damaged.
    An *attempt* begins with a ``begin`` event and ends with ``end``; a kill leaves it open, and
    the next run goes on with it. ``asked`` says that a sweep was requested again and every cell of
    it was cached.
    """

    def __init__(self, results: Path, sweep: str) -> None:
        self._results, self._sweep = results, sweep
        self.file = results / "journal" / f"{sweep}.jsonl"
        self._ends_whole = False

    def append(self, event: str, **fields: Any) -> None:
        """Add an event, with the time of day and the process."""
        self._write(event, [fields])
        sync.push(self._results, self.file)

    def append_cells(self, cells: Iterable[Mapping[str, Any]]) -> None:
        """Add the outcomes of cells; they reach an object store with the lease's heartbeats."""
        self._write("cell", cells)

    def confirm(self) -> None:
        """Refuse to go on where this process held the sweep and another has taken over."""
        lease = _HELD.get(self.file)
        if lease is not None:
            lease.confirm()

    def note_status(self, **fields: Any) -> None:
        """Set fields of the progress that this process's heartbeats report, for other processes."""
        lease = _HELD.get(self.file)
        if lease is not None:
            lease.status = {**lease.status, **fields}

    def _write(self, event: str, lines: Iterable[Mapping[str, Any]]) -> None:
        self.confirm()
        encode = json.JSONEncoder(ensure_ascii=False).encode
        header = {"event": event, "time": round(time.time(), 3), "pid": os.getpid()}
        begin = encode(header)[:-1]
        text = "".join(
            with_crc(f"{begin}{', ' * bool(line)}{encode(line)[1:]}") + "\n" for line in lines
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab+", buffering=0) as file:
            if not self._ends_whole:
                text = self._end_cut_line(file) + text
            content = text.encode()
            try:
                n_written = file.write(content)
            except OSError as error:  # its message names no file
                raise OSError(error.errno, error.strerror, str(self.file)) from error
            if n_written != len(content):  # written in part: the disk is full
                self._ends_whole = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))

    def _end_cut_line(self, file: BinaryIO) -> str:
        """Return a line end where a kill has cut off the last line."""
        self._ends_whole = True
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - 1))
        return "\n" if end and file.read(1) != b"\n" else ""

    def milestones(self) -> list[Event]:
        """Return all events but those of cells, which may be very many."""
        return [*self.events(_CELL_PREFIX)]

    def events(self, exclude: bytes | None = None) -> Iterator[Event]:
        """Yield all intact events, oldest first, except lines that begin with `exclude`."""
        try:
            file = self.file.open("rb")
        except OSError:
            return
        with file:
            for line in file:
                if (exclude is None or not line.startswith(exclude)) and is_intact(line):
                    with contextlib.suppress(ValueError):
                        event = json.loads(line)
                        if _is_event(event):
                            del event["crc"]
                            yield event

    def last_attempt(self) -> Iterator[Event]:
        """Yield the last ``begin`` and what came after it; nothing if there is none."""
        n_left = sum(event["event"] == "begin" for event in self.milestones()) or math.inf
        for event in self.events():
            n_left -= event["event"] == "begin"
            if n_left <= 0:
                yield event

    def start_times_s(self) -> tuple[float, float] | None:
        """Return the times of the last start, and of the last start or request; None if unknown.

        Both in s since 1970.
        """
        counts = self.tally()
        if counts.started_s is None or counts.requested_s is None:
            return None
        return counts.started_s, counts.requested_s

    def tally(self) -> Tally:
        """Count the cells of the last round, and say whether the last attempt ended."""
        return tally.read(self.file)

    def is_complete(self) -> bool:
        """Tell whether the last attempt ended."""
        events = [e["event"] for e in self.milestones() if e["event"] in ("begin", "end")]
        return bool(events) and events[-1] == "end"

    def lease(self) -> Lease:
        """Build the lease that the process holds which runs the sweep."""
        return Lease(
            storage.for_results(self._results),
            f"journal/{self._sweep}",
            on_beat=lambda: sync.push(self._results, self.file, waits=False),
        )

    @contextlib.contextmanager
    def locked(self, on_wait: Callable[[], None]) -> Iterator[Lease]:
        """Hold the sweep for this process; call `on_wait` and wait if another has it."""
        lease = self.lease()
        lease.take(on_wait)
        _HELD[self.file] = lease
        try:
            yield lease
        finally:
            del _HELD[self.file]
            lease.release()

    def has_company(self) -> bool:
        """Tell whether another sweep runs on these results, as far as one look shows."""
        results_storage = storage.for_results(self._results)
        beat_times_s = {
            name.partition(".lease/")[0]: entry.time_s
            for name, entry in results_storage.list("journal/").items()
            if ".lease/" in name
        }
        last_beat_s = beat_times_s.pop(f"journal/{self._sweep}", 0.0)
        recent = [name for name, at_s in beat_times_s.items() if at_s > last_beat_s - EXPIRES_S]
        return any(Lease(results_storage, name).may_be_held() for name in recent)

    def is_running(self) -> bool:
        """Tell whether a process holds the sweep's lease."""
        return self.lease().is_held_by_any()


def _is_event(line: Any) -> bool:
    """Tell whether a line has an event and a time, and a ``begin`` its cached cells."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("event"), str)
        and isinstance(line.get("time"), int | float)
        and (line["event"] != "begin" or isinstance(line.get("cached"), list))
    )
