"""Errors that earlier backtests found on a sweep's log."""

from __future__ import annotations

import json
from pathlib import Path

from sweep.questions.backtest.earlier import KnownError, section, sentence
from tests.sweep.questions.backtest.test_backtest import backtest, write_log
from tests.sweep.small import Command


def test_a_sweep_tells_how_far_its_baseline_was_from_the_log(
    command: Command, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "log.swf", header="; MaxProcs: 2\n")
    words = ("trace=swf", f"trace.path={log}", "cluster.count=2", "policy=easy,fifo", "seed=0")
    before = command(*words, "baseline=easy")
    assert "On this log" not in before.out
    ran = backtest(command, log, "policy=easy,fifo")
    folder = ran.folder
    assert "Recorded and simulated waits" not in ran.out  # plots alone
    report = (folder / "report.html").read_text()
    assert "Recorded and simulated waits" in report
    assert "Queue length over time" in report
    assert "Simulated, beside a recorded mean wait of 73.3 s" in (folder / "report.md").read_text()
    earlier = folder.name
    text = f"On this log, easy was 59 % off ({earlier})."
    for _ in range(2):  # the first time the finished sweep's report is written again
        after = command(*words, "baseline=easy")
        assert text in after.out.replace("\n", " ")
        assert after.folder == before.folder
        (entry,) = json.loads((after.folder / "verdict.json").read_text())
        assert entry["sentence"].endswith(text)
        assert entry["backtests"][0]["policy"] == "easy"
        assert text in (after.folder / "report.md").read_text().replace("\\", "")
    assert "fifo was 0.0 % off" in command(*words).out.replace("\n", " ")  # no baseline: all
    changed_policy = command(*words[:3], "policy=easy", "policy.reservations=2", "seed=0")
    assert "On this log" not in changed_policy.out


def test_sentences() -> None:
    known = [KnownError("easy", -0.041, True, "b-1"), KnownError("fifo", 14.3, False, "b-2")]
    assert sentence(known[:1]) == "On this log, easy was 4 % off (b-1)."
    assert sentence(known) == (
        "On this log, easy was 4 % off, fifo was 1,430 % off (b-1, b-2); no policy that serves one "
        "pool in the order of submission can have made it."
    )
    assert section({"a": known[:1]}).sentences == (sentence(known[:1]),)
    assert section({"a": known[:1], "b": known}).sentences[1].startswith("b: On this log")
