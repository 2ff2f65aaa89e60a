"""The same bits on other processors: `tests.same_bits` under what changes NumPy's, BLAS's and the
C library's routines, and under other code of numba's, against digests that were written down.

A digest that is another here was computed on a machine that breaks the promise, or by code that
was changed on purpose: then `python -m tests.same_bits FOLDER functions draws generators cells`
prints the new ones for `expected_bits.json`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numpy._core._multiarray_umath import __cpu_features__

import policies
from sim import evaluators, synth

ROOT = Path(__file__).resolve().parents[2]
EXPECTED: dict[str, str] = json.loads((Path(__file__).parent / "expected_bits.json").read_text())
ALL = ("functions", "draws", "generators", "cells")
NUMPY = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
OLD = {
    "NumPy": {"NPY_DISABLE_CPU_FEATURES": NUMPY},
    "BLAS": {"OPENBLAS_CORETYPE": "Nehalem"},
    "libc": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"},
    "one thread": dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
}
SOME = ("functions", "draws", "plain generators")
ENVIRONMENTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "as it is": ({}, SOME),
    "an old processor": ({k: v for part in OLD.values() for k, v in part.items()}, ALL[:3]),
    "without the JIT": ({"NUMBA_DISABLE_JIT": "1"}, SOME[:2]),
}
LONG: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "all as it is": ({}, ALL),
    "all for an old processor": ({k: v for part in OLD.values() for k, v in part.items()}, ALL),
    **{f"{name} for an old processor": (part, ALL) for name, part in OLD.items()},
    "generators without the JIT": ({"NUMBA_DISABLE_JIT": "1"}, SOME[2:]),
    "all of numba for any processor": ({"NUMBA_CPU_NAME": "generic"}, ALL),
}


def digests(folder: Path, changed: dict[str, str], parts: tuple[str, ...]) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.same_bits", str(folder), *parts],
        cwd=ROOT,
        env={**os.environ, **changed},
        capture_output=True,
        text=True,
        timeout=3600,  # from an empty cache, on a machine with other work
    )
    assert done.returncode == 0, done.stderr
    actual: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return actual


@pytest.mark.parametrize(
    "name", [*ENVIRONMENTS, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_the_digests_are_those_written_down(tmp_path: Path, name: str) -> None:
    actual = digests(tmp_path, *(ENVIRONMENTS | LONG)[name])
    assert actual
    other = {key for key, digest in actual.items() if digest != EXPECTED.get(key)}
    assert not other, f"{name}: {sorted(other)} have other bits than were written down"


def test_every_policy_evaluator_and_generator_is_there() -> None:
    for kind, names in (("policy", policies.names()), ("evaluator", evaluators.names())):
        missing = {f"cells: {kind} {name}" for name in names} - EXPECTED.keys()
        assert not missing - {"cells: evaluator simulation"}, "and policies are simulated"
    assert {f"generators: {name}" for name in synth.names()} <= EXPECTED.keys()


def test_numpys_own_differ() -> None:
    """If they did not, the environments above would show nothing."""
    if not __cpu_features__.get("X86_V4"):
        pytest.skip("this processor has no AVX-512, of which NumPy makes other exponentials")
    code = "import numpy, hashlib; x = numpy.exp(numpy.linspace(0, 9, 100_001))"
    seen = [
        subprocess.run(
            [sys.executable, "-c", f"{code}; print(hashlib.sha256(x.tobytes()).hexdigest())"],
            env={**os.environ, **changed},
            capture_output=True,
            check=True,
        ).stdout
        for changed in ({}, {"NPY_DISABLE_CPU_FEATURES": NUMPY})
    ]
    assert seen[0] != seen[1]
