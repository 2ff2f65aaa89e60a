"""Ctrl-C and SIGTERM on the command line: one line and exit code 130, at any moment.

A kill costs nothing but the cells in flight, so an interrupt mostly is one: the process says its
line and ends at once. An exception could be raised anywhere instead, in a module's import or in a
callback out of compiled code, where it is lost or printed as a traceback. Only inside `unwinding`
is it one, a KeyboardInterrupt, so that what came is counted and what was started is stopped.

Nothing here is at work before `begin`, which only ``__main__`` modules call.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

INTERRUPTED = 130
LINE = "interrupted"
AGAIN_S = 1.0
"""A second signal within so long is the same wish: `timeout` sends two, to a process and group."""
_SOON_S = 0.01
PATIENCE_S = 20.0
"""Limit of unwinding; then the process ends all the same."""
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"

_now = SimpleNamespace(
    is_begun=False,
    line=LINE,
    unwinds=False,
    holds=0,
    is_pending=False,
    first_s=None,
    has_said=False,
    is_saying=False,
    half_written={},  # by path; a dict, as adding to one and taking from it is one step
)


def install(*signals: signal.Signals) -> None:
    """Take over these signals, but for one that is ignored, as in a background job's shell."""
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupted)
    if not _now.is_begun:
        _now.is_begun = True
        sys.unraisablehook = _raised_in_vain


def finish(code: int, *signals: signal.Signals) -> NoReturn:
    """End the process: what was to be done is done, and a signal no longer changes that."""
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if code == INTERRUPTED:
        os._exit(code)  # whatever was cut off could print a traceback as it is taken down
    sys.exit(code)


def set_line(text: str) -> None:
    """Set the line that an interrupt prints from now on."""
    _now.line = text


def print_line(text: str = "") -> None:
    """Print the line of an interrupt, once."""
    if not _now.has_said:
        _now.is_saying = True
        _now.has_said = _now.is_begun  # else each command of a process prints its own
        with contextlib.suppress(OSError, ValueError):
            print(text or _now.line, file=sys.stderr, flush=True)
        _now.is_saying = False


@contextlib.contextmanager
def delete_on_interrupt(path: str) -> Iterator[None]:
    """Delete a file that is being written where an interrupt ends the process."""
    _now.half_written[path] = None
    try:
        yield
    finally:
        _now.half_written.pop(path, None)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Let an interrupt raise KeyboardInterrupt inside."""
    before, _now.unwinds = _now.unwinds, True
    try:
        yield
    finally:
        _now.unwinds = before


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Let an interrupt wait for the end of what must not be cut in two."""
    _now.holds += 1
    try:
        yield
    finally:
        _now.holds -= 1
    if _now.is_pending and not _now.holds:
        _now.is_pending = False
        _stop()


def _interrupted(*_: object) -> None:
    if _now.first_s is not None:
        if time.monotonic() - _now.first_s > AGAIN_S:
            _end()
    elif _now.holds or _now.unwinds:
        _now.first_s = time.monotonic()
        _thread.start_new_thread(_end_later, ())  # a Thread's start holds a lock, perhaps just now
        if _now.holds:
            _now.is_pending = True
        else:
            _stop()
    else:
        _end()


def _stop() -> None:
    if _now.unwinds:
        raise KeyboardInterrupt
    _end()


def _end_later() -> None:
    time.sleep(PATIENCE_S)
    _end()
    os._exit(INTERRUPTED)


def _end() -> None:
    """Print the line without Python's buffers, which may be locked, and end.

    A signal that interrupts the printing of the line changes nothing: the process ends after it.
    """
    if _now.is_saying:
        return
    if not _now.has_said:
        _now.is_saying = _now.has_said = True
        with contextlib.suppress(OSError):
            start = _SHOW_CURSOR if os.isatty(2) else b""
            os.write(2, start + f"{_now.line}\n".encode())
    for path in list(_now.half_written):
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib may be half imported
    os._exit(INTERRUPTED)


def _raised_in_vain(raised: Any) -> None:
    """Raise an interrupt anew that came where no exception can pass, such as in a destructor."""
    if raised.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(raised)
    else:
        _now.first_s = None
        _thread.start_new_thread(_interrupt_soon, ())  # not here: nothing can be raised here either


def _interrupt_soon() -> None:
    time.sleep(_SOON_S)
    _thread.interrupt_main()
