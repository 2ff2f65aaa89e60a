"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import jit

ROOT = Path(__file__).resolve().parents[3]

HITS = """
import numpy as np
from sim.workload.kernels.edges import by_child
by_child(3, np.array([1, 2], np.int32))
print(sum(by_child.stats.cache_hits.values()))
"""


def hits(copy: Path, cache: Path) -> int:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(copy)}
    ran = subprocess.run(
        [sys.executable, "-c", HITS],
        env=environment, cwd=copy, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return int(ran.stdout)


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
def test_copies_of_the_project_share_what_is_compiled_until_a_kernel_changes(
    tmp_path: Path,
) -> None:
    for name in ("one", "other"):
        shutil.copytree(ROOT / "sim", tmp_path / name / "sim", copy_function=shutil.copyfile)
    cache = tmp_path / "cache"
    assert hits(tmp_path / "one", cache) == 0
    assert hits(tmp_path / "other", cache) == 1
    with (tmp_path / "other/sim/lineage/kernels/flows.py").open("a") as file:
        file.write("# changed\n")
    assert hits(tmp_path / "other", cache) == 0
    assert hits(tmp_path / "one", cache) == 1
