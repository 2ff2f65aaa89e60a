"""Cache folders of compiled kernels, and their invalidation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim.base import jit
from sim.base.jit import specialised
from sim.base.kernel_cache import CHECKED
from sim.engine.kernels.run import run

ROOT = Path(__file__).resolve().parents[3]

HITS = """
import numpy as np
from sim.workload.kernels.paths import by_child
by_child(3, np.array([1, 2], np.int32))
print(sum(by_child.stats.cache_hits.values()))
"""

FOLDERS = """
from sim.base.kernel_cache import digest
print(digest("sim.engine.kernels.run"), digest("sim.dags.kernels.levels"))
"""

SIMULATE = """
import sys
import policies, sim
workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0, 2.0]}]}])
for _ in range(2):
    sim.simulate(workload, sim.Cluster.slots(1), policies.build("fifo"))
"""


def ran(copy: Path, code: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(copy), **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env}, cwd=copy, capture_output=True, text=True, check=True,
    )  # fmt: skip


def copy_of_sim(folder: Path) -> Path:
    for package in ("sim", "policies"):
        shutil.copytree(ROOT / package, folder / package, copy_function=shutil.copyfile)
    return folder


def change(copy: Path, module: str, old: str, new: str) -> None:
    path = copy / "sim" / module
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
@pytest.mark.long
def test_copies_of_the_project_share_compiled_kernels_until_one_changes(
    tmp_path: Path,
) -> None:
    first, other, cache = (tmp_path / name for name in ("one", "other", "cache"))
    for copy in (first, other):
        copy_of_sim(copy)
    assert int(ran(first, HITS, cache).stdout) == 0
    assert int(ran(other, HITS, cache).stdout) == 1
    change(other, "workload/kernels/paths.py", '"""', '"""In other words. ')
    with (other / "sim/workload/kernels/paths.py").open("a") as file:
        file.write("# a comment\n")
    assert int(ran(other, HITS, cache).stdout) == 1
    with (other / "sim/workload/kernels/paths.py").open("a") as file:
        file.write("NEW = 1\n")
    assert int(ran(other, HITS, cache).stdout) == 0
    assert int(ran(first, HITS, cache).stdout) == 1


def test_a_kernel_depends_on_its_imports_and_nothing_else(tmp_path: Path) -> None:
    copy, cache = copy_of_sim(tmp_path / "copy"), tmp_path / "cache"

    def digests() -> list[str]:
        return ran(copy, FOLDERS, cache).stdout.split()

    run, levels = digests()
    change(copy, "dags/kernels/levels.py", "\n\n\n", "\n\n# a comment\n\nNEW = 1\n")
    assert digests()[0] == run
    levels, before = digests()[1], levels
    assert levels != before
    change(copy, "engine/kernels/heaps.py", "    return a < b\n", "    return b < a\n")
    assert digests()[0] != run
    assert digests()[1] == levels


def test_other_checks_or_optimisation_use_another_folder(tmp_path: Path) -> None:
    kinds = [(check, level) for check in "01" for level in "13"]
    folders = {
        ran(ROOT, FOLDERS, tmp_path, NUMBA_BOUNDSCHECK=check, NUMBA_OPT=level).stdout
        for check, level in kinds
    }
    assert len(folders) == len(kinds)


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
@pytest.mark.long
def test_of_two_processes_one_compiles_and_says_so_once(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", SIMULATE], env=env, cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    output = sorted(process.communicate()[1] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert output == [
        "",
        "sim: compiling the event loop of a pool of slots, once for this version: up to 15 s\n",
    ]
    assert len(list(tmp_path.glob("run-*/run.run_*-pool-*.nbc"))) == 1
    assert ran(ROOT, SIMULATE, tmp_path).stderr == ""


@pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")
def test_no_two_variants_share_a_name_by_which_they_could_be_linked(tmp_path: Path) -> None:
    """Numba's own number of a function differs between processes."""
    names = [
        specialised(run, frozenset(features)).py_func.__qualname__  # type: ignore[attr-defined]
        for features in ({"STRICT"}, {"STRICT", "POOL"}, {"SKIP"}, set())
    ]
    assert len(set(names)) == 4


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    shut = tmp_path / "file"
    shut.write_text("no folder")
    done = ran(ROOT, SIMULATE, shut, TMPDIR=str(tmp_path), TEMP=str(tmp_path))
    assert done.returncode == 0


@pytest.mark.skipif(not CHECKED, reason="the kernels are not compiled with bounds checks here")
def test_kernels_are_checked_here() -> None:
    def beyond(x):
        return x[len(x)]

    with pytest.raises(IndexError):
        jit._compile(beyond)(np.zeros(3))
