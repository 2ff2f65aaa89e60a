"""What happened when: one line an event, beside the results and never part of them."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

from sweep.store import locks

Event = dict[str, Any]


class Journal:
    """The events of one sweep, ``<results>/journal/<sweep id>.jsonl``.

    A line is written at once, so a kill loses at most the line being written, which readers skip.
    An *attempt* begins with a ``begin`` event and ends with ``end``; a kill leaves it open, and
    the next run goes on with it.
    """

    def __init__(self, results: Path, sweep: str) -> None:
        self.file = results / "journal" / f"{sweep}.jsonl"
        self._is_clean = False

    def append(self, event: str, **fields: Any) -> None:
        """Add an event, with the time of day and the process."""
        line = {"event": event, "time": round(time.time(), 3), "pid": os.getpid(), **fields}
        text = json.dumps(line, ensure_ascii=False) + "\n"
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("ab+", buffering=0) as file:
            if not self._is_clean:
                text = self._clean(file) + text
            content = text.encode()
            if file.write(content) != len(content):  # the disk took a part: it is full
                self._is_clean = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.file))

    def _clean(self, file: BinaryIO) -> str:
        """End the line that a kill may have cut off."""
        self._is_clean = True
        end = file.seek(0, io.SEEK_END)
        file.seek(max(0, end - 1))
        return "\n" if end and file.read(1) != b"\n" else ""

    def events(self) -> list[Event]:
        """All whole events, oldest first."""
        try:
            lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        events = []
        for line in lines:
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if _is_event(event):
                    events.append(event)
        return events

    def is_complete(self) -> bool:
        """Tell whether the last attempt came to its end."""
        events = [e["event"] for e in self.events() if e["event"] in ("begin", "end")]
        return bool(events) and events[-1] == "end"

    def open_attempt(self) -> Event | None:
        """Return the ``begin`` event of the attempt that a kill left open, None if there is none.

        Of several in a row (killed again and again) the first: what was cached then, was cached
        before the attempt.
        """
        first: Event | None = None
        for event in self.events():
            if event["event"] == "begin":
                first = first or event
            elif event["event"] == "end":
                first = None
        return first

    def locked(self, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Hold the sweep for this process; call `on_wait` and wait if another has it."""
        return locks.exclusive(self._lock, on_wait)

    def is_running(self) -> bool:
        """Tell whether a process holds the sweep."""
        return locks.is_held(self._lock)

    @property
    def _lock(self) -> Path:
        return self.file.with_suffix(".lock")


def _is_event(line: Any) -> bool:
    """Tell whether a line says what and when, and a ``begin`` what was cached."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("event"), str)
        and isinstance(line.get("time"), int | float)
        and (line["event"] != "begin" or isinstance(line.get("cached"), list))
    )
