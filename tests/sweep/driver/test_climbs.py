"""Calls climb from a lower room of sweep to a higher one a few times alone: into plug-ins.

An iterator that is handed to a lower room counts as data.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import sweep
from sweep import driver
from sweep.driver import run_sweep
from tests.sweep.small import Command

PACKAGE = Path(sweep.__file__).parent
WORDS = ("policy=fifo,sjf", "capacity=0.5,1.0", "seed=0,1", "baseline=fifo")


def room_ranks() -> dict[str, int]:
    """Read the order of the rooms from the contract of import-linter, the highest first."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["name"].endswith("rooms of sweep"))
    rooms = [[name.strip().removeprefix("sweep.") for name in row.split("|")] for row in layers]
    return {room: rank for rank, row in enumerate(rooms) for room in row}


RANKS = room_ranks()


def room(code: CodeType) -> str | None:
    path = Path(code.co_filename)
    name = path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else ""
    return name if name in RANKS else None


@contextmanager
def climbs() -> Iterator[list[str]]:
    """Collect the calls from a room to one above it."""
    listed: list[str] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        callee = room(code) if event == "call" else None
        caller = frame.f_back
        while callee and caller is not None and room(caller.f_code) is None:
            caller = caller.f_back
        is_data = code.co_name == "<module>" or code.co_flags & inspect.CO_GENERATOR
        if not callee or caller is None or is_data or "Lazy" in caller.f_code.co_qualname:
            return
        if RANKS[callee] < RANKS[room(caller.f_code) or callee]:
            listed.append(f"{caller.f_code.co_qualname} calls {code.co_qualname} of {callee}")

    sys.setprofile(profile)
    try:
        yield listed
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    "words",
    [WORDS, ("policy=fifo", "capacity=interval(0.3,1.5)", "target.metric=jct_mean_s",
             "target.at_most=60")],
    ids=["grid", "target"],
)  # fmt: skip
def test_a_request_climbs_six_times_at_most(command: Command, words: tuple[str, ...]) -> None:
    known = command.words(*words)
    driver.make_request(known)  # imports
    with climbs() as listed:
        driver.make_request(known)
    assert len(listed) <= 6, listed


def test_writing_a_folder_climbs_five_times_at_most(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    write: Callable[..., Any] = run_sweep.write_folder

    def watched(*arguments: Any) -> Any:
        with climbs() as listed:
            seen.append(listed)
            return write(*arguments)

    monkeypatch.setattr(run_sweep, "write_folder", watched)
    assert command(*WORDS).code == 0
    (listed,) = seen
    assert len(listed) <= 5, listed
