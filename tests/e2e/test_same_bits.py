"""Same bits on other processors: run `tests.same_bits` with other routines of NumPy, BLAS and the
C library, and with other code from numba, and compare the digests with `expected_bits.json`.

A digest differs if this machine breaks the promise, or if code was changed on purpose: then
`python -m tests.same_bits FOLDER functions draws generators cells` prints the new digests for
`expected_bits.json`.
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
from sim.base import entry_points
from sim.base.entry_points import PROJECT

ROOT = Path(__file__).resolve().parents[2]
EXPECTED: dict[str, str] = json.loads((Path(__file__).parent / "expected_bits.json").read_text())
ALL = ("functions", "draws", "generators", "cells")
NUMPY = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
OLD_PROCESSOR = {
    "NumPy": {"NPY_DISABLE_CPU_FEATURES": NUMPY},
    "BLAS": {"OPENBLAS_CORETYPE": "Nehalem"},
    "libc": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"},
    "one thread": dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
}
QUICK = ("functions", "draws", "plain generators")
ENVIRONMENTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "as it is": ({}, QUICK),
    "without the JIT": ({"NUMBA_DISABLE_JIT": "1"}, QUICK[:2]),
}
LONG: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "all as it is": ({}, ALL),
    "all for an old processor": (
        {k: v for part in OLD_PROCESSOR.values() for k, v in part.items()},
        ALL,
    ),
    **{f"{name} for an old processor": (part, ALL) for name, part in OLD_PROCESSOR.items()},
    "generators without the JIT": ({"NUMBA_DISABLE_JIT": "1"}, QUICK[2:]),
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
def test_digests_match_the_expected_bits(tmp_path: Path, name: str) -> None:
    changed, parts = (ENVIRONMENTS | LONG)[name]
    actual = digests(tmp_path, changed, parts)
    assert len(actual.keys() & EXPECTED.keys()) >= (15 if len(parts) > 1 else 5)
    differing = {key for key in actual.keys() & EXPECTED.keys() if actual[key] != EXPECTED[key]}
    assert not differing, f"{name}: {sorted(differing)} have other bits than were written down"


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("policies", "cells: policy"),
        ("evaluators", "cells: evaluator"),
        ("generators", "generators:"),
    ],
)
def test_every_plug_in_of_a_system_has_a_digest(kind: str, part: str) -> None:
    entries = entry_points.installed(kind)
    named = {f"{part} {n}" for n, e in entries.items() if e.package == PROJECT}
    assert not named - EXPECTED.keys()


def test_digests_are_of_policies_evaluators_and_generators() -> None:
    """One of the core may be new, and have none yet; none that has one may go without a word."""
    cells = {name.split()[-1] for name in EXPECTED if name.startswith("cells: ")}
    assert {name for name in cells if "/" not in name} - {"later"} <= {
        *policies.names(), *evaluators.names(),
    }  # fmt: skip
    drawn = {name.split()[1] for name in EXPECTED if name.startswith("generators: ")}
    assert drawn <= {*synth.names()}
    assert len(cells) >= 82
    assert len(drawn) >= 9


def test_numpys_exponentials_differ_between_processors() -> None:
    """Otherwise the environments above would test nothing."""
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
