"""What is kept by digest: found to the bit, made once, and made anew whenever in doubt."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sim.base import kept

ROOT = Path(__file__).resolve().parents[3]
ME = "sim.base.text"  # any module will do


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(kept, "cache_dir", lambda: tmp_path)
    return tmp_path


class Maker:
    def __init__(self) -> None:
        self.made: list[int] = []

    def __call__(self, i: int) -> kept.Arrays:
        self.made.append(i)
        return {"a": np.arange(i, dtype=np.int32).reshape(1, i), "b": np.array(0.1 * i)}


def names(n: int) -> list[bytes]:
    return [kept.digest(i) for i in range(n)]


def bits(arrays: kept.Arrays) -> list[Any]:
    return [(key, a.dtype, a.shape, a.tobytes(), a.flags.writeable) for key, a in arrays.items()]


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*/*"))


def test_what_was_made_is_found_with_the_same_bits(folder: Path) -> None:
    maker = Maker()
    made = kept.each(ME, names(3), maker)
    assert made[2]["a"].tolist() == [[0, 1]]
    found = kept.each(ME, names(4), maker)
    assert sorted(maker.made) == [0, 1, 2, 3]
    assert [bits(one) for one in found[:3]] == [bits(one) for one in made]
    assert not found[0]["a"].flags.writeable
    assert len(files_in(folder)) == 4
    with kept.nothing():
        assert [bits(one) for one in kept.each(ME, names(3), maker)] == [bits(one) for one in made]
    assert len(maker.made) == 7


def test_the_same_twice_is_made_once() -> None:
    maker = Maker()
    first, second = kept.each(ME, [kept.digest("x"), kept.digest("x")], maker)
    assert maker.made == [0]
    assert bits(first) == bits(second)


def test_all_that_differs_has_another_digest() -> None:
    a = np.array([1, 0, 2, 0], dtype=np.int32)
    parts: list[tuple[kept.Part, ...]] = [
        (a,), (a.reshape(2, 2),), (a.view(np.int64),), (a.tobytes(),), (a.astype(float),),
        (-0.0,), (0.0,), (0,), ("0",), (b"0",), (None,), ("",), (), ("a", "b"), ("b", "a"), ("ab",),
        (1,), (1.0,), (True,), ("1;",), (np.array([0.0]),), (np.array([-0.0]),),
    ]  # fmt: skip
    parts += [(np.zeros((0, 2)),), (np.zeros((2, 0)),)]
    assert len({kept.digest(*some) for some in parts}) == len(parts)
    turned = np.array([[1, 2], [3, 4]])
    assert kept.digest(turned.T) == kept.digest(np.ascontiguousarray(turned.T))


def test_other_sources_find_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = Maker()
    kept.each(ME, names(1), maker)
    kept.each("sim.base.arrays", names(1), maker)
    monkeypatch.setattr(kept.sources, "digest", lambda module: "changed")
    kept.each(ME, names(1), maker)
    assert maker.made == [0, 0, 0]
    assert len(files_in(folder)) == 3


@pytest.mark.parametrize("at", [0, 8, 60, -1])
def test_a_damaged_file_is_made_anew(folder: Path, at: int) -> None:
    maker = Maker()
    made = kept.each(ME, [kept.digest("x"), kept.digest("y"), kept.digest("z")], maker)
    file = files_in(folder)[2]
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)
    half, other = files_in(folder)[:2]
    half.write_bytes(half.read_bytes()[:-5])
    again = kept.each(ME, [kept.digest("x"), kept.digest("y"), kept.digest("z")], maker)
    assert len(maker.made) == 5
    assert [bits(one) for one in again] == [bits(one) for one in made]
    other.write_bytes(half.read_bytes())  # whole, but somebody else's
    kept.each(ME, [kept.digest("x"), kept.digest("y"), kept.digest("z")], maker)
    assert len(maker.made) == 6


def test_what_can_not_be_kept_is_made_all_the_same(folder: Path) -> None:
    (folder / "file").touch()
    maker = Maker()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "cache_dir", lambda: folder / "file")
        assert kept.each(ME, names(2), maker)[1]["a"].shape == (1, 1)
        assert len(kept.each(ME, names(2), maker)) == 2
    assert len(maker.made) == 4


def test_the_oldest_goes_where_there_is_too_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(i: int) -> kept.Arrays:
        return Maker()(0)

    made_from = names(2000)
    # not by what the module's source is today: which files are looked at follows from it
    monkeypatch.setattr(kept.sources, "digest", lambda module: "a version")
    kept.each(ME, made_from[:500], small)
    old, size = files_in(folder), files_in(folder)[0].stat().st_size
    other = folder / "text-of-kernels" / "00" / "x.nbc"
    for file in old:
        os.utime(file, (1, 1))
    other.parent.mkdir(parents=True)
    other.touch()
    monkeypatch.setattr(kept.sources, "digest", lambda module: "a later version")
    monkeypatch.setattr(kept, "MOST_BYTES", 700 * size)
    new = kept.each(ME, made_from, small)
    left = [file for file in files_in(folder) if file.suffix == ".kept"]
    assert not {*left} & {*old}
    assert sum(file.stat().st_size for file in left) <= 1300 * size
    assert other.exists()
    assert len(new) == 2000


def test_an_error_is_raised_and_nothing_of_it_is_kept(folder: Path) -> None:
    def fails(i: int) -> kept.Arrays:
        if i == 1:
            raise ValueError("not this one")
        return {}

    with pytest.raises(ValueError, match="not this one"):
        kept.each(ME, names(2), fails)
    assert len(files_in(folder)) <= 1
    assert len(kept.each(ME, names(2), Maker())) == 2


def test_things_are_made_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    together = threading.Barrier(3, timeout=120)

    def make(i: int) -> kept.Arrays:
        together.wait()
        return {"i": np.array(i)}

    assert [int(one["i"]) for one in kept.each(ME, names(6), make)] == list(range(6))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    maker = Maker()
    kept.each(ME, [kept.digest("one", i) for i in range(4)], maker)
    assert maker.made == [0, 1, 2, 3]
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert kept.n_threads() >= 1


WORKER = f"""
import os, sys, time
from pathlib import Path
import numpy as np
from sim.base import kept

log = Path(sys.argv[1]) / "log"

def make(i):
    with log.open("a") as file:
        file.write(f"{{i}}\\n")
    time.sleep(0.01)
    return {{"i": np.array(i)}}

found = kept.each({ME!r}, [kept.digest(i) for i in range(40)], make)
print([int(one["i"]) for one in found] == list(range(40)))
"""


def test_many_processes_make_each_thing_once(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "2"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    assert [worker.communicate(timeout=240)[0].strip() for worker in workers] == ["True"] * 3
    made = sorted(map(int, (tmp_path / "log").read_text().split()))
    assert made == list(range(40))
    assert not [*tmp_path.rglob(".tmp-*")]
