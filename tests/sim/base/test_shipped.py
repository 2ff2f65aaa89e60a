"""Kernels that come with the wheel: compiled ahead, for any processor of a kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import jit, kernel_cache
from sim.base.sources import modules

pytestmark = pytest.mark.skipif(not jit.JIT, reason="nothing is compiled")

ROOT = Path(__file__).resolve().parents[3]

ORDER = """
import sys
from pathlib import Path
from sim.base import kernel_cache
kernel_cache.SHIPPED = Path(sys.argv[1])
import numpy as np
from sim.workload.kernels.paths import by_child
parts = by_child(3, np.array([1, 2, 1], np.int32))
print([part.tolist() for part in parts], sum(by_child.stats.cache_hits.values()))
"""

PRODUCT = """
import sys
import numba, numpy as np
from sim.workload.kernels.paths import by_child
by_child(3, np.array([1, 2, 1], np.int32))
print("scipy.linalg" in sys.modules)
print(numba.njit(lambda a: np.dot(a, a))(np.eye(2)).tolist())
"""


def ran(code: str, cache: Path, *arguments: str, **environment: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT), **environment},
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, done.stderr


@pytest.mark.long
def test_a_kernel_of_the_wheel_is_used_until_it_is_damaged(tmp_path: Path) -> None:
    wheel, own = tmp_path / "wheel", tmp_path / "own"
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    compiled, _ = ran(ORDER, wheel, "nowhere", **generic)
    assert compiled.endswith(" 0\n")
    loaded = compiled.replace(" 0\n", " 1\n")
    assert ran(ORDER, own, str(wheel)) == (loaded, "")
    assert not list(own.rglob("*.nbc"))
    (file,) = wheel.rglob("*.nbc")
    file.write_bytes(file.read_bytes()[:-40])
    output, message = ran(ORDER, own, str(wheel))
    assert output == compiled
    assert str(file) in message
    assert ran(ORDER, own, str(wheel)) == (loaded, "")
    assert len(list(own.rglob("*.nbc"))) == 1


def test_a_variant_of_the_wheel_needs_no_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sim.workload.kernels.paths import by_child

    monkeypatch.setattr(kernel_cache, "SHIPPED", tmp_path)
    features = frozenset({"TEST_OF_THE_WHEEL"})
    assert not jit.is_cached(by_child, features)
    function = by_child.py_func  # type: ignore[attr-defined]
    name = jit._variant_name(function, features)
    stem = kernel_cache.file_stem(function.__module__, name, features)
    folder = kernel_cache.shipped_folder(function.__module__)
    kernel_cache.write_checked(folder / f"{stem}.0123.nbc", b"code")
    assert jit.is_cached(by_child, features)


def test_a_compiled_kernel_is_no_data_of_a_package(tmp_path: Path) -> None:
    for name in ("__init__.py", "numbers.csv", "compiled/run-0123/run.run-plain.4567.nbc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    package = modules.Module("sim.somewhere", tmp_path / "__init__.py")
    assert list(modules.data_files(package)) == [tmp_path / "numbers.csv"]


def test_scipy_is_imported_for_those_who_need_it_alone(tmp_path: Path) -> None:
    cache = kernel_cache.cache_dir()
    assert ran(PRODUCT, cache)[0] == "False\n[[1.0, 0.0], [0.0, 1.0]]\n"
