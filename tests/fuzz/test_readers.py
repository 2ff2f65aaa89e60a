"""Short fuzzing: the same damaged files for every reader on every run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import sim
import sim.traces
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import _JOB, TARGETS, _lines, check

N_FILES = {"request": 8, "option": 8, "overrides": 60}  # composing a configuration takes long
ALL = 80


@pytest.mark.parametrize("name", sim.traces.names())
def test_every_trace_format_has_a_target(name: str) -> None:
    assert name in TARGETS, (
        f"sim.traces.{name} has no sample: add a small file tests/fuzz/samples/{name}.txt, or a "
        "target to tests/fuzz/targets.py"
    )


@pytest.mark.parametrize("name", TARGETS)
def test_samples_are_read(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    for position, sample in enumerate(target.samples):
        folder = tmp_path / str(position)
        folder.mkdir()
        assert check(target, sample, folder) == "read"


FOUND = {
    "overrides": (
        b"seed=range(0,5,0)",
        b"seed=range(0,5,nan)",
        b"seed=range(0,9999999999999999999)",
        b"trace=glob([[]])",
    ),
    "alibaba2018": (
        b"M1,2,j_1,1,Terminated,100,110,1999999999999999999900.0,0.5\n",
        b"M1,2,j_1,1,Terminated,100,110,100.0,1e308\n",
    ),
    "google2011": (
        _lines({**_JOB, "user": "\ud800"}),
        _lines(_JOB).replace(b'"submit_s": 9.0', b'"submit_s": 1' + b"0" * 400),
    ),
    "option": (
        b"name: fifo\na0: &a0 [x,x]\n"
        + b"".join(
            b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)
        ),
        b"name: fifo\na: &a [*a]\n",
        b"name: fifo\na: " + b"[" * 3000 + b"]" * 3000,
        b"\x8b\xff",
        b"name: fifo\nsince: 2001-99-99\n",
        b"5\n",
    ),
}
"""Inputs that fuzzing found: other exceptions, warnings, an axis without end."""


@pytest.mark.parametrize("name", FOUND)
def test_inputs_found_by_fuzzing_are_refused(name: str, tmp_path: Path) -> None:
    for content in FOUND[name]:
        assert check(TARGETS[name], content, tmp_path) == "refused", content


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]

    # shrinking takes minutes: the content that is shown is small
    @settings(
        max_examples=N_FILES.get(name, ALL),
        phases=(Phase.generate,),
        derandomize=True,
        deadline=None,
    )
    @given(st.randoms(use_true_random=False))
    def damaged(rng: random.Random) -> None:
        content = mutated(rng.choice(target.samples), rng)
        try:
            check(target, content, tmp_path)
        except Exception as error:
            raise AssertionError(f"on {content!r}") from error

    damaged()
