"""Inside of a worker: modules of the user, changed sources, kernels compiled ahead."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policies import orders
from sim import Workload
from sim.engine import simulate
from sim.engine.kernels import run as kernel
from sweep.execution import task
from sweep.execution.result_batch import FlushPolicy, TaskPayload
from sweep.execution.task import Variant, add_module_folders, run_batch
from sweep.execution.workload_build import N_FIRST_JOBS, Clusters, first_jobs
from sweep.store import sources
from sweep.store.cell import CellResult, CellSpec
from tests.sweep.small import fake_simulate

AT_ONCE = FlushPolicy(flush_s=60.0, stop_s=60.0)
SPEC = CellSpec(
    key="k",
    policy={"name": "fifo", "module": None, "params": {}},
    cluster={"shape": "slots", "count": 1, "load": None},
    capacity=1.0,
    evaluator={"name": "simulation"},
    seed=0,
)


@pytest.fixture
def spec() -> CellSpec:
    return SPEC._replace(sources=sources.cell_digest(SPEC.policy, SPEC.evaluator))


@pytest.fixture
def workload() -> Workload:
    return Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])


def run(
    workload: Workload, specs: Sequence[CellSpec], pace: FlushPolicy = AT_ONCE
) -> list[list[CellResult]]:
    return [
        part.results
        for part in run_batch(workload, TaskPayload(specs, pace, simulate=fake_simulate))
    ]


def test_runs_cells_in_order(workload: Workload, spec: CellSpec) -> None:
    (results,) = run(workload, [spec._replace(key=key) for key in "abc"])
    assert [(result.key, result.error) for result in results] == [(k, None) for k in "abc"]
    assert all(result.jobs is not None for result in results)


def test_hands_over_after_every_cell_where_care_is_asked_for(
    workload: Workload, spec: CellSpec
) -> None:
    parts = run(workload, [spec._replace(key=key) for key in "abc"], FlushPolicy(0.0, 60.0))
    assert [[result.key for result in part] for part in parts] == [["a"], ["b"], ["c"]]


def test_begins_no_cell_when_its_time_is_up(workload: Workload, spec: CellSpec) -> None:
    (results,) = run(workload, [spec._replace(key=key) for key in "abc"], FlushPolicy(60.0, 0.0))
    assert [result.key for result in results] == ["a"]


def test_no_cell_is_watched_while_a_part_waits_to_be_taken(
    workload: Workload, spec: CellSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str | None] = []
    monkeypatch.setattr(task, "watching", lambda _: contextlib.nullcontext(keys.append))
    parts = run_batch(
        workload, TaskPayload([spec, spec], FlushPolicy(0.0, 60.0), simulate=fake_simulate)
    )
    next(parts)
    assert keys == ["k", None]


def test_refuses_other_sources_than_the_drivers(workload: Workload, spec: CellSpec) -> None:
    specs = [spec._replace(sources="older"), spec, spec._replace(sources="")]
    ((first, second, third),) = run(workload, specs)
    assert first.error is not None
    assert first.error["stage"] == "sources"
    assert "run the same command again" in first.error["message"]
    assert second.error is third.error is None


def test_a_module_that_is_missing_here_is_the_cells_error(workload: Workload) -> None:
    policy = {"name": "nobody", "module": "no_such_module_here", "params": {}}
    ((result,),) = run(workload, [SPEC._replace(policy=policy)])
    assert result.error is not None
    assert result.error["stage"] == "policy"
    assert "no_such_module_here" in result.error["message"]


def test_finds_a_users_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    add_module_folders([str(tmp_path), str(tmp_path)])
    assert sys.path.count(str(tmp_path)) == 1


STAGE = {"durations_s": [1.0, 2.0], "demand": {"cpu": 1.0}}
JOBS = [{"submit_s": float(index), "stages": [STAGE]} for index in range(9)]


def spec_of(policy: str, shape: Any = "slots", count: float = 4, **options: Any) -> CellSpec:
    cluster = {"shape": shape, "count": count, "load": None}
    described = {"name": policy, "module": None, "params": options}
    return CellSpec("k", described, cluster, 1.0, {"name": "simulation"}, 0)


def variants(*specs: CellSpec) -> tuple[Workload, list[Variant]]:
    few, cells = task.sample_variants(specs, lambda: jobs(specs))
    assert few is not None
    return few, cells


def jobs(specs: Sequence[CellSpec]) -> tuple[Workload, Clusters]:
    workload, built = Workload.from_jobs(JOBS), Clusters()
    for spec in specs:
        built.get_or_build(workload, spec.cluster, spec.capacity)
    return first_jobs(workload), built


def lost() -> tuple[Workload, Clusters]:
    raise ValueError("no such")


def test_looks_at_one_cell_of_a_kind_and_at_a_few_jobs() -> None:
    kinds = [spec_of("fifo"), spec_of("fifo", count=8), spec_of("las"), spec_of("fifo", {"cpu": 4})]
    again = [member._replace(seed=1) for member in kinds]
    few, cells = variants(*kinds, *again)
    assert few.n_jobs == N_FIRST_JOBS
    assert [spec for spec, _ in cells] == [kinds[0], kinds[2], kinds[3]]


def test_leaves_what_goes_wrong_to_the_cells() -> None:
    assert task.sample_variants([spec_of("fifo")], lost) == (None, [])
    assert task.sample_variants([spec_of("none")], lambda: jobs([])) == (None, [])
    few, cells = variants(spec_of("no_such_policy"))
    assert task.missing_variants([], few, cells) == []
    task.compile_variant([], few, cells[0])


@pytest.mark.exact
def test_a_variant_is_missing_once_and_only_if_it_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel, "is_compiled", lambda features: "DYNAMIC_ORDER" in features)
    few, cells = variants(*map(spec_of, ("fifo", "sjf", "srpt")), spec_of("fifo", {"cpu": 4}))
    assert task.missing_variants([], few, cells) == [cells[0], cells[3]]


@pytest.mark.exact
@pytest.mark.long
def test_what_was_compiled_ahead_is_kept() -> None:
    few, cells = variants(spec_of("fifo"))
    task.compile_variant([], few, cells[0])
    assert task.missing_variants([], few, cells) == []


def test_cells_that_move_each_task_by_itself_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def variant(few_jobs: Workload, cluster: Any, policy: Any) -> frozenset[str]:
        if isinstance(policy, orders.ShortestJobFirst):
            raise ValueError("the cell itself will report it")
        return frozenset({"BATCHES"} if isinstance(policy, orders.Fifo) else {"SKIP"})

    monkeypatch.setattr(simulate, "variant", variant)
    specs = [spec_of(name) for name in ("fifo", "sjf", "srpt")]
    assert task.find_by_task([], *variants(*specs)) == {task.variant_key(specs[2])}
    assert task.variant_key(specs[2]) == task.variant_key(specs[2]._replace(seed=3, capacity=2.0))
