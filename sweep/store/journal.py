"""What happened when: one line an event, beside the results and never part of them."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sweep.store import storage, sync
from sweep.store.lease import EXPIRES_S, Lease

Event = dict[str, Any]

_BEGUN = re.compile(rb'^\{"event": "(begin|asked)", "time": ([\d.]+)')

_CELL = b'{"event": "cell"'

_CRC = re.compile(rb', "crc": "([0-9a-f]{8})"\}\n?')
_CRC_BYTES = len(', "crc": "01234567"}\n')

_HELD: dict[Path, Lease] = {}
"""Leases of this process, by the journal's file."""


class Journal:
    """The events of one sweep, ``<results>/journal/<sweep id>.jsonl``.

    A line is written at once, so a kill loses at most the line being written. Each ends with the
    CRC-32 of what stands before; readers skip a line that is cut off or damaged.
    An *attempt* begins with a ``begin`` event and ends with ``end``; a kill leaves it open, and
    the next run goes on with it. ``asked`` says that a sweep was asked for again and every cell of
    it was cached.
    """

    def __init__(self, results: Path, sweep: str) -> None:
        self._results, self._sweep = results, sweep
        self.file = results / "journal" / f"{sweep}.jsonl"
        self._is_clean = False

    def append(self, event: str, **fields: Any) -> None:
        """Add an event, with the time of day and the process."""
        self._write(event, [fields])
        sync.push(self._results, self.file)

    def append_cells(self, cells: Iterable[Mapping[str, Any]]) -> None:
        """Add what became of cells; it is handed over as the lease's heart beats."""
        self._write("cell", cells)

    def confirm(self) -> None:
        """Refuse to go on where this process held the sweep and another has taken over."""
        lease = _HELD.get(self.file)
        if lease is not None:
            lease.confirm()

    def _write(self, event: str, lines: Iterable[Mapping[str, Any]]) -> None:
        self.confirm()
        encode = json.JSONEncoder(ensure_ascii=False).encode
        about = {"event": event, "time": round(time.time(), 3), "pid": os.getpid()}
        begin = encode(about)[:-1]
        text = "".join(
            with_crc(f"{begin}{', ' * bool(line)}{encode(line)[1:]}") + "\n" for line in lines
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab+", buffering=0) as file:
            if not self._is_clean:
                text = self._clean(file) + text
            content = text.encode()
            try:
                n_written = file.write(content)
            except OSError as error:  # which names no file
                raise OSError(error.errno, error.strerror, str(self.file)) from error
            if n_written != len(content):  # the disk took a part: it is full
                self._is_clean = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))

    def _clean(self, file: BinaryIO) -> str:
        """End the line that a kill may have cut off."""
        self._is_clean = True
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - 1))
        return "\n" if end and file.read(1) != b"\n" else ""

    def milestones(self) -> list[Event]:
        """Return all but those of cells, which may be very many."""
        return [*self.events(_CELL)]

    def events(self, but: bytes | None = None) -> Iterator[Event]:
        """Yield all whole events, oldest first."""
        try:
            file = self.file.open("rb")
        except OSError:
            return
        with file:
            for line in file:
                if (but is None or not line.startswith(but)) and _is_intact(line):
                    with contextlib.suppress(ValueError):
                        event = json.loads(line)
                        if _is_event(event):
                            del event["crc"]
                            yield event

    def last_attempt(self) -> Iterator[Event]:
        """Yield the last ``begin`` and what came after it; nothing if there is none."""
        left = sum(event["event"] == "begin" for event in self.milestones()) or math.inf
        for event in self.events():
            left -= event["event"] == "begin"
            if left <= 0:
                yield event

    def start_times_s(self) -> tuple[float, float] | None:
        """Return when it was last begun, and when begun or asked for; None if not known.

        Both in s since 1970.
        """
        try:
            with self.file.open("rb") as file:
                lines = (line for line in file if _is_intact(line))
                events = [match.groups() for line in lines if (match := _BEGUN.match(line))]
        except OSError:
            return None
        begun = [float(time) for event, time in events if event == b"begin"]
        return ((begun or [float(events[0][1])])[-1], float(events[-1][1])) if events else None

    def is_complete(self) -> bool:
        """Tell whether the last attempt came to its end."""
        events = [e["event"] for e in self.milestones() if e["event"] in ("begin", "end")]
        return bool(events) and events[-1] == "end"

    def open_attempt(self) -> Event | None:
        """Return the ``begin`` event of the attempt that a kill left open, None if there is none.

        Of several in a row (killed again and again) the first: what was cached then, was cached
        before the attempt.
        """
        first: Event | None = None
        for event in self.milestones():
            if event["event"] == "begin":
                first = first or event
            elif event["event"] == "end":
                first = None
        return first

    def lease(self) -> Lease:
        """Return what the process holds that runs the sweep."""
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
        """Tell whether another sweep runs in this place, as far as can be seen at once."""
        there = storage.for_results(self._results)
        beats = {
            name.partition(".lease/")[0]: at_s
            for name, at_s in there.times_s("journal/").items()
            if ".lease/" in name
        }
        mine_s = beats.pop(f"journal/{self._sweep}", 0.0)
        recent = [name for name, at_s in beats.items() if at_s > mine_s - EXPIRES_S]
        return any(Lease(there, name).may_be_taken() for name in recent)

    def is_running(self) -> bool:
        """Tell whether a process holds the sweep."""
        return self.lease().is_taken()


def with_crc(line: str) -> str:
    """Add its CRC-32 to a line, the text of a JSON object."""
    return f'{line[:-1]}, "crc": "{zlib.crc32(line[:-1].encode()):08x}"}}'


def _is_intact(line: bytes) -> bool:
    """Tell whether a line ends with the CRC-32 of what stands before."""
    begin = len(line) - _CRC_BYTES + (not line.endswith(b"\n"))
    match = _CRC.fullmatch(line, max(0, begin))
    return match is not None and zlib.crc32(line[:begin]) == int(match[1], 16)


def _is_event(line: Any) -> bool:
    """Tell whether a line says what and when, and a ``begin`` what was cached."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("event"), str)
        and isinstance(line.get("time"), int | float)
        and (line["event"] != "begin" or isinstance(line.get("cached"), list))
    )
