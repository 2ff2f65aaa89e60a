"""Losses of a log in a sweep: told at every run, in the verdict if large, else refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sweep.small import Command

WHOLE = "{0} {1} 5 100 4 -1 -1 4 200 -1 1 1 1 -1 1 -1 -1 -1"
LOSS = "log.swf: {} % of the log's CPU time is left out: text in a number"
WORDS = ("policy=fifo,srpt", "baseline=fifo", "cluster.count=8", "seed=0")


def log(folder: Path, n_bad: int, n: int = 20) -> Path:
    """Write a log of equal jobs, of which the last have no number of processors."""
    lines = [WHOLE.format(job, job) for job in range(1, n + 1)]
    bad = [line.replace("-1 -1 4", "-1 -1 many") for line in lines[n - n_bad :]]
    path = folder / "log.swf"
    path.write_text("\n".join([*lines[: n - n_bad], *bad]) + "\n")
    return path


@pytest.mark.parametrize(("n_bad", "share"), [(0, ""), (1, "5.0"), (4, "20.0")])
def test_a_loss_is_told_fresh_and_cached(
    command: Command, tmp_path: Path, n_bad: int, share: str
) -> None:
    path = log(tmp_path, n_bad)
    first = command(*WORDS, "trace=swf", f"trace.path={path}")
    second = command(*WORDS, "trace=swf", f"trace.path={path}")
    for ran in (first, second):
        assert ran.code == 0, ran.err
        assert (LOSS.format(share) in ran.err) == bool(share)
        answer = json.loads((ran.folder / "answer.json").read_text())
        (read,) = answer["read"]
        assert (read["trace"], read["jobs"]) == ("swf", 20 - n_bad)
        assert read["left_out_share"] == pytest.approx(n_bad / 20)
        assert any(LOSS.format(share) in line for line in answer["How sure"]) == bool(share)
        (verdict,) = json.loads((ran.folder / "verdict.json").read_text())
        is_large = "but 20 % of the log's work is left out." in verdict["sentence"]
        assert is_large == (n_bad == 4)
        assert is_large == ("20 % of the log's work" in answer["Answer"][0])


def test_most_of_a_log_is_refused_without_a_word_of_the_user(
    command: Command, tmp_path: Path
) -> None:
    words = (*WORDS, "trace=swf", f"trace.path={log(tmp_path, 12)}")
    for _ in range(2):
        ran = command(*words)
        assert ran.code == 2
        assert LOSS.format("60.0") in ran.err
        assert "say trace.on_bad_row=skip" in ran.err
    assert command(*words, "trace.on_bad_row=skip").code == 0
    assert command(*words).code == 2  # though every cell is cached


def test_an_option_of_ones_own_is_a_word_of_the_user(command: Command, tmp_path: Path) -> None:
    path = log(tmp_path, 12)
    own = tmp_path / "conf" / "trace"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text(
        "# Mine.\ndefaults:\n  - override /cluster@_global_.cluster: slots\n  - _self_\n"
        f"format: swf\npath: {path}\non_bad_row: skip\n"
    )
    ran = command(*WORDS, "trace=mine", "--config-dir", str(tmp_path / "conf"))
    assert ran.code == 0, ran.err
