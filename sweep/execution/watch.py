"""Cells that run for too long: said while they do, and ended at a limit.

A worker has a second thread that looks at the clock. It can end the process whatever the cell is
at, and says before which cell it was. In the driver's own process an alarm does what it can: it
ends what runs in Python, and compiled code when that returns.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sim.base.errors import SimError

LONG_S = 30.0
"""From when on a cell is said to run for long."""
GRACE_S = 60.0
"""After the limit, a cell that lets no other thread run is ended by force, and nothing is said."""
_STACK = 4000

Entry = dict[str, Any]
"""A cell's ``key``, for how many ``seconds`` it has run, if it is ``over``, and its ``stack``."""


class CellTimeoutError(SimError):
    """A cell ran for longer than ``cell_timeout_s``."""


def too_long(limit_s: float) -> str:
    """Word what became of such a cell."""
    return (
        f"ran for longer than {limit_s:g} s and was ended; cell_timeout_s=SECONDS allows more, "
        "null any time"
    )


@dataclass(frozen=True)
class Watched:
    """How the cells of a task are watched."""

    name: str  # under which the task's entry is posted
    limit_s: float | None
    post: Callable[[str, Mapping[str, Any] | None], None]  # None takes the entry away


@contextlib.contextmanager
def watching(watched: Watched | None) -> Iterator[Callable[[str | None], None]]:
    """Watch cells; give what to call with a cell's key as it begins, with None when none runs."""
    if watched is None:
        yield lambda _: None
        return
    watch = _Watch(watched)
    watch.start()
    try:
        yield watch.begin
    finally:
        watch.end()


class _Watch(threading.Thread):
    """Looks at the clock while another thread runs cells."""

    def __init__(self, watched: Watched) -> None:
        super().__init__(daemon=True)
        self._watched = watched
        self._cells = threading.get_ident()
        self._now: tuple[str | None, float] = (None, time.monotonic())
        self._has_posted = False
        self._over = threading.Event()

    def begin(self, key: str | None) -> None:
        """Note that a cell begins, or that none does."""
        self._now = (key, time.monotonic())
        if key is None:
            faulthandler.cancel_dump_traceback_later()
        elif self._watched.limit_s is not None:
            faulthandler.dump_traceback_later(self._watched.limit_s + GRACE_S, exit=True, file=2)

    def end(self) -> None:
        """Stop watching."""
        self._over.set()
        if self._watched.limit_s is not None:
            faulthandler.cancel_dump_traceback_later()

    def run(self) -> None:
        """Post what runs for long, and end the process at the limit."""
        limit_s = self._watched.limit_s
        while not self._over.wait(self._until_next()):
            key, began = self._now
            if key is None:
                if self._has_posted:
                    self._post(None)
                continue
            seconds = time.monotonic() - began
            entry: Entry = {"key": key, "seconds": seconds, "over": False, "stack": ""}
            if limit_s is not None and seconds >= limit_s:
                self._post({**entry, "over": True, "stack": self._stack()})
                os._exit(1)
            if seconds >= LONG_S:
                self._post(entry)
            elif self._has_posted:
                self._post(None)
        if self._has_posted:
            self._post(None)

    def _until_next(self) -> float:
        (key, began), limit_s = self._now, self._watched.limit_s
        if limit_s is None:
            return LONG_S
        left_s = limit_s if key is None else began + limit_s - time.monotonic()
        return min(LONG_S, max(0.02, left_s))

    def _post(self, entry: Entry | None) -> None:
        self._has_posted = entry is not None
        with contextlib.suppress(Exception):  # nobody to tell: what is to be done is done still
            self._watched.post(self._watched.name, entry)

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._cells)
        return "".join(traceback.format_stack(frame))[-_STACK:]


@contextlib.contextmanager
def alarm(limit_s: float | None) -> Iterator[None]:
    """Raise CellTimeoutError in what runs here for longer, as soon as Python is at work.

    Nothing is done outside the main thread, nor where somebody else has set an alarm.
    """
    can = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if limit_s is None or not can or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def ring(*_: object) -> None:
        raise CellTimeoutError(too_long(limit_s))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
