"""Cells that run for too long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from sweep.execution import watch
from sweep.execution.watch import CellTimeoutError, Watched, alarm, watching
from tests.sweep.small import Command, fake_engine, fake_simulate


def until(true: Any) -> None:
    end = time.monotonic() + 20.0
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    assert true()


def test_an_alarm_ends_what_python_does() -> None:
    before = signal.getsignal(signal.SIGALRM)
    said = r"longer than 0\.05 s .* cell_timeout_s=SECONDS"
    with pytest.raises(CellTimeoutError, match=said), alarm(0.05):
        until(lambda: False)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with alarm(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_somebody_elses_alarm_stays() -> None:
    signal.setitimer(signal.ITIMER_REAL, 60.0)
    try:
        with alarm(0.01):
            time.sleep(0.05)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def test_another_thread_can_set_none() -> None:
    done = []

    def run() -> None:
        with alarm(0.01):
            done.append(signal.getitimer(signal.ITIMER_REAL))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [(0.0, 0.0)]


def test_an_inline_cell_that_runs_on_is_a_failed_row(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
        while seed == 1:
            time.sleep(0.001)
        return fake_simulate(workload, cluster, policy, seed=seed)

    fake_engine(monkeypatch, slow)
    ran = command("policy=fifo", "seed=0,1,2", "cell_timeout_s=0.2")
    assert ran.code == 1
    assert [row["status"] for row in ran.rows] == ["done", "failed", "done"]
    failed = ran.rows[1]
    assert failed["error_type"] == "CellTimeoutError"
    assert failed["error_message"].startswith("ran for longer than 0.2 s and was ended")
    assert "launcher=inline" in failed["reproduce"]
    fake_engine(monkeypatch)
    again = command("policy=fifo", "seed=0,1,2", "cell_timeout_s=null")
    assert "3 cells, 2 cached, 1 to run" in again.err  # how long it may run is in no key


class Board:
    """What was posted."""

    def __init__(self) -> None:
        self.posts: list[Mapping[str, Any] | None] = []

    def __call__(self, name: str, entry: Mapping[str, Any] | None) -> None:
        assert name == "here"
        self.posts.append(entry)


def test_what_runs_for_long_is_posted_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LONG_S", 0.05)
    board = Board()
    with watching(Watched("here", None, board)) as begin:
        begin("slow")
        until(lambda: board.posts)
        until(lambda: begin("quick") or None in board.posts)  # begun anew, so never long
    first = board.posts[0]
    assert first is not None
    assert (first["key"], first["over"]) == ("slow", False)
    assert first["seconds"] >= 0.05


def test_what_ran_for_long_is_taken_away_with_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LONG_S", 0.05)
    board = Board()
    with watching(Watched("here", None, board)) as begin:
        begin("slow")
        until(lambda: board.posts)
    until(lambda: board.posts[-1] is None)


def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let only the watching thread end where the process would; note with which code."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        threading.current_thread()._over.set()  # type: ignore[attr-defined]

    monkeypatch.setattr(os, "_exit", end)
    return codes


def test_the_limit_ends_the_process_and_says_what_it_was_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = ends(monkeypatch)
    board = Board()
    with watching(Watched("here", 1.0, board)) as begin:
        begin("first")
        time.sleep(0.6)
        begin("second")
        until(lambda: codes)
    entry = board.posts[0]
    assert entry is not None
    assert (entry["key"], entry["over"], codes) == ("second", True, [1])
    assert 1.0 <= entry["seconds"] < 10.0
    assert "in until" in entry["stack"]


def test_while_no_cell_runs_nothing_is_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ends(monkeypatch)
    monkeypatch.setattr(watch, "LONG_S", 0.05)
    board = Board()
    with watching(Watched("here", 3.0, board)) as begin:
        begin("cell")
        until(lambda: board.posts)
        begin(None)
        until(lambda: None in board.posts)
        time.sleep(3.1)
    assert codes == []
    assert not any(post and post["over"] for post in board.posts)


def test_one_that_can_not_be_told_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = ends(monkeypatch)

    def broken(name: str, entry: Mapping[str, Any] | None) -> None:
        raise OSError("nobody listens")

    with watching(Watched("here", 0.05, broken)) as begin:
        begin("cell")
        until(lambda: codes)


STUCK = """
import time
from sweep.execution import watch

watch.GRACE_S = 0.2
post = lambda name, entry: print(entry["key"], flush=True)
with watch.watching(watch.Watched("n", 0.2, post)) as begin:
    begin("cell")
    {}
"""


@pytest.mark.parametrize(
    ("code", "out", "err"),
    [
        ("time.sleep(600)", "cell\n", ""),
        ("sum(range(10**12))", "", "Timeout (0:00:00"),  # lets no other thread run
    ],
)
def test_a_process_ends_whatever_it_is_at(code: str, out: str, err: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK.format(code)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, out)
    assert err in done.stderr
