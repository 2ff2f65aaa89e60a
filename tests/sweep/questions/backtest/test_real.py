"""Backtests of real runs, where they are beside the checkout (../shared/real)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.sweep.small import Command

POLICIES = ("policy=fifo,easy,conservative", "policy.reservations=1,1000")


@pytest.fixture
def real() -> Path:
    folder = ROOT.parent / "shared" / "real"
    if not folder.is_dir():
        pytest.skip("the folder of real runs (../shared/real) is not here")
    return folder


@pytest.mark.parametrize(
    ("name", "nearest", "size"),
    [
        ("sfifo", "fifo", "1 machine: cpu 100"),  # sched/builtin
        ("measy", "easy reservations=1", "64 slots"),  # bf_job_part_count_reserve=1
        ("mlin", "easy reservations=1000", "64 slots"),  # a reservation for every job
    ],
)
def test_the_policy_that_slurm_was_told_to_use(
    command: Command, real: Path, name: str, nearest: str, size: str
) -> None:
    log = real / f"slurm_{name}.jobcomp.txt.gz"
    ran = command("backtest", "trace=slurm_jobcomp", f"trace.path={log}", *POLICIES)
    assert ran.code == 0, ran.err
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["nearest"] == nearest
    assert record["cluster"].startswith(f"simulated on {size}")
    assert record["audit"]["head_could_start"] < 0.03


def test_spark(command: Command, real: Path) -> None:
    log = f"trace.path={real / 'spark_fifo_eventlog.gz'}"
    words = ("trace=spark_eventlog", log, "trace.read_as=jobs", "policy=fifo,srpt", "runs=2")
    ran = command("backtest", *words)
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["nearest"] == "fifo"
    assert "16 slots, as the log's executors have that many cores" in record["cluster"]
    sentence = record["policies"][0]["sentence"]
    assert "mean completion" in sentence
