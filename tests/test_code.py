"""The code keeps its own rules: lint, types, and the direction of imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

CHECKS = {
    "lint": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "types": ["mypy"],
    "imports": ["lint-imports", "--no-cache"],
}


@pytest.mark.parametrize("check", CHECKS)
def test_code_passes(check):
    tool, *args = CHECKS[check]
    command = [str(Path(sys.executable).parent / tool), *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("lock", ["requirements.lock", "benchmarks/requirements.lock"])
def test_lock_pins_everything_and_names_no_index(lock):
    lines = (ROOT / lock).read_text().splitlines()
    entries = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert len(entries) > 50
    assert all("==" in entry and entry.endswith("\\") for entry in entries)
    hashes = [line for line in lines if line.startswith("    --hash=sha256:")]
    assert len(hashes) >= len(entries)
    assert not [line for line in lines if "://" in line or "index" in line.split("=")[0]]


def test_importing_sim_is_cheap():
    heavy = ["numba", "pandas", "ray", "mlflow", "hydra"]
    code = f"import sim, policies, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
