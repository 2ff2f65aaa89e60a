"""Ctrl-C in a separate process, at each kind of moment."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from sim.base import interrupt
from tests.e2e.conftest import hear_interrupts

HEAD = """
import os, signal, sys, time
from sim.base import interrupt

def press(n=1):
    for _ in range(n):
        signal.raise_signal(signal.SIGINT)

interrupt.install(signal.SIGINT, signal.SIGTERM)
"""


def ends(code: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=hear_interrupts,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "press()",
        "press(3)",
        "signal.raise_signal(signal.SIGTERM)",
        "try: press()\nexcept BaseException: print('swallowed')",
        "class Odd:\n    def __del__(self): press()\nOdd()",
        "with interrupt.deferred(): press()",
    ],
)
def test_it_ends_at_once_with_a_line(code: str) -> None:
    assert ends(f"{code}\nprint('went on')") == (130, "", "interrupted\n")


def test_the_line_names_the_current_activity() -> None:
    assert ends("interrupt.set_line('interrupted: half')\npress()")[2] == "interrupted: half\n"


CAUGHT = """
try:
    with interrupt.unwinding():
        {code}
    print("went on")
except KeyboardInterrupt as stopped:
    print("caught")
    {after}
    interrupt.print_line(str(stopped))
    interrupt.finish(interrupt.INTERRUPTED, signal.SIGINT)
"""


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("press()", "pass"),
        ("press(3)", "pass"),  # within a moment: the same wish
        ("press()", "press()"),
        ("signal.raise_signal(signal.SIGTERM)", "press()"),
    ],
)
def test_where_it_unwinds_it_is_an_exception(code: str, after: str) -> None:
    assert ends(CAUGHT.format(code=code, after=after)) == (130, "caught\n", "interrupted\n")


def test_a_deferred_interrupt_waits_for_the_end_of_the_context() -> None:
    code = "with interrupt.deferred(): press(); print('whole')"
    assert ends(CAUGHT.format(code=code, after="pass"))[1] == "whole\ncaught\n"


def test_one_that_is_lost_in_a_destructor_comes_again() -> None:
    code = "Odd()\n        while True: pass"
    odd = "class Odd:\n    def __del__(self): press()\n"
    assert ends(odd + CAUGHT.format(code=code, after="pass")) == (130, "caught\n", "interrupted\n")


def test_a_later_interrupt_ends_a_process_that_hangs() -> None:
    code = CAUGHT.format(code="press()", after="press_later()")
    late = "def press_later():\n    interrupt.time.monotonic = lambda: 1e9\n    press()\n"
    assert ends(late + code) == (130, "caught\n", "interrupted\n")


def test_one_that_comes_while_the_line_is_printed_changes_nothing() -> None:
    code = "def isatty(fd): press()\nos.isatty = isatty\n"
    assert ends(f"{code}press()") == (130, "", "interrupted\n")
    err = "class Err:\n    def __getattr__(self, name): return getattr(sys.__stderr__, name)\n"
    write = "    def write(self, text): press_later(); return sys.__stderr__.write(text)\n"
    late = "def press_later():\n    interrupt.time.monotonic = lambda: 1e9\n    press()\n"
    steps = CAUGHT.format(code="press()", after="sys.stderr = Err()")
    assert ends(late + err + write + steps) == (130, "caught\n", "interrupted\n")


def test_unwinding_has_a_time_limit() -> None:
    code = CAUGHT.format(code="press()", after="time.sleep(600)")
    assert ends("interrupt.UNWIND_LIMIT_S = 0.1\n" + code) == (130, "caught\n", "interrupted\n")


def test_a_half_written_file_goes(tmp_path: object) -> None:
    code = (
        "from pathlib import Path\nfrom sim.base import files\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "with files.atomic_write(folder / 'kept') as file: file.write(b'old')\n"
        "with files.atomic_write(folder / 'kept') as file:\n"
        "    file.write(b'new')\n"
        "    print(len(list(folder.iterdir())), flush=True)\n"
        "    press()\n"
    )
    assert ends(code) == (130, "2\n", "interrupted\n")
    (left,) = tmp_path.iterdir()  # type: ignore[attr-defined]
    assert left.read_bytes() == b"old"


def test_once_all_is_done_it_changes_nothing() -> None:
    code = (
        "import atexit\natexit.register(press)\nprint('done')\ninterrupt.finish(1, signal.SIGINT)"
    )
    assert ends(code) == (1, "done\n", "")


def test_an_ignored_signal_stays_ignored() -> None:
    code = (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\ninterrupt.install(signal.SIGINT)\n"
        "press()\nprint('went on')"
    )
    assert ends(code) == (0, "went on\n", "")


def test_without_a_command_line_nothing_is_taken_over(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt.unwinding():
        raise KeyboardInterrupt
    for _ in range(2):
        interrupt.print_line("interrupted: 1 of 2")
    assert capsys.readouterr().err == 2 * "interrupted: 1 of 2\n"
    assert signal.getsignal(signal.SIGINT) is not interrupt._handle
