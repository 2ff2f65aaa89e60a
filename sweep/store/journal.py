"""What happened when: one line an event, beside the results and never part of them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

Event = dict[str, Any]

_BEGUN = re.compile(rb'^\{"event": "(begin|asked)", "time": ([\d.]+)', re.MULTILINE)


class Journal:
    """The events of one sweep, ``<results>/journal/<sweep id>.jsonl``.

    A line is written at once, so a kill loses at most the line being written, which readers skip.
    An *attempt* begins with a ``begin`` event and ends with ``end``; a kill leaves it open, and
    the next run goes on with it. ``asked`` says that a sweep was asked for again and every cell of
    it was cached.
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

    def last_attempt(self) -> list[Event]:
        """Return the last ``begin`` and what came after it; nothing if there is none."""
        events = self.events()
        begins = [at for at, event in enumerate(events) if event["event"] == "begin"]
        return events[begins[-1] :] if begins else []

    def begun_s(self) -> tuple[float, float] | None:
        """Return when it was last begun, and when begun or asked for; None if not known.

        Both in s since 1970.
        """
        try:
            found = _BEGUN.findall(self.file.read_bytes())
        except OSError:
            return None
        begun = [float(time) for event, time in found if event == b"begin"]
        return ((begun or [float(found[0][1])])[-1], float(found[-1][1])) if found else None

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
        return exclusive(self._lock, on_wait)

    def is_running(self) -> bool:
        """Tell whether a process holds the sweep."""
        return _is_held(self._lock)

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


@contextlib.contextmanager
def exclusive(file: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock; call `on_wait` and wait if another process has it.

    The operating system takes it back when its holder dies.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _is_held(file: Path) -> bool:
    """Tell whether a process holds the lock now."""
    try:
        with file.open("rb") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
