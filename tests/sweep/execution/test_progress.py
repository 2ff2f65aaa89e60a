from __future__ import annotations

import io

import pytest
from rich.console import Console

from sweep.execution import progress
from sweep.execution.progress import Progress


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=terminal, width=100), file


def test_a_plain_line_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    where, file = console()
    with Progress(where, 3) as shown:
        shown.cells(1, 0)
        shown.cells(1, 1)
        shown.cells(1, 0)
    assert file.getvalue() == "3 of 3 cells done, 1 failed, 0 s\n"


def test_a_plain_line_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    where, file = console()
    with Progress(where, 4, lambda: 3.6 if clock[0] < 19 else None) as shown:
        for _ in range(15):
            clock[0] += 1.0
            shown.beat("compiling" if clock[0] < 12 else "")
        shown.cells(1, 0)
        shown.cells(1, 0)
        for _ in range(2):
            clock[0] += 3.0
            shown.beat()
        shown.cells(2, 0)
    assert file.getvalue().splitlines() == [
        "compiling, 5 s",  # and not again: nothing is new
        "starting, 12 s",
        "2 of 4 cells done, 18 s, about 4 s left",
        "4 of 4 cells done, 21 s",  # where nobody can tell it says nothing
    ]


def test_the_last_line_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    where, file = console()
    with Progress(where, 1) as shown:
        clock[0] += 37.0
        shown.cells(1, 1)
    assert file.getvalue() == "1 of 1 cells done, 1 failed, 37 s\n"


def test_what_happened_and_what_runs_for_long_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    where, file = console()
    with Progress(where, 3, lambda: 16.0) as shown:
        shown.cells(1, 0)
        shown.print_line("a worker died\x1b[2J")
        for _ in range(4):
            clock[0] += 4.0
            shown.beat("still running: las for 4 min")
        shown.cells(1, 0)
        shown.cells(1, 0)
    assert file.getvalue().splitlines() == [
        "a worker died\\x1b[2J",
        "1 of 3 cells done, 8 s, about 16 s left; still running: las for 4 min",
        "2 of 3 cells done, 16 s, about 16 s left",
        "3 of 3 cells done, 16 s",
    ]


def test_nothing_is_said_of_nothing() -> None:
    where, file = console()
    with Progress(where, 3):
        pass
    assert file.getvalue() == ""


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    where, file = console(terminal=True)
    with Progress(where, 2, lambda: 30.0) as shown:
        shown.beat("compiling")
        assert shown._status() == "compiling"
        shown.cells(1, 1)
        clock[0] += 2.0
        shown.beat()
    assert "1 failed" in file.getvalue()
    assert "about 30 s left" in file.getvalue()
    assert "1/2" in file.getvalue()
