"""Compiling what a sweep will need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sim import Workload
from sim.engine.kernels import run
from sweep.run import warming
from sweep.store.cell import CellSpec

STAGE = {"durations_s": [1.0, 2.0], "demand": {"cpu": 1.0}}
JOBS = [{"submit_s": float(at), "stages": [STAGE]} for at in range(9)]


def spec(policy: str, shape: Any = "slots", count: float = 4, **options: Any) -> CellSpec:
    cluster = {"shape": shape, "count": count, "queues": {}, "fungible": []}
    described = {"name": policy, "module": None, "params": options}
    return CellSpec("k", described, cluster, {"name": "simulation"}, 0)


def jobs() -> Workload:
    return Workload.from_jobs(JOBS)


def lost() -> Workload:
    raise ValueError("no such")


def test_looks_at_one_cell_of_a_kind_and_at_a_few_jobs() -> None:
    kinds = [spec("fifo"), spec("fifo", count=8), spec("las"), spec("fifo", {"cpu": 4})]
    again = [replace(one, seed=1) for one in kinds]
    few, specs = warming.sample(kinds + again, jobs)
    assert few is not None
    assert few.n_jobs == warming.FEW_JOBS
    assert specs == [kinds[0], kinds[2], kinds[3]]


def test_leaves_what_goes_wrong_to_the_cells() -> None:
    assert warming.sample([spec("fifo")], lost) == (None, [])
    assert warming.sample([spec("none")], jobs) == (None, [])
    few, _ = warming.sample([spec("fifo")], jobs)
    assert few is not None
    assert warming.missing([], few, [spec("no_such_policy")]) == []
    warming.compile_for([], few, spec("no_such_policy"))


def test_a_variant_is_missing_once_and_only_if_it_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, _ = warming.sample([spec("fifo")], jobs)
    assert few is not None
    monkeypatch.setattr(run, "is_compiled", lambda features: "MOVING" in features)
    specs = [spec("fifo"), spec("sjf"), spec("srpt"), spec("fifo", {"cpu": 4})]
    assert warming.missing([], few, specs) == [specs[0], specs[3]]


def test_what_was_compiled_ahead_is_kept() -> None:
    few, specs = warming.sample([spec("fifo")], jobs)
    assert few is not None
    warming.compile_for([], few, specs[0])
    assert warming.missing([], few, specs) == []
