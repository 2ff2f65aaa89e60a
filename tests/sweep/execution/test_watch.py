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
    """Wait for what another thread does, however slow the machine; 900 s end one that hangs."""
    end = time.monotonic() + 900.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_alarm_ends_what_python_does() -> None:
    before = signal.getsignal(signal.SIGALRM)
    message = r"longer than 0\.05 s .* cell_timeout_s=SECONDS"
    with pytest.raises(CellTimeoutError, match=message), alarm(0.05):
        until(lambda: False)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with alarm(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_somebody_elses_alarm_stays() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1e6)
    try:
        with alarm(100.0):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1e5
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 1e5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def test_another_thread_can_set_none() -> None:
    done = []

    def run() -> None:
        with alarm(100.0):
            done.append(signal.getitimer(signal.ITIMER_REAL))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [(0.0, 0.0)]


def test_an_inline_cell_that_runs_on_is_a_failed_row(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(workload: Any, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
        if seed == 1:
            assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600.0
            signal.raise_signal(signal.SIGALRM)  # what it does then
        return fake_simulate(workload, cluster, policy, seed=seed)

    fake_engine(monkeypatch, slow)
    ran = command("policy=fifo", "seed=0,1,2", "cell_timeout_s=600")
    assert ran.code == 1
    assert [row["status"] for row in ran.rows] == ["done", "failed", "done"]
    failed = ran.rows[1]
    assert failed["error_type"] == "CellTimeoutError"
    assert failed["error_message"].startswith("ran for longer than 600 s and was ended")
    assert "launcher=inline" in failed["reproduce"]
    fake_engine(monkeypatch)
    again = command("policy=fifo", "seed=0,1,2", "cell_timeout_s=null")
    assert "3 cells, 2 cached, 1 to run" in again.err  # how long it may run is in no key


class Board:
    """Posted entries."""

    def __init__(self) -> None:
        self.posts: list[Mapping[str, Any] | None] = []

    def __call__(self, name: str, entry: Mapping[str, Any] | None) -> None:
        assert name == "here"
        self.posts.append(entry)


class Clock:
    """Clock of the watching thread, and the number of its waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.n_waits = 0.0, 0
        until_next = watch._WatchThread._wait_s

        def counted(this: Any) -> float:
            self.n_waits += 1
            return until_next(this)

        monkeypatch.setattr(watch, "time", self)
        monkeypatch.setattr(watch._WatchThread, "_wait_s", counted)
        monkeypatch.setattr(watch, "LONG_S", 0.05)

    def monotonic(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        """Let time pass, until it has been looked at."""
        self.now += seconds
        before = self.n_waits
        until(lambda: self.n_waits > before + 2)


def test_what_runs_for_long_is_posted_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    board, clock = Board(), Clock(monkeypatch)
    with watching(Watched("here", None, board)) as begin:
        begin("slow")
        clock.passes(7.0)
        begin("quick")
        until(lambda: None in board.posts)
    first = board.posts[0]
    assert first is not None
    assert (first["key"], first["over"], first["seconds"]) == ("slow", False, 7.0)


def test_what_ran_for_long_is_taken_away_with_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    board, clock = Board(), Clock(monkeypatch)
    with watching(Watched("here", None, board)) as begin:
        begin("slow")
        clock.passes(7.0)
        assert board.posts[-1] is not None
    until(lambda: board.posts[-1] is None)


def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let only the watching thread end where the process would; note with which code."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        threading.current_thread()._ended.set()  # type: ignore[attr-defined]

    monkeypatch.setattr(os, "_exit", end)
    return codes


def test_the_limit_ends_the_process_and_says_what_it_was_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes, clock = ends(monkeypatch), Clock(monkeypatch)
    board = Board()
    with watching(Watched("here", 100.0, board)) as begin:
        begin("first")
        clock.passes(60.0)
        begin("second")
        clock.passes(60.0)
        assert codes == []
        clock.now += 40.0
        until(lambda: codes)
    (entry,) = (post for post in board.posts if post and post["over"])
    assert (entry["key"], entry["seconds"], codes) == ("second", 100.0, [1])
    assert "in until" in entry["stack"]


def test_while_no_cell_runs_nothing_is_for_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, clock = ends(monkeypatch), Clock(monkeypatch)
    board = Board()
    with watching(Watched("here", 100.0, board)) as begin:
        begin("cell")
        clock.passes(1.0)
        assert board.posts[-1] is not None
        begin(None)
        clock.passes(1000.0)
        assert board.posts[-1] is None
    assert codes == []
    assert not any(post and post["over"] for post in board.posts)


def test_one_that_can_not_be_told_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, clock = ends(monkeypatch), Clock(monkeypatch)

    def broken(name: str, entry: Mapping[str, Any] | None) -> None:
        raise OSError("nobody listens")

    with watching(Watched("here", 100.0, broken)) as begin:
        begin("cell")
        clock.now += 100.0
        until(lambda: codes)


STUCK = """
import time
from sweep.execution import watch

watch.GRACE_S = {grace_s}
if {is_blind}:  # as where the cell lets no other thread run
    watch._WatchThread.run = lambda this: this._ended.wait()
post = lambda name, entry: print(entry["key"], flush=True)
with watch.watching(watch.Watched("n", {limit_s}, post)) as begin:
    begin("cell")
    {code}
"""


@pytest.mark.parametrize(
    ("code", "grace_s", "is_blind", "out", "err"),
    [
        ("time.sleep(6000)", 6000.0, False, "cell\n", ""),
        ("sum(range(10**13))", 0.1, True, "", "Timeout (0:00:00.3"),
    ],
)
def test_a_process_ends_whatever_it_is_at(
    code: str, grace_s: float, is_blind: bool, out: str, err: str
) -> None:
    script = STUCK.format(code=code, limit_s=0.2, grace_s=grace_s, is_blind=is_blind)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, out)
    assert err in done.stderr
