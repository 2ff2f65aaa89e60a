"""Each system and each question taken away with its entries: all else works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import sim
from tests import without
from tests.without import BUILT_ON, QUESTIONS, SYSTEMS

LANE = {"FEW_EXAMPLES": "1", "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "SIM_VARIANTS": "wide"}
"""Environment of ``make test-core``."""
EVERYTHING = """
import policies, sim.evaluators, sim.synth, sim.traces, sim.transforms
for kind, names, spec in (
    ("policy", policies.names(), policies.spec),
    ("generator", sim.synth.names(), sim.synth.options),
    ("reader", sim.traces.names(), sim.traces.options),
    ("transform", sim.transforms.names(), sim.transforms.options),
    ("evaluator", sim.evaluators.names(), sim.evaluators.options),
):
    for name in names:
        try:
            spec(name)
        except sim.InputError as error:
            print(kind, name, error)
"""
pytestmark = pytest.mark.long


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    without.copy(folder, "sim", "policies", "sweep", "conf", "pyproject.toml")
    jobs = [{"submit_s": float(i), "stages": [{"durations_s": [2.0, 3.0]}]} for i in range(9)]
    sim.Workload.from_jobs(jobs).write(folder / "jobs")
    return folder


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def assert_core_works(checkout: Path) -> None:
    trace = ("trace=parquet", "trace.path=jobs", "cluster.count=2")
    done = run(
        checkout, "-m", "sweep", *trace, "policy=fifo,srpt,las", "capacity=0.5,1.0", "seed=0,1",
        "baseline=fifo", "launcher=inline", "tracking=none",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for words in (("sweep", "--help"), ("sweep", "--help", "all"), ("sim", "--help")):
        done = run(checkout, "-m", *words)
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr


@pytest.mark.parametrize("name", SYSTEMS)
def test_without_a_system(checkout: Path, name: str) -> None:
    without.take_away(checkout, without.room(name))
    assert_core_works(checkout)
    done = run(checkout, "-c", EVERYTHING)
    assert done.returncode == 0, done.stderr
    broken = done.stdout.splitlines()
    assert not broken or any(name in base for base in BUILT_ON.values()), broken
    assert all(f"policies.{name}" in line for line in broken)  # a line says what is missing


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_a_question(checkout: Path, name: str) -> None:
    without.take_away(checkout, without.room(name))
    assert_core_works(checkout)


@pytest.mark.parametrize("name", [*SYSTEMS, *QUESTIONS])
def test_the_core_lane_without_a_room(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in LANE.items():
        monkeypatch.setenv(variable, value)
    words = ("-n", "2", "--dist", "worksteal", "-m", "core")  # by a worker alone: 12 GB
    done = without.run(tmp_path / "checkout", [name], *words)
    assert done.returncode == 0
