"""Last lines of a sweep, with MLflow and without."""

from __future__ import annotations

import errno
import re
import sys
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from sweep import track
from sweep.cli import outcome
from sweep.store.folder import SweepFolder
from tests.sweep.small import Command


def words(fake: Command, uri: str) -> list[str]:
    untracked = [word for word in fake.words("policy=fifo") if not word.startswith("tracking")]
    return [*untracked, f"tracking.uri={uri}"]


def test_a_server_that_is_down_is_reported_first_and_no_link_is_printed(
    fake: Command, closed_port: int
) -> None:
    uri = f"http://ann:s3cret@127.0.0.1:{closed_port}"
    ran = fake.bare(*words(fake, uri))
    assert ran.code == 0
    first, *_, last = (line for line in ran.err.splitlines() if "MLflow" in line)
    assert first.startswith(f"no MLflow at http://ann:***@127.0.0.1:{closed_port} yet: nothing")
    assert last.startswith("could not log to MLflow at ")
    assert ran.err.index(first) < ran.err.index("0 cached")
    assert "MLflow:" not in ran.out
    again = fake.bare(*words(fake, uri))  # every cell is cached, and MLflow still down
    assert "could not log to MLflow at " in again.err
    assert "MLflow:" not in again.out
    assert "s3cret" not in ran.err + again.err


def test_the_command_that_opens_the_log_is_printed(fake: Command, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'other.db'}"
    ran = fake.bare(*words(fake, uri))
    assert "no MLflow" not in ran.err
    assert "MLflow:  python -m sweep ui " in ran.out
    assert "MLflow:  python -m sweep ui " in fake.bare(*words(fake, uri)).out


def test_the_answer_is_printed_before_mlflow_is_told(
    fake: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = []
    monkeypatch.setattr(outcome, "_show_tables", lambda _, **__: events.append("answer"))
    monkeypatch.setattr(track, "log", lambda *_: events.append("log"))
    for _ in range(2):  # from simulations, and from the cache alone
        fake.bare(*words(fake, f"sqlite:///{tmp_path / f'{len(events)}.db'}"))
    assert events == ["answer", "log"] * 2


def test_a_closed_pipe_does_not_keep_a_sweep_from_mlflow(
    fake: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def closed(_: object, **__: object) -> None:
        raise BrokenPipeError

    events = []
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(outcome, "_show_tables", closed)
    monkeypatch.setattr(track, "log", lambda *_: events.append("log"))
    fake.bare(*words(fake, f"sqlite:///{tmp_path / 'one.db'}"))
    sys.stdout.close()
    assert events == ["log"]


def test_a_full_disk_while_printing_does_not_keep_a_sweep_from_its_end(
    fake: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    events = []
    monkeypatch.setattr(outcome, "_show_tables", full)
    monkeypatch.setattr(track, "log", lambda *_: events.append("log"))
    ran = fake.bare(*words(fake, f"sqlite:///{tmp_path / 'one.db'}"))
    assert ran.code == 2
    assert "No space left" in ran.err
    assert events == ["log"]


def test_an_unknown_uri_scheme_is_refused_before_any_run(fake: Command) -> None:
    ran = fake.bare(*words(fake, "htp://x"))
    assert ran.code == 2
    assert ran.err.startswith("error: tracking.uri=htp://x: unknown scheme 'htp'")
    assert ran.err.count("\n") == 1
    assert not fake.results.exists()


def test_a_terminal_gets_a_short_form_that_ends_with_the_answer(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome, "Console", partial(Console, force_terminal=True, width=120))
    grid = ("policy=fifo,las,sjf", "baseline=fifo", "capacity=0.5,0.75,1", "seed=range(0,6)")
    short, long = fake(*grid), fake(*grid, "-v")
    lines, all_lines = short.out.splitlines(), long.out.splitlines()
    assert len(lines) <= 45 < len(all_lines)
    (headline, *_) = SweepFolder(short.folder).answer()["Answer"]
    assert _plain(short.out).count(headline) == 2
    assert _plain(short.out).index("-v shows all verdicts") > _plain(short.out).rindex(headline)
    assert "-v shows all verdicts" not in long.out
    what_if = fake("policy=fifo", "what_if.load=2", "what_if.restore=null")
    assert "-v shows all verdicts" in what_if.out  # its tables by group are left out, too
    again = fake.verb("retry", short.folder.name, "launcher=inline", "tracking=none")  # has no -v
    assert again.code == 0, again.err
    assert headline in _plain(again.out)
    assert "-v shows all verdicts" not in again.out
    monkeypatch.setattr(outcome, "Console", Console)
    assert "-v shows all verdicts" not in fake(*grid).out


@pytest.mark.parametrize("width", [80, 120])
def test_the_short_form_fits_a_narrow_terminal(
    fake: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(outcome, "Console", partial(Console, force_terminal=True, width=width))
    grid = ("policy=fifo,las,sjf,srpt,tetris", "baseline=fifo", "capacity=0.5,0.75,1")
    single = fake(*grid, "seed=range(0,6)")
    assert len(single.out.splitlines()) <= 45
    traces = [f"{name}:parquet:{fake.trace}" for name in "abc"]
    three = fake(*grid, "seed=range(0,3)", f"trace={','.join(traces)}")
    assert len(three.out.splitlines()) <= 60


def _plain(text: str) -> str:
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())
