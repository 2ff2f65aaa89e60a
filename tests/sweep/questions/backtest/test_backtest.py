"""Backtest of a small log, from the command line to its files."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

import sweep
from tests.sweep.small import Command, Ran, every_file

N_BLOCKS = 12


def write_log(path: Path, third_start_s: int = 150, header: str = "") -> Path:
    """Write a log of two processors in blocks of three jobs; the third could pass the second.

    Job 0 runs on one processor for 100 s. Job 1 needs both, and waits for 90 s. Job 2 comes at 20
    and needs one for 30 s: first come first served starts it at 150, backfilling at once.
    """
    lines = []
    for block in range(N_BLOCKS):
        jobs = ((0, 0, 100, 1), (10, 100, 50, 2), (20, third_start_s, 30, 1))
        for number, (submit_s, start_s, run_s, width) in enumerate(jobs):
            times = f"{1000 * block + submit_s} {start_s - submit_s} {run_s} {width} -1 -1"
            lines.append(f"{3 * block + number + 1} {times} {width} {run_s} -1 1 1 1 1 1 1 -1 -1")
    path.write_text(header + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.swf")


def backtest(command: Command, log: Path, *words: str) -> Ran:
    return command("backtest", "trace=swf", f"trace.path={log}", "runs=3", *words)


def test_the_policy_that_made_the_log_is_nearest(command: Command, log: Path) -> None:
    ran = backtest(command, log, "policy=easy,fifo")
    assert ran.code == 0, ran.err
    assert ran.folder.name.startswith("backtest-")
    rows = pd.read_parquet(ran.folder / "backtest.parquet").set_index("policy")
    fifo, easy = rows.loc["fifo"], rows.loc["easy"]
    assert (fifo["jobs"], fifo["waited"]) == (36, 24)
    mean_s = (90 + 130) / 3
    assert fifo["wait_mean_recorded_s"] == pytest.approx(mean_s)
    assert fifo["wait_mean_s"] == pytest.approx(mean_s)
    assert fifo["error"] == pytest.approx(0.0)
    assert fifo["mae"] == pytest.approx(0.0)
    assert fifo["waited_within_10pct"] == 1.0
    assert fifo["pairs_in_order"] == 1.0
    assert easy["wait_mean_s"] == pytest.approx(90 / 3)
    assert easy["error"] == pytest.approx((30 - mean_s) / mean_s)
    assert easy["mae"] == pytest.approx(130 / 3 / mean_s)
    assert easy["waited_within_10pct"] == 0.5
    assert easy["pairs_in_order"] == pytest.approx(1 - N_BLOCKS / (36 * 35 / 2))
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["nearest"] == "fifo"
    assert record["sentence"] == "nearest: fifo; tests tell it from easy"
    assert record["audit"]["resolution_s"] >= 1.0
    assert record["audit"]["head_could_start"] == 0.0
    # 2 slots: no more were in use at any time
    assert "2 slots, as that is the peak of the log's recorded use" in record["cluster"]
    assert record["cautions"] == ["a small log: 36 jobs"]
    out = ran.out
    (headline, *_) = json.loads((ran.folder / "answer.json").read_text())["Answer"]
    assert headline == "Nearest to the log is fifo: its mean wait is the recorded one."
    page = (ran.folder / "report.html").read_text()
    assert page.index('class="plots first"') < page.index("Mean wait over time")
    assert out.index("easy: mean wait 30 s") < out.index("fifo: mean wait 73.3 s")
    assert (
        out.index("fifo: mean wait") < out.index("nearest: fifo") < out.index("A job that fitted")
    )


def test_a_log_of_backfilling(command: Command, tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.swf", third_start_s=20, header="; MaxProcs: 2\n")
    ran = backtest(command, log, "policy=easy,fifo")
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["nearest"] == "easy"
    assert "2 slots, as the log's header says (MaxProcs)" in record["cluster"]
    ran = backtest(command, log, "policy=easy,fifo", "cluster.count=3")
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["cluster"] == (
        "simulated on 3 slots, as given; by the log 2 slots, as the log's header says (MaxProcs)"
    )


def test_the_same_command_again_answers_from_the_cache(command: Command, log: Path) -> None:
    first = backtest(command, log, "policy=easy,fifo")
    files = every_file(first.folder)
    again = backtest(command, log, "policy=easy,fifo")
    assert "every cell is cached" in again.err
    assert again.folder == first.folder
    names = {"backtest.parquet", "backtest_jobs.parquet", "backtest.json"}
    assert {name: files[name] for name in names} == {
        name: content for name, content in every_file(again.folder).items() if name in names
    }


def test_damaged_files_are_made_from_the_cache(command: Command, log: Path) -> None:
    ran = backtest(command, log, "policy=easy,fifo")
    content = (ran.folder / "backtest.json").read_bytes()
    (ran.folder / "backtest.json").write_bytes(b"{}")
    assert command.verb("show").code == 0
    assert (ran.folder / "backtest.json").read_bytes() == content


def test_its_words_give_it_again(command: Command, log: Path) -> None:
    backtest(command, log, "policy=easy,fifo")
    loaded = sweep.load(results=command.results)
    assert loaded.backtest["policy"].tolist() == ["easy", "fifo"]
    assert "cluster.count=2" in loaded.config["words"]
    assert command.verb("verify", "--cells", "2", "launcher=inline").code == 0


def test_parameters_tell_policies_apart(command: Command, log: Path) -> None:
    ran = backtest(command, log, "policy=easy,fifo", "policy.reservations=1,1000")
    rows = pq.read_table(ran.folder / "backtest.parquet")
    assert rows["label"].to_pylist() == ["easy reservations=1", "easy reservations=1000", "fifo"]
    assert rows["policy.reservations"].to_pylist() == [1, 1000, None]


def test_a_log_without_starts_is_refused(command: Command, tmp_path: Path) -> None:
    lines = write_log(tmp_path / "log.swf").read_text().splitlines()
    unknown = [" ".join([*line.split()[:2], "-1", *line.split()[3:]]) for line in lines]
    (tmp_path / "log.swf").write_text("\n".join(unknown) + "\n")
    ran = backtest(command, tmp_path / "log.swf", "policy=fifo")
    assert ran.code == 2
    assert "the log does not tell when jobs started" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("seed=0,1", "leave seed= out, or give runs=N"),
        ("cluster.load=0.8", "a backtest keeps the log's own arrivals"),
        ("cluster.count=2,3", "give cluster.count one value"),
        ("capacity=0.5", "a backtest runs on the cluster of the log"),
        ("backtest.runs=1", "backtest.runs must be a whole number of at least 2"),
    ],
)
def test_what_a_backtest_does_not_vary(
    command: Command, log: Path, word: str, message: str
) -> None:
    ran = command("backtest", "trace=swf", f"trace.path={log}", "policy=fifo", word)
    assert ran.code == 2
    assert message in ran.err
