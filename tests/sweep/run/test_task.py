from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sim import Workload
from sweep.run.cell import CellSpec
from sweep.run.task import find_modules_in, run_batch, warm_up
from sweep.store import sources
from tests.sweep.small import fake_simulate

SPEC = CellSpec(
    key="k",
    policy={"name": "fifo", "module": None, "params": {}},
    cluster={"shape": "slots", "count": 1, "queues": {}},
    measure={"name": "simulation"},
    seed=0,
)


@pytest.fixture
def spec() -> CellSpec:
    return replace(SPEC, sources=sources.of_cell(SPEC.policy, SPEC.measure))


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])


def test_runs_cells_in_order(workload: Workload, spec: CellSpec) -> None:
    specs = [replace(spec, key=key) for key in "abc"]
    results = run_batch(workload, specs, [], fake_simulate)
    assert [(result.key, result.error) for result in results] == [(k, None) for k in "abc"]


def test_refuses_other_sources_than_the_drivers(workload: Workload, spec: CellSpec) -> None:
    specs = [replace(spec, sources="older"), spec, replace(spec, sources="")]
    first, second, third = run_batch(workload, specs, [], fake_simulate)
    assert first.error is not None
    assert first.error["stage"] == "sources"
    assert "run the same command again" in first.error["message"]
    assert second.error is third.error is None


def test_a_module_that_is_missing_here_is_the_cells_error(workload: Workload) -> None:
    policy = {"name": "nobody", "module": "no_such_module_here", "params": {}}
    (result,) = run_batch(workload, [replace(SPEC, policy=policy)], [], fake_simulate)
    assert result.error is not None
    assert result.error["stage"] == "policy"
    assert "no_such_module_here" in result.error["message"]


def test_finds_a_users_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    find_modules_in([str(tmp_path), str(tmp_path)])
    assert sys.path.count(str(tmp_path)) == 1


def test_warms_up_every_kernel_it_will_need() -> None:
    warm_up([])
