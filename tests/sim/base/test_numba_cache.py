"""A damaged compiled kernel is never loaded: it is deleted, logged and compiled again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sim.base import jit, numba_cache
from sim.base.kernel_cache import is_intact, verify
from sim.workload.kernels import paths

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")

ROOT = Path(__file__).resolve().parents[3]

ORDER = """
import numpy as np
from sim.workload.kernels.paths import by_child
print([part.tolist() for part in by_child(3, np.array([1, 2, 1], np.int32))])
"""

SIMULATE = """
import policies, sim
stage = {"durations_s": [1.0, 2.0]}
workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [stage]}] * 3)
print(sorted(sim.simulate(workload, sim.Cluster.slots(1), policies.build("srpt")).metrics.items()))
"""


def total(x):
    result = 0.0
    for value in x:
        result += value
    return result


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Flip a bit, cut the end off, or set a range to zero."""
    while True:
        whole = bytearray(content)
        begin = draw.randrange(len(whole))
        kind = draw.choice(("flip", "cut", "zeros"))
        if kind == "flip":
            whole[begin] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del whole[begin:]
        else:
            end = min(len(whole), begin + draw.randrange(1, 4096))
            whole[begin:end] = bytes(end - begin)
        if whole != content:  # there were zeros already
            return bytes(whole)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of all kernels that this test compiles."""
    return use(tmp_path / "kernels", monkeypatch)


def use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (jit, numba_cache):
        monkeypatch.setattr(module, "module_folder", lambda name: folder)
    numba_cache._log_not_stored.cache_clear()
    return folder


def compiled(function: Callable[..., object] = total):
    return jit._compile(function, cache=True)


def loaded_and_right() -> bool:
    """Run a new kernel, check its result, and return True if it was loaded."""
    kernel = compiled()
    assert kernel(np.array([1.0, 2.0, 4.5])) == 7.5
    return bool(sum(kernel.stats.cache_hits.values()))


def file_in(folder: Path, pattern: str = "*.nbc") -> Path:
    (file,) = folder.glob(pattern)
    return file


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the files of a few compiled kernels."""
    with pytest.MonkeyPatch.context() as patch:
        folder = use(tmp_path_factory.mktemp("kernels"), patch)
        parents = np.array([0, 1], np.int32)
        compiled()(np.ones(1))
        compiled(paths.by_child.py_func)(3, parents)
        compiled(paths.depths.py_func)(parents.astype(np.int64), np.array([0, 1, 1]), parents[1:])
    files = sorted(folder.glob("*.nbc"))
    assert len(files) >= 3
    return files


@pytest.mark.parametrize("seed", range(8))
def test_no_random_damage_is_read(kernels: list[Path], seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(40):
        file = draw.choice(kernels)
        content = file.read_bytes()
        try:
            file.write_bytes(damaged(content, draw))
            assert not is_intact(file)
            with pytest.raises(ValueError, match="checksum"):
                verify(file)
        finally:
            file.write_bytes(content)
        assert is_intact(file)


def test_neither_a_missing_checksum_nor_the_file_of_another_kernel_or_version_is_read(
    kernels: list[Path], tmp_path: Path
) -> None:
    kernel, other = kernels[:2]
    wrong = {
        "no checksum": kernel.read_bytes()[:-32],
        "empty": b"",
        "checksum alone": kernel.read_bytes()[-32:],
        "another kernel": other.read_bytes(),
        "longer": kernel.read_bytes() + b"\0",
    }
    before = kernel.read_bytes()
    for content in wrong.values():
        kernel.write_bytes(content)
        assert not is_intact(kernel)
    kernel.write_bytes(before)
    assert is_intact(kernel)
    other_version = tmp_path / "paths-0123456789abcdef" / kernel.name
    other_version.parent.mkdir()
    other_version.write_bytes(before)
    assert not is_intact(other_version)


def test_a_damaged_kernel_is_deleted_named_and_compiled_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(0)
    assert not loaded_and_right()
    assert loaded_and_right()
    file = file_in(folder)
    for _ in range(15):
        caplog.clear()
        file.write_bytes(damaged(file.read_bytes(), draw))
        assert not loaded_and_right()
        (record,) = caplog.records
        assert str(file) in record.message
        assert loaded_and_right()
    file.unlink()
    caplog.clear()
    assert not loaded_and_right()
    assert not caplog.records


def test_a_kernel_that_cannot_be_read_or_deleted_is_compiled(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not loaded_and_right()
    file = file_in(folder)
    file.unlink()
    file.mkdir()
    assert not loaded_and_right()
    damage, not_kept = caplog.messages
    assert f"{file} is damaged (Is a directory): it can't be deleted" in damage
    assert "can't be cached" in not_kept


def test_a_folder_that_is_none_is_named_once_and_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    use(tmp_path / "file", monkeypatch)
    for _ in range(2):
        assert not loaded_and_right()
    (message,) = caplog.messages
    assert "can't be cached" in message
    assert "NUMBA_CACHE_DIR" in message


def test_a_damaged_variant_counts_as_not_compiled(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    features, args = frozenset({"TEST_OF_DAMAGE"}), (3, np.array([0, 1], np.int32))
    assert not jit.is_cached(paths.by_child, features)
    first = jit.compiled(jit.specialised(paths.by_child, features), *args, message="compiling")
    assert caplog.messages == ["compiling"]
    assert jit.is_cached(paths.by_child, features)
    file = file_in(folder)
    file.write_bytes(damaged(file.read_bytes(), random.Random(1)))
    assert not jit.is_cached(paths.by_child, features)
    caplog.clear()
    variant = jit.specialised.__wrapped__(paths.by_child, features)
    again = jit.compiled(variant, *args, message="compiling")
    (message,) = caplog.messages  # one: the damage says enough
    assert str(file) in message
    for part, same in zip(again(*args), first(*args), strict=True):
        np.testing.assert_array_equal(part, same)
    assert jit.is_cached(paths.by_child, features)


def start(code: str, cache: Path, **options: object) -> subprocess.Popen[str]:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # type: ignore[call-overload]  # fmt: skip


def outcome(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    out, error = process.communicate(timeout=600)
    assert process.returncode == 0, error
    return out, error.splitlines()


@pytest.mark.long
def test_of_processes_that_find_damage_together_one_compiles(tmp_path: Path) -> None:
    right, _ = outcome(start(ORDER, tmp_path))
    file = file_in(tmp_path, "*/*.nbc")
    file.write_bytes(file.read_bytes()[:-100])
    outcomes = [outcome(process) for process in [start(ORDER, tmp_path) for _ in range(4)]]
    assert [out for out, _ in outcomes] == [right] * 4
    (line,) = [line for _, lines in outcomes for line in lines]
    assert str(file) in line
    assert is_intact(file)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    right, _ = outcome(start(ORDER, tmp_path / "room"))
    out, lines = outcome(start(ORDER, tmp_path / "full", preexec_fn=small_files))
    assert out == right
    (line,) = lines
    assert f"can't be cached in {tmp_path / 'full'} (File too large)" in line
    left = [file for file in (tmp_path / "full").rglob("*") if file.is_file()]
    assert [file.name for file in left] == ["locks"]


@pytest.mark.long
def test_a_simulation_with_damaged_kernels_gives_the_same_numbers(tmp_path: Path) -> None:
    right, _ = outcome(start(SIMULATE, tmp_path))
    loop = file_in(tmp_path, "run-*/*.nbc")
    bounds = next(iter(tmp_path.glob("bounds-*/*.nbc")))
    content = bytearray(loop.read_bytes())
    content[len(content) // 3] ^= 1  # in machine code
    loop.write_bytes(content)
    bounds.write_bytes(bounds.read_bytes()[:10_000])
    out, lines = outcome(start(SIMULATE, tmp_path))
    assert out == right
    assert len(lines) == 2
    assert all(any(str(file) in line for line in lines) for file in (loop, bounds))
    assert outcome(start(SIMULATE, tmp_path)) == (right, [])


@pytest.mark.long
def test_each_kernel_of_a_simulation_may_be_damaged(tmp_path: Path) -> None:
    draw = random.Random(2)
    right, _ = outcome(start(SIMULATE, tmp_path))
    for file in sorted(tmp_path.glob("*/*.nbc")):
        file.write_bytes(damaged(file.read_bytes(), draw))
        out, (line,) = outcome(start(SIMULATE, tmp_path))
        assert out == right
        assert str(file) in line
        assert is_intact(file)
