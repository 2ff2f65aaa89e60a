"""Plan of a grid before anything runs: keys and cached cells."""

from __future__ import annotations

import hashlib
import time

import pytest

from sweep.execution import plan
from sweep.grid import grid
from sweep.grid.config_tree import canonical
from sweep.store import shard_writer
from tests.sweep.small import Command

GRID = ("policy=fifo,las", "policy.queues=5,10", "capacity=0.5,1", "seed=range(0,3)")


def prepared(command: Command, *words: str) -> plan.PreparedGrid:
    return plan.prepare(grid.build(command.request(*words)))


def test_a_key_is_the_digest_of_the_whole_content(fake: Command) -> None:
    plan_of_grid = prepared(fake, *GRID, "cluster.load=0.7,0.9")
    assert len(plan_of_grid.planned) == 36
    for planned in plan_of_grid.planned:
        cell = planned.cell
        content = {
            "policy": {"name": cell.policy["name"], "params": cell.policy["params"]},
            "cluster": {k: v for k, v in cell.cluster.items() if k != "price_per_machine_h"},
            "evaluator": cell.evaluator,
            "capacity": cell.capacity,
            "seed": cell.seed,
            "workload": plan_of_grid.inputs.workload_id(cell),
            "sources": plan.sources_digest(cell),
        }
        assert planned.key == hashlib.sha256(canonical(content).encode()).hexdigest()
    assert len({planned.key for planned in plan_of_grid.planned}) == 36


def test_what_is_kept_beside_a_result_is_all_that_it_follows_from(fake: Command) -> None:
    plan_of_grid = prepared(fake, *GRID)
    (first, *_) = plan_of_grid.planned
    stored = plan.stored_config(plan_of_grid, first)
    assert stored.keys() == {*plan_of_grid.masked_config(first.cell), "workload", "sources"}
    assert stored["policy"] == first.cell.policy
    assert stored["workload"].keys() == {"files", "sources"}


def test_what_is_cached_is_found_unless_it_is_damaged(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
    fake("policy=fifo", "seed=0,1")
    plan_of_grid = prepared(fake, "policy=fifo", "seed=0,1,2")
    assert [planned.key in plan_of_grid.metrics for planned in plan_of_grid.planned] == [
        True,
        True,
        False,
    ]
    file = min((fake.results / "cache" / "shards").iterdir())
    file.write_bytes(b"damaged")
    plan_of_grid = prepared(fake, "policy=fifo", "seed=0,1,2")
    stored = [planned.key in plan_of_grid.metrics for planned in plan_of_grid.planned]
    assert sorted(stored[:2]) == [False, True]
    assert not stored[2]


def test_many_cells_are_planned_in_no_time(fake: Command) -> None:
    words = ("policy=fifo,sjf,las", "seed=range(0,20000)")
    begin = time.process_time()
    planned = fake("plan", *words)
    assert time.process_time() - begin < 15  # three on a machine with nothing else to do
    assert "60,000 cells, 0 cached, 60,000 to run" in planned.out
