"""A working folder that is deleted under a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

DELETED = """
import os, sys
from pathlib import Path
from sweep.execution import task
from sweep.execution.on_ray import preflight

here = Path.cwd()
here.rmdir()
if sys.argv[1] == "anew":
    here.mkdir()
if sys.argv[2] == "look":
    cells = [(("fifo", None), ("simulate", None))]
    python = preflight._python_version()
    wanted = {"python": python, "packages": {}, "python_path": [], "cells": cells}
    wanted |= {"table": preflight._module_digests(cells), "again": True}
    print(preflight.check_node(wanted), end=" ")
else:
    task.add_module_folders([])
print(Path.cwd() == here, Path.cwd().is_dir())
"""


@pytest.mark.parametrize("is_anew", ["anew", "gone"])
@pytest.mark.parametrize("by", ["task", "look"])
def test_a_deleted_working_folder_is_left(tmp_path: Path, is_anew: str, by: str) -> None:
    """By the tasks of a worker, and by what looks at its node."""
    folder = tmp_path / "code"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", DELETED, is_anew, by],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PWD": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = "[] " if by == "look" else ""
    assert done.stdout == f"{expected}{is_anew == 'anew'} True\n"
