"""Disk cache: hits have the same bits, entries are computed once, and damaged ones again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.base import disk_cache

ROOT = Path(__file__).resolve().parents[3]
MODULE = "sim.base.text"  # any module will do


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk_cache, "cache_dir", lambda: tmp_path)
    return tmp_path


class Computation:
    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, i: int) -> disk_cache.Arrays:
        self.calls.append(i)
        return {"a": np.arange(i, dtype=np.int32).reshape(1, i), "b": np.array(0.1 * i)}


def digests(n: int) -> list[bytes]:
    return [disk_cache.digest(i) for i in range(n)]


def bits(arrays: disk_cache.Arrays) -> list[Any]:
    return [(key, a.dtype, a.shape, a.tobytes(), a.flags.writeable) for key, a in arrays.items()]


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/*"))


def test_a_hit_has_the_bits_that_were_computed(folder: Path) -> None:
    computation = Computation()
    computed = disk_cache.get_or_compute(MODULE, digests(3), computation)
    assert computed[2]["a"].tolist() == [[0, 1]]
    cached = disk_cache.get_or_compute(MODULE, digests(4), computation)
    assert sorted(computation.calls) == [0, 1, 2, 3]
    assert [bits(arrays) for arrays in cached[:3]] == [bits(arrays) for arrays in computed]
    assert not cached[0]["a"].flags.writeable
    assert len(files_in(folder)) == 4
    with disk_cache.disabled():
        fresh = disk_cache.get_or_compute(MODULE, digests(3), computation)
    assert [bits(arrays) for arrays in fresh] == [bits(arrays) for arrays in computed]
    assert len(computation.calls) == 7


def test_equal_digests_are_computed_once() -> None:
    computation = Computation()
    first, second = disk_cache.get_or_compute(
        MODULE, [disk_cache.digest("x"), disk_cache.digest("x")], computation
    )
    assert computation.calls == [0]
    assert bits(first) == bits(second)


def test_different_inputs_have_different_digests() -> None:
    a = np.array([1, 0, 2, 0], dtype=np.int32)
    parts: list[tuple[disk_cache.Part, ...]] = [
        (a,), (a.reshape(2, 2),), (a.view(np.int64),), (a.tobytes(),), (a.astype(float),),
        (-0.0,), (0.0,), (0,), ("0",), (b"0",), (None,), ("",), (), ("a", "b"), ("b", "a"), ("ab",),
        (1,), (1.0,), (True,), ("1;",), (np.array([0.0]),), (np.array([-0.0]),),
    ]  # fmt: skip
    parts += [(np.zeros((0, 2)),), (np.zeros((2, 0)),)]
    assert len({disk_cache.digest(*values) for values in parts}) == len(parts)
    matrix = np.array([[1, 2], [3, 4]])
    assert disk_cache.digest(matrix.T) == disk_cache.digest(np.ascontiguousarray(matrix.T))


def test_changed_sources_are_a_miss(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computation = Computation()
    disk_cache.get_or_compute(MODULE, digests(1), computation)
    disk_cache.get_or_compute("sim.base.arrays", digests(1), computation)
    monkeypatch.setattr(disk_cache.sources, "digest", lambda module: "changed")
    disk_cache.get_or_compute(MODULE, digests(1), computation)
    assert computation.calls == [0, 0, 0]
    assert len(files_in(folder)) == 3


@pytest.mark.parametrize("position", [0, 8, 60, -1])
def test_a_damaged_file_is_computed_again(folder: Path, position: int) -> None:
    computation = Computation()
    inputs = [disk_cache.digest(name) for name in "xyz"]
    computed = disk_cache.get_or_compute(MODULE, inputs, computation)
    file = files_in(folder)[2]
    content = bytearray(file.read_bytes())
    content[position] ^= 1
    file.write_bytes(content)
    half, other = files_in(folder)[:2]
    half.write_bytes(half.read_bytes()[:-5])
    again = disk_cache.get_or_compute(MODULE, inputs, computation)
    assert len(computation.calls) == 5
    assert [bits(arrays) for arrays in again] == [bits(arrays) for arrays in computed]
    other.write_bytes(half.read_bytes())  # intact, but another entry's
    disk_cache.get_or_compute(MODULE, inputs, computation)
    assert len(computation.calls) == 6


def test_entries_that_can_not_be_stored_are_computed_all_the_same(folder: Path) -> None:
    (folder / "file").touch()
    computation = Computation()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk_cache, "cache_dir", lambda: folder / "file")
        assert disk_cache.get_or_compute(MODULE, digests(2), computation)[1]["a"].shape == (1, 1)
        assert len(disk_cache.get_or_compute(MODULE, digests(2), computation)) == 2
    assert len(computation.calls) == 4


def test_the_oldest_files_go_once_the_limit_is_exceeded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(i: int) -> disk_cache.Arrays:
        return Computation()(0)

    inputs = digests(2000)
    # a fixed version, not the module's source of today: file names, hence trims, depend on it
    monkeypatch.setattr(disk_cache.sources, "digest", lambda module: "a version")
    disk_cache.get_or_compute(MODULE, inputs[:500], small)
    old, size = files_in(folder), files_in(folder)[0].stat().st_size
    other = folder / "text-of-kernels" / "00" / "x.nbc"
    for file in old:
        os.utime(file, (1, 1))
    other.parent.mkdir(parents=True)
    other.touch()
    monkeypatch.setattr(disk_cache.sources, "digest", lambda module: "a later version")
    monkeypatch.setattr(disk_cache, "MAX_BYTES", 700 * size)
    new = disk_cache.get_or_compute(MODULE, inputs, small)
    left = [file for file in files_in(folder) if file.suffix == ".kept"]
    assert not {*left} & {*old}
    assert sum(file.stat().st_size for file in left) <= 1300 * size
    assert other.exists()
    assert len(new) == 2000


def test_an_error_is_raised_and_leaves_no_entry(folder: Path) -> None:
    def fails(i: int) -> disk_cache.Arrays:
        if i == 1:
            raise ValueError("not this one")
        return {}

    with pytest.raises(ValueError, match="not this one"):
        disk_cache.get_or_compute(MODULE, digests(2), fails)
    assert len(files_in(folder)) <= 1
    assert len(disk_cache.get_or_compute(MODULE, digests(2), Computation())) == 2


def test_entries_are_computed_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    barrier = threading.Barrier(3, timeout=120)

    def compute(i: int) -> disk_cache.Arrays:
        barrier.wait()
        return {"i": np.array(i)}

    result = disk_cache.get_or_compute(MODULE, digests(6), compute)
    assert [int(arrays["i"]) for arrays in result] == list(range(6))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    computation = Computation()
    inputs = [disk_cache.digest("single", i) for i in range(4)]
    disk_cache.get_or_compute(MODULE, inputs, computation)
    assert computation.calls == [0, 1, 2, 3]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert disk_cache.n_threads() >= 1


WORKER = f"""
import os, sys, time
from pathlib import Path
import numpy as np
from sim.base import disk_cache

log = Path(sys.argv[1]) / "log"

def compute(i):
    with log.open("a") as file:
        file.write(f"{{i}}\\n")
    time.sleep(0.01)
    return {{"i": np.array(i)}}

result = disk_cache.get_or_compute({MODULE!r}, [disk_cache.digest(i) for i in range(40)], compute)
print([int(arrays["i"]) for arrays in result] == list(range(40)))
"""


def test_many_processes_compute_each_entry_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "2"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    assert [worker.communicate(timeout=240)[0].strip() for worker in workers] == ["True"] * 3
    computed = sorted(map(int, (tmp_path / "log").read_text().split()))
    assert computed == list(range(40))
    assert not [*tmp_path.rglob(".tmp-*")]
