"""Read-only folders, as a user without root's capabilities meets them."""

from __future__ import annotations

import ctypes
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import sweep
from sweep.cli import main
from tests.sweep.small import Command, Ran, every_file

_DROP_BOUNDING = 24  # prctl: PR_CAPBSET_DROP
_OVERRIDE = (1, 2, 3)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER


def _drop_override() -> None:
    """Drop the capabilities by which root ignores file permissions."""
    if os.geteuid() == 0:
        for capability in _OVERRIDE:
            if ctypes.CDLL(None).prctl(_DROP_BOUNDING, capability, 0, 0, 0):
                os._exit(77)


def run_unprivileged(words: list[str], home: Path) -> Ran:
    """Run a command line under file permissions."""
    (ran,) = run_all_unprivileged([words], home)
    return ran


def run_all_unprivileged(
    lines: list[list[str]], home: Path, loaded: Path | None = None
) -> list[Ran]:
    """Run command lines in one process; with the last, load the sweep `loaded` in Python."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.sweep.test_unwritable"],
        input=json.dumps([lines, str(loaded or "")]),
        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": ""},
        preexec_fn=_drop_override,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"needs to drop capabilities: {done.returncode} {done.stderr[-300:]}")
    return [Ran(**ran) for ran in json.loads(done.stdout)]


@pytest.fixture
def read_only() -> Iterator[Any]:
    """Return a function that makes a folder tree read-only; restore its modes at the end."""
    modes: dict[Path, int] = {}

    def make_read_only(folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            modes[path] = path.stat().st_mode
        for path in modes:
            path.chmod(0o555 if path.is_dir() else 0o444)

    yield make_read_only
    for path, mode in modes.items():
        if path.exists():
            path.chmod(mode)


@pytest.mark.parametrize(
    ("pattern", "more", "path"),
    [
        ("", (), ""),
        ("cache", ("seed=5",), ""),
        ("journal", ("seed=5",), "journal"),
        ("sweeps", (), "sweeps"),
        ("sweeps/*", (), "sweeps/sweep-"),
    ],
)
def test_a_read_only_folder_is_refused_in_one_line(
    fake: Command, tmp_path: Path, read_only: Any, pattern: str, more: tuple[str, ...], path: str
) -> None:
    words = ("policy=fifo,las", "--fail-fast")
    fake(*words)
    for folder in fake.results.glob(pattern) if pattern else [fake.results]:
        read_only(folder)
    before = every_file(fake.results)
    ran = run_unprivileged(fake.words(*words, *more), tmp_path)
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert line.startswith(f"error: results can't be written to {fake.results / path}")
    assert "Permission denied" in line
    assert "give paths.results=DIR" in line
    assert ".tmp-" not in line
    assert every_file(fake.results) == before


def test_a_folder_below_a_read_only_one_is_refused_in_one_line(
    fake: Command, tmp_path: Path, read_only: Any
) -> None:
    (tmp_path / "parent").mkdir()
    read_only(tmp_path / "parent")
    words = [*fake.words("policy=fifo"), f"paths.results={tmp_path / 'parent' / 'child'}"]
    ran = run_unprivileged(words, tmp_path)
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert str(tmp_path / "parent" / "child") in line
    assert "give paths.results=DIR" in line


@pytest.mark.slow
@pytest.mark.long
def test_read_only_results_can_be_read(fake: Command, tmp_path: Path, read_only: Any) -> None:
    folder = fake("policy=fifo,las").folder
    expected = {
        verb: fake.verb(*verb).out for verb in [("list",), ("show",), ("show", "0"), ("status",)]
    }
    read_only(fake.results)
    before = every_file(fake.results)
    results = f"paths.results={fake.results}"
    lines = [
        *([*verb, results] for verb in expected),
        ["plan", *fake.words("policy=fifo,las")],
        ["report", results],
        ["track", results, "tracking=mlflow"],
        ["list", results],
    ]
    *read, plan, report, track, listed = run_all_unprivileged(lines, tmp_path, loaded=folder)
    assert [(ran.code, ran.err, ran.out) for ran in read] == [
        (0, "", out) for out in expected.values()
    ]
    assert plan.code == 0
    assert listed.out.endswith("2 cells, 6 jobs\n")
    for ran in (report, track):
        assert ran.code == 2
        (line,) = ran.err.splitlines()
        assert re.match(rf"error: .*{fake.results}/\w+/.*paths.results=DIR$", line)
        assert ".tmp-" not in line
    assert every_file(fake.results) == before


@pytest.mark.slow
@pytest.mark.long
def test_a_read_only_home_is_no_error(fake: Command, tmp_path: Path, read_only: Any) -> None:
    (tmp_path / "home").mkdir()
    read_only(tmp_path / "home")
    fake("policy=fifo")
    ran = run_unprivileged(fake.words("policy=fifo"), tmp_path / "home")
    assert (ran.code, [*(tmp_path / "home").iterdir()]) == (0, [])


def _main() -> None:
    lines, loaded = json.load(sys.stdin)
    done = []
    for words in lines:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main.main(words)
            if loaded and words is lines[-1]:
                s = sweep.load(loaded)
                jobs = s.cell(policy="fifo", capacity=1.0, seed=0, trace="parquet").jobs
                print(f"{len(s.cells)} cells, {len(jobs)} jobs")
        done.append({"code": code, "out": out.getvalue(), "err": err.getvalue()})
    print(json.dumps(done))


if __name__ == "__main__":
    _main()
