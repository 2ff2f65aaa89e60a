"""Ctrl-C and SIGTERM on the command line: one line and exit code 130, at any moment.

A kill costs only the cells in flight, so an interrupt usually acts as one: the process prints its
line and ends at once. An exception could be raised anywhere instead, in a module's import or in a
callback from compiled code, where it is lost or printed as a traceback. Only inside `unwinding`
does it raise KeyboardInterrupt, so that finished cells are counted and started processes stopped.

Nothing here is active before `install`, which only ``__main__`` modules call.
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
REPEAT_S = 1.0
"""A second signal within this time is the same request: `timeout` signals process and group."""
_RETRY_S = 0.01
UNWIND_LIMIT_S = 20.0
"""Time limit of unwinding; then the process ends all the same."""
_SHOW_CURSOR = b"\r\x1b[K\x1b[?25h"

_state = SimpleNamespace(
    is_installed=False,
    line=LINE,
    unwinds=False,
    n_deferred=0,
    is_pending=False,
    first_s=None,
    has_printed=False,
    is_printing=False,
    half_written={},  # by path; a dict, as adding to and removing from one are atomic
)


def install(*signals: signal.Signals) -> None:
    """Handle these signals, except an ignored one, as in a background job's shell."""
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)
    if not _state.is_installed:
        _state.is_installed = True
        sys.unraisablehook = _reraise


def finish(code: int, *signals: signal.Signals) -> NoReturn:
    """End the process; its work is done, and a signal no longer changes the exit code."""
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if code == INTERRUPTED:
        os._exit(code)  # an interrupted object could print a traceback as it is finalized
    sys.exit(code)


def set_line(text: str) -> None:
    """Set the line that an interrupt prints."""
    _state.line = text


def print_line(text: str = "") -> None:
    """Print the line of an interrupt, once."""
    if not _state.has_printed:
        _state.is_printing = True
        _state.has_printed = _state.is_installed  # else each command of a process prints its own
        with contextlib.suppress(OSError, ValueError):
            print(text or _state.line, file=sys.stderr, flush=True)
        _state.is_printing = False


@contextlib.contextmanager
def delete_on_interrupt(path: str) -> Iterator[None]:
    """Delete this half-written file if an interrupt ends the process inside this context."""
    _state.half_written[path] = None
    try:
        yield
    finally:
        _state.half_written.pop(path, None)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Raise KeyboardInterrupt for an interrupt inside this context."""
    before, _state.unwinds = _state.unwinds, True
    try:
        yield
    finally:
        _state.unwinds = before


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Defer an interrupt to the end of this context, which must not be cut in two."""
    _state.n_deferred += 1
    try:
        yield
    finally:
        _state.n_deferred -= 1
    if _state.is_pending and not _state.n_deferred:
        _state.is_pending = False
        _stop()


def _handle(*_: object) -> None:
    if _state.first_s is not None:
        if time.monotonic() - _state.first_s > REPEAT_S:
            _end()
    elif _state.n_deferred or _state.unwinds:
        _state.first_s = time.monotonic()
        _thread.start_new_thread(_end_later, ())  # a Thread's start holds a lock, perhaps just now
        if _state.n_deferred:
            _state.is_pending = True
        else:
            _stop()
    else:
        _end()


def _stop() -> None:
    if _state.unwinds:
        raise KeyboardInterrupt
    _end()


def _end_later() -> None:
    time.sleep(UNWIND_LIMIT_S)
    _end()
    os._exit(INTERRUPTED)


def _end() -> None:
    """Print the line without Python's buffers, which may be locked, and end the process.

    A signal that interrupts the printing of the line changes nothing: the process ends after it.
    """
    if _state.is_printing:
        return
    if not _state.has_printed:
        _state.is_printing = _state.has_printed = True
        with contextlib.suppress(OSError):
            start = _SHOW_CURSOR if os.isatty(2) else b""
            os.write(2, start + f"{_state.line}\n".encode())
    for path in list(_state.half_written):
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - pathlib may be half imported
    os._exit(INTERRUPTED)


def _reraise(unraisable: Any) -> None:
    """Repeat an interrupt that came where no exception can propagate, such as in a destructor."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
    else:
        _state.first_s = None
        _thread.start_new_thread(_interrupt_soon, ())  # not here: nothing can be raised here either


def _interrupt_soon() -> None:
    time.sleep(_RETRY_S)
    _thread.interrupt_main()
