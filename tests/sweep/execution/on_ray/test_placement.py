"""Nodes for the tasks of large workloads, and the memory that these reserve."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from sweep.execution import task
from sweep.execution.on_ray import connection, placement, shared_workloads
from sweep.execution.on_ray.nodes import Node
from sweep.execution.on_ray.shared_workloads import LARGE_TASKS, SharedWorkloads
from sweep.execution.on_ray.task_queue import Batch
from sweep.execution.workload_build import BuiltWorkload, Clusters, Recipe
from tests.sweep.execution.on_ray.fake_ray import (
    MADE,
    WORK,
    WORKLOADS,
    FakeRay,
    results_of,
    runner_of,
)
from tests.sweep.small import planned

GB = 10**9
NODES = {name: Node(name, name, 2.0, 16.0 * GB, "good") for name in "abc"}


def placed(n_tasks: int, having: set[str], memory: int = 0, nodes: Any = NODES) -> Counter[str]:
    """Place tasks one after the other, none of which ends; each node then has the workload."""
    count: Counter[str] = Counter()
    for _ in range(n_tasks):
        node = placement.choose(nodes, count, having, memory)
        having.add(node)
        count[node] += 1
    return count


def test_a_node_builds_a_workload_only_if_no_slot_is_free_where_it_is() -> None:
    assert placed(2, {"b"}) == {"b": 2}
    assert placed(3, {"b"}) == {"b": 2, "a": 1}
    assert placed(6, {"b"}) == {"a": 2, "b": 2, "c": 2}
    assert sorted(placed(7, {"b"}).values()) == [2, 2, 3]
    assert placed(12, {"b"}) == {"a": 4, "b": 4, "c": 4}


def test_a_node_has_as_many_slots_as_its_memory_holds_runs() -> None:
    small = {**NODES, "c": Node("c", "c", 2.0, 9.0 * GB, "good")}
    assert [placement.n_slots(node, 9 * GB) for node in small.values()] == [1, 1, 1]
    assert placed(3, set(), 10 * GB, small) == {"a": 2, "b": 1}  # the small one holds none
    assert placement.choose(small, Counter(), (), 17 * GB) == ""


@pytest.mark.parametrize("n_tasks", [10**6, 10**7, 10**8, 10**9])
def test_reserved_runs_do_not_exceed_the_memory_of_a_node(n_tasks: int) -> None:
    """At 100 bytes a task: only runs that may not fit side by side reserve memory."""
    opened = connection.Connection({"kind": "ray"}, [])
    opened.nodes = SimpleNamespace(good=lambda: NODES)  # type: ignore[assignment]
    opened.slots, run_bytes = 6, 100 * n_tasks
    memory = opened.memory_to_reserve(run_bytes)
    n_at_once = placement.n_slots(NODES["a"], memory)
    assert n_at_once * run_bytes <= 16 * GB or memory == 16 * GB
    assert (memory == 0) == (run_bytes + connection.PROCESS_BYTES <= 8 * GB)
    doubled = opened.memory_to_reserve(run_bytes, double=True)
    assert doubled == min(16 * GB, 2 * max(8 * GB, run_bytes + connection.PROCESS_BYTES))


def test_cells_whose_runs_move_each_task_by_itself_reserve_more() -> None:
    built = BuiltWorkload(
        {"n_tasks": LARGE_TASKS + 1}, Clusters(), run_bytes=2 * GB, by_task_bytes=9 * GB
    )
    shared = SharedWorkloads(connection.Connection({"kind": "ray"}, []), [])
    shared._shared["large"] = shared_workloads._Shared(built, None, None)
    shared._note("large", built)
    cell = planned("fifo", "large")
    single = cell._replace(key="las", cell=cell.cell._replace(policy={"name": "las"}))
    cells = [cell, single]
    shared.by_task = {task.variant_key(single.spec)}
    reserved = [
        shared.run_bytes(Batch("large", some), WORKLOADS) for some in (cells[:1], cells[1:], cells)
    ]
    assert reserved == [2 * GB, 9 * GB, 9 * GB]


def test_cells_reserve_what_a_run_takes(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the workload is described; no more than a node has, so that one cell runs at least."""
    reserved: list[int | None] = []
    plain = fake.remote

    def remote(function: Any = None, **options: Any) -> Any:
        if function is None:
            return plain(function, **options)
        task = plain(function)

        def with_options(**options: Any) -> Any:
            reserved.append(options["memory"])
            return task.options()

        return SimpleNamespace(options=with_options)

    monkeypatch.setattr(fake, "remote", remote)
    sizes = {"Resources": {"CPU": 2.0, "memory": 16.0 * GB}}
    nodes = fake.nodes()
    monkeypatch.setattr(fake, "nodes", lambda: [{**node, **sizes} for node in nodes])
    for run_bytes, memory in ((10**8, None), (10**10, 103 * GB // 10), (10**11, 16 * GB)):
        built = SimpleNamespace(**{**vars(MADE), "run_bytes": run_bytes})
        monkeypatch.setattr("tests.sweep.execution.on_ray.fake_ray.MADE", built)
        runner = runner_of()
        recipe = Recipe({"synth": "none"}, {}, n_tasks=LARGE_TASKS)
        workloads: Any = SimpleNamespace(
            recipe=lambda name, recipe=recipe: recipe, add_description=lambda name, about: None
        )
        assert len(results_of(runner.run(WORK, workloads))) == len(WORK)
        assert reserved[-1] == memory
        reserved.clear()
