"""Ctrl-C at any moment: one line, exit code 130, and a rerun ends with the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sweep import interrupts
from tests.sweep.interrupts import N_CELLS, check, logged, run, words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return interrupts.own_evaluator(tmp_path)


def cells(folder: Path, results: str) -> bytes:
    (file,) = (folder / results / "sweeps").glob("*/cells.parquet")
    return file.read_bytes()


def run_uninterrupted(folder: Path, *more: str) -> int:
    """Run the sweep in ``whole``; return its number of interruptible moments."""
    ended = run(words(folder, "whole", *more), count=folder / "count")
    assert (ended.code, ended.interrupts()) == (0, []), ended.err
    return int((folder / "count").read_text())


def check_interrupted(folder: Path, name: str, moments: list[int], *more: str) -> None:
    """Interrupt the sweep, then rerun it: its results equal those of an uninterrupted run."""
    ended = run(words(folder, name, *more), moments)
    check(ended)
    runs = logged(folder / name)
    assert runs.get("sweep") != ["FINISHED"] or len(runs["cell"]) == N_CELLS
    resumed = run(words(folder, name, *more))
    assert (resumed.code, resumed.interrupts()) == (0, []), resumed.err
    assert "Traceback" not in resumed.err
    assert "could not log" not in resumed.err
    if ended.code:  # else all of it is cached by now, and says so
        assert cells(folder, name) == cells(folder, "whole")
    if "tracking=none" not in more:
        runs = logged(folder / name)
        assert set(runs.pop("curve")) == {"FINISHED"}
        assert runs == {"sweep": ["FINISHED"], "cell": ["FINISHED"] * N_CELLS}


def test_while_modules_are_imported(folder: Path) -> None:
    results = words(folder, "never", "launcher=inline", "tracking=none")
    for moment in (1, 10, 500, 4000, 15_000):
        ended = run(results, [moment])
        check(ended)
        assert (ended.code, ended.out, ended.err) == (130, "", "interrupted\n")
    for module in ("sweep", "sim"):
        ended = run(["--help"], [1, 2, 50], module=module)  # and again, at once
        assert (ended.code, ended.out, ended.err) == (130, "", "interrupted\n")
    assert not (folder / "never").exists()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.85, pytest.param(0.95, marks=pytest.mark.long)])
@pytest.mark.long
def test_while_it_plans_runs_and_reports(folder: Path, share: float) -> None:
    more = ("launcher=inline", "tracking=none")
    total = run_uninterrupted(folder, *more)
    check_interrupted(folder, "reports", [int(share * total)], *more)


@pytest.mark.long
def test_pressed_twice_while_it_is_logged_to_mlflow(folder: Path) -> None:
    more = ("launcher=inline",)
    total = run_uninterrupted(folder, *more)
    for i in range(4):
        moment = int((0.6 + 0.39 * i / 3) * total)
        check_interrupted(folder, f"logs{i}", [moment, moment + 1 + 40 * i], *more)


@pytest.mark.long
def test_while_ray_starts_and_stops(folder: Path) -> None:
    more = ("launcher=local", "launcher.workers=2", "tracking=none")
    total = run_uninterrupted(folder, *more)
    for i in range(3):
        check_interrupted(folder, f"ray{i}", [int((0.5 + 0.49 * i / 2) * total)], *more)
