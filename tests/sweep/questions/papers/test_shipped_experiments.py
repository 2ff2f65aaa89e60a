"""Experiments that ship: each can be planned whole, and no cell of its first seed fails.

A page tells what a policy does on its cells, so a cell that fails would have to stand on it. None
does: an experiment that cannot have a cell says so in its axes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweep.driver import make_request
from sweep.grid.options import Options

pytestmark = pytest.mark.shipped

ROOT = Path(__file__).resolve().parents[4]
TRACES = ROOT.parent / "shared" / "traces"
NAMES = Options.from_folders([]).names("experiment")
TIMEOUT_S = 7200


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of results for all of them, as some experiments have cells in common."""
    return tmp_path_factory.mktemp("shipped")


def sweep(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, which frees its memory."""
    return subprocess.run(
        [sys.executable, "-m", "sweep", *words, f"paths.traces={TRACES}", "tracking=none"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_of_its_first_seed_fails(name: str, results: Path) -> None:
    words = (f"experiment={name}", f"paths.results={results}", "launcher=inline")
    planned = sweep("plan", *words)
    if "[missing file]" in planned.stderr and not TRACES.is_dir():
        pytest.skip("the folder of real traces (../shared/traces) is not here")
    assert planned.returncode == 0, planned.stderr
    (seed, *_) = make_request([*words, f"paths.traces={TRACES}"]).axes["seed"]
    ran = sweep(*words, f"seed={seed}")
    _, _, failures = ran.stdout.partition(" cells failed:")
    assert failures == ""
    assert ran.returncode == 0, ran.stderr
