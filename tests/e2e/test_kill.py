"""Sweeps that are killed or interrupted, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Command, every_file

pytestmark = pytest.mark.e2e

PATIENCE_S = 600  # the first cell takes ten seconds on a machine with nothing else to do


def grid(command: Command, *words: str) -> tuple[str, ...]:
    return (
        "policy=slow", "seed=range(8)", "trace=alibaba_synth", "trace.seed=0", "trace.jobs=50",
        f"--config-dir={command.user}", *words,
    )  # fmt: skip


def n_cells(results: Path) -> int:
    """Number of finished cells in the journal of the one sweep of a results folder."""
    return sum(
        json.loads(line)["event"] == "cell"
        for file in (results / "journal").glob("*.jsonl")
        for line in file.read_text().splitlines()
    )


def wait_for_cells(results: Path, n: int, process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while n_cells(results) < n:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "no cell was done"
        time.sleep(0.02)


@pytest.mark.long
def test_a_killed_sweep_resumes_to_the_same_bytes(command: Command) -> None:
    undisturbed = command(
        *grid(command, "paths.results=undisturbed", "tracking=none", "launcher=inline")
    )
    assert undisturbed.code == 0, undisturbed.err
    results = command.folder / "results"
    words = grid(command, "tracking=none")
    process = command.start(*words)
    wait_for_cells(results, 3, process)
    process.kill()
    process.communicate()
    assert n_cells(results) < 8
    assert "stopped" in command("status").out
    resumed = command(*words)
    assert resumed.code == 0, resumed.err
    assert {row["status"] for row in resumed.rows} == {"done"}
    assert every_file(results) == every_file(command.folder / "undisturbed")


@pytest.mark.long
def test_an_interrupted_sweep_keeps_finished_cells(command: Command) -> None:
    results, gate = command.folder / "results", command.folder / "gate"
    gate.touch()
    words = grid(command, "tracking=none", f"policy.gate={gate}")
    process = command.start(*words)
    wait_for_cells(results, 2, process)
    assert "running" in command("status").out
    process.send_signal(signal.SIGINT)  # the gate stays closed: running cells are abandoned
    out, err = process.communicate(timeout=900)
    gate.unlink()
    assert process.returncode == 130, err
    assert out == ""
    assert "are done and stored" in err
    resumed = command(*words, "launcher=inline")
    assert resumed.code == 0
    assert " 2 cached, 6 to run" in resumed.err
