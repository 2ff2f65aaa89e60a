"""Cells that another sweep keeps while this one runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sweep.execution import compute, plan
from sweep.execution.on_ray.task_queue import SHARED_S, TaskQueue
from sweep.execution.plan import PlannedCell
from sweep.execution.rerun import rerun
from sweep.grid import grid
from sweep.store.journal import Journal
from sweep.store.lease import EXPIRES_S
from tests.sweep.small import Command, every_file, fake_engine, fake_simulate, planned

GRID = ("policy=fifo,las", "seed=range(0,3)")
SYNTH = ("trace=alibaba_synth", "trace.jobs=20")


@pytest.mark.parametrize("trace", [(), SYNTH], ids=["read", "synthesized"])
def test_what_another_sweep_has_kept_meanwhile_is_not_run(
    fake: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trace: tuple[str, ...]
) -> None:
    undisturbed = fake.bare(*fake.words(*GRID, *trace), f"paths.results={tmp_path / 'other'}")
    monkeypatch.setattr(compute, "REFRESH_EVERY_S", 0.0)
    monkeypatch.setattr(compute, "REFRESH_SHARE", math.inf)  # however slow a refresh is
    other = plan.prepare(grid.build(fake.request("policy=las", "seed=0,1", *trace)))
    simulated: list[Any] = []

    def simulate(*args: Any, **options: Any) -> Any:
        simulated.append((args[2].name, options["seed"]))
        if len(simulated) == 1:
            fake_engine(monkeypatch)
            other.cache.put_many([(rerun(other.inputs, cell), {}) for cell in other.planned])
            fake_engine(monkeypatch, simulate)
        return fake_simulate(*args, **options)

    fake_engine(monkeypatch, simulate)
    ran = fake(*GRID, *trace)
    assert ran.code == 0, ran.err
    assert sorted(simulated) == [("fifo", 0), ("fifo", 1), ("fifo", 2), ("las", 2)]
    assert {row["status"] for row in ran.rows} == {"done"}
    name = "cells.parquet"
    assert every_file(ran.folder)[name] == every_file(undisturbed.folder)[name]


def test_a_batch_leaves_out_what_others_did() -> None:
    cached = {f"cell{index}" for index in range(10, 30)}

    def not_cached(some: Sequence[PlannedCell]) -> Sequence[PlannedCell]:
        return [cell for cell in some if cell.key not in cached]

    work = [planned(f"cell{index}", "ab"[index // 20]) for index in range(40)]
    batches, handed_out = TaskQueue(work, slots=2, exclude_cached=not_cached), list[str]()
    first = batches.next()
    assert first is not None
    batches.done(first, 1, 5.0)
    batches.requeue(first)
    assert batches.flush_policy(first).stop_s > SHARED_S
    handed_out.append("cell0")
    while (batch := batches.next()) is not None:
        handed_out += [cell.key for cell in batch.cells]
        batches.done(batch, len(batch.cells), 5.0 * len(batch.cells))
    assert handed_out == [cell.key for cell in work if cell.key not in cached]
    assert sorted(batches.pop_completed()) == ["a", "b"]
    assert batches.flush_policy(first).stop_s <= SHARED_S


def test_of_a_million_cells_that_others_did_none_is_handed_out() -> None:
    work = [planned(f"cell{index}") for index in range(20_000)]
    assert TaskQueue(work, slots=6_400, exclude_cached=lambda _: []).next() is None


def test_a_sweep_knows_whether_another_runs_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = Journal(tmp_path, "one"), Journal(tmp_path, "other")
    with first.locked(lambda: None):
        assert not first.has_company()
        with other.locked(lambda: None):
            assert first.has_company()
            assert other.has_company()
            with monkeypatch.context() as silent:
                silent.setattr("sweep.store.journal.EXPIRES_S", -EXPIRES_S)
                assert not first.has_company()
        assert not first.has_company()


def test_who_has_company_goes_another_way(fake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[int] = []

    def simulate(*args: Any, **options: Any) -> Any:
        simulated.append(options["seed"])
        return fake_simulate(*args, **options)

    fake_engine(monkeypatch, simulate)
    monkeypatch.setattr(Journal, "has_company", lambda _: True)
    ran = fake("policy=fifo", "seed=range(0,20)")
    assert ran.code == 0, ran.err
    assert simulated != sorted(simulated)
    assert sorted(simulated) == [*range(20)]
    seeds = np.array([row["seed"] for row in ran.rows])
    assert (np.diff(seeds) > 0).all()
