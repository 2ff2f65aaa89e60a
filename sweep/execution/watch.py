"""Watchdog of running cells: reports long ones, ends those over the limit.

A worker has a second thread that checks the clock. It can end the process whatever the cell does,
and reports the cell first. In the driver's own process an alarm does what it can: it ends Python
code at once, and compiled code when that returns.
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
"""Run time from which a cell is reported as long."""
GRACE_S = 60.0
"""After the limit; then a cell that blocks other threads is ended without a report."""
_MAX_STACK_CHARS = 4000

Entry = dict[str, Any]
"""A cell's ``key``, its run time ``seconds``, a flag ``over`` (the limit), and its ``stack``."""


class CellTimeoutError(SimError):
    """A cell ran for longer than ``cell_timeout_s``."""


def timeout_message(limit_s: float) -> str:
    """Describe the outcome of a cell that ran over the limit."""
    return (
        f"ran for longer than {limit_s:g} s and was ended; cell_timeout_s=SECONDS raises the "
        "limit, cell_timeout_s=null removes it"
    )


@dataclass(frozen=True)
class Watched:
    """Settings of the watchdog for the cells of one task."""

    name: str  # of the task's entry
    limit_s: float | None
    post: Callable[[str, Mapping[str, Any] | None], None]  # None deletes the entry


@contextlib.contextmanager
def watching(watched: Watched | None) -> Iterator[Callable[[str | None], None]]:
    """Watch cells; yield a function to call with a cell's key, or None when none runs."""
    if watched is None:
        yield lambda _: None
        return
    watch = _WatchThread(watched)
    watch.start()
    try:
        yield watch.begin
    finally:
        watch.end()


class _WatchThread(threading.Thread):
    """Thread that checks the clock while another thread runs cells."""

    def __init__(self, watched: Watched) -> None:
        super().__init__(daemon=True)
        self._watched = watched
        self._cells = threading.get_ident()
        self._current: tuple[str | None, float] = (None, time.monotonic())
        self._has_posted = False
        self._ended = threading.Event()

    def begin(self, key: str | None) -> None:
        """Note that a cell begins, or that none runs."""
        self._current = (key, time.monotonic())
        if key is None:
            faulthandler.cancel_dump_traceback_later()
        elif self._watched.limit_s is not None:
            faulthandler.dump_traceback_later(self._watched.limit_s + GRACE_S, exit=True, file=2)

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._watched.limit_s is not None:
            faulthandler.cancel_dump_traceback_later()

    def run(self) -> None:
        """Post the cell that runs for long, and end the process at the limit."""
        limit_s = self._watched.limit_s
        while not self._ended.wait(self._wait_s()):
            key, begin_s = self._current
            if key is None:
                if self._has_posted:
                    self._post(None)
                continue
            seconds = time.monotonic() - begin_s
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

    def _wait_s(self) -> float:
        (key, begin_s), limit_s = self._current, self._watched.limit_s
        if limit_s is None:
            return LONG_S
        remaining_s = limit_s if key is None else begin_s + limit_s - time.monotonic()
        return min(LONG_S, max(0.02, remaining_s))

    def _post(self, entry: Entry | None) -> None:
        self._has_posted = entry is not None
        with contextlib.suppress(Exception):  # the watchdog works without reports, too
            self._watched.post(self._watched.name, entry)

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._cells)
        return "".join(traceback.format_stack(frame))[-_MAX_STACK_CHARS:]


@contextlib.contextmanager
def alarm(limit_s: float | None) -> Iterator[None]:
    """Raise CellTimeoutError in code that runs here for longer, as soon as Python executes.

    It does nothing outside the main thread, nor where other code has set an alarm.
    """
    is_possible = threading.current_thread() is threading.main_thread() and hasattr(
        signal, "setitimer"
    )
    if limit_s is None or not is_possible or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def ring(*_: object) -> None:
        raise CellTimeoutError(timeout_message(limit_s))

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
