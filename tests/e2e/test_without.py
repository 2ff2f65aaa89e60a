"""Each system and each question taken away with its entries: all else works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sim

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = sorted(room.parent.name for room in (ROOT / "policies").glob("*/README.md"))
QUESTIONS = sorted(
    room.name
    for room in (ROOT / "sweep" / "questions").iterdir()
    if (room / "__init__.py").is_file()
)
BUILT_ON = {"wserpt": ("dagps", "jockey", "slearn", "wing")}
"""Systems on which another builds."""
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


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("sim", "policies", "sweep", "conf"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    jobs = [{"submit_s": float(i), "stages": [{"durations_s": [2.0, 3.0]}]} for i in range(9)]
    sim.Workload.from_jobs(jobs).write(folder / "jobs")
    return folder


def take_away(checkout: Path, room: str) -> None:
    """Delete a room, and the entries of the project whose modules lie in it."""
    shutil.rmtree(checkout / room)
    file = checkout / "pyproject.toml"
    dotted = re.escape(room.replace("/", "."))
    entries = re.compile(rf'^[\w".-]+ = "{dotted}[."].*\n', re.MULTILINE)
    text, n = entries.subn("", file.read_text())
    assert n
    file.write_text(text)


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


@pytest.mark.long
@pytest.mark.parametrize("name", SYSTEMS)
def test_without_a_system(checkout: Path, name: str) -> None:
    take_away(checkout, f"policies/{name}")
    assert_core_works(checkout)
    done = run(checkout, "-c", EVERYTHING)
    assert done.returncode == 0, done.stderr
    broken = done.stdout.splitlines()
    assert not broken or any(name in base for base in BUILT_ON.values()), broken
    assert all(f"policies.{name}" in line for line in broken)  # a line says what is missing


@pytest.mark.long
@pytest.mark.parametrize("name", QUESTIONS)
def test_without_a_question(checkout: Path, name: str) -> None:
    take_away(checkout, f"sweep/questions/{name}")
    assert_core_works(checkout)
