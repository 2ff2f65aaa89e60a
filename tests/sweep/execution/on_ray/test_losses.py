"""Tasks lost in every state, for every reason, without Ray: docs/architecture.md lists them."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from ray import exceptions as ray_errors

from sweep.execution.on_ray import nodes
from sweep.execution.on_ray.pool import RayRunner
from sweep.execution.on_ray.task_queue import MAX_LOST, Batch, Loss, TaskQueue
from sweep.execution.progress import Line
from sweep.execution.result_batch import ResultBatch
from sweep.store.cell import CellResult
from tests.sweep.execution.on_ray.fake_ray import (
    WORK,
    WORKLOADS,
    FakeRay,
    Stream,
    install,
    results_of,
    runner_of,
)

N = 10
"""Cells of the first task: half of the part of 40 that each of two slots has."""
ERRORS: dict[Loss, Exception] = {
    "lost": ray_errors.NodeDiedError("its node is dead"),
    "memory": ray_errors.OutOfMemoryError("killed"),
    "broken": ray_errors.RayError("a result that can't be read"),
    "excluded": ray_errors.NodeDiedError("its node was announced to go"),
}


class State(NamedTuple):
    """Progress of a task when it is lost: cells that it began, and those whose results came."""

    n_begun: int
    n_arrived: int


STATES = {
    "not begun": State(0, 0),
    "within its first cell": State(1, 0),
    "within a cell": State(4, 3),
    "between cells": State(3, 3),
    "all handed over, not ended": State(N, N),
    "ended, nothing collected": State(N, 0),
    "ended, some of it not collected": State(N, 7),
}


class Parts(Stream):
    """The generator of a task that hands over each cell by itself."""

    def __init__(self, number: int, keys: list[str]) -> None:
        super().__init__(number)
        self.keys = keys
        self.n_came = 0
        self.loss: Exception | None = None

    def __next__(self) -> Parts:
        if self.loss is None and self.n_came == len(self.keys):
            raise StopIteration
        return self  # once it is lost, the reference to the task, which raises that


class LosingRay(FakeRay):
    """Loses its first task in a state, all further ones too where it is told to."""

    def __init__(self, state: State, error: Exception) -> None:
        super().__init__()
        self.state, self.error = state, error
        self.n_losses = 1
        self.at_once = 2
        self.runs: Counter[str] = Counter()  # how often each cell began
        self.back: list[str] = []  # cells whose results came from tasks that were lost

    def remote(self, function: Any = None, **options: object) -> Any:
        plain = super().remote(function, **options)
        if function is None:
            return plain

        def submit(*args: Any) -> Parts:
            task = Parts(plain.options().remote(*args).number, [spec[0] for spec in args[1].specs])
            if self.n_losses:
                self.n_losses -= 1
                task.loss = self.error
                self.runs.update(task.keys[: self.state.n_begun])
            return task

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=submit))

    def get(self, ref: Stream, **options: object) -> Any:
        if not isinstance(ref, Parts):
            return super().get(ref, **options)
        if ref.loss is not None and ref.n_came == min(self.state.n_arrived, len(ref.keys)):
            raise ref.loss
        key = ref.keys[ref.n_came]
        ref.n_came += 1
        if ref.loss is None:
            self.runs[key] += 1
        else:
            self.back.append(key)
        return ResultBatch([CellResult(key, seconds=0.2)])


def losing(monkeypatch: pytest.MonkeyPatch, state: str, loss: Loss) -> LosingRay:
    """Put a Ray in place that loses a task."""
    ray = LosingRay(STATES[state], ERRORS[loss])
    install(ray, monkeypatch)
    monkeypatch.setattr(nodes.Nodes, "was_excluded", lambda *_: loss == "excluded")
    return ray


@pytest.mark.parametrize("loss", ERRORS)
@pytest.mark.parametrize("state", STATES)
def test_a_lost_task_costs_what_has_not_come_back_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, state: str, loss: Loss
) -> None:
    ray = losing(monkeypatch, state, loss)
    events = [*runner_of().run(WORK, WORKLOADS)]
    keys = [cell.key for cell in WORK]
    first, n_came = keys[:N], STATES[state].n_arrived
    assert ray.back == first[:n_came]
    results = {item.key: item.error for item in results_of(events)}
    assert len(results_of(events)) == len(WORK)
    assert results == dict.fromkeys(keys)
    # once more: those that it began, and whose results did not come
    again = dict.fromkeys(first[n_came : STATES[state].n_begun], 2)
    assert ray.runs == dict.fromkeys(keys, 1) | again
    lines = [item for item in events if isinstance(item, Line)]
    is_told = loss == "lost" and n_came < N
    assert lines == [f"a worker died while running {N - n_came} cells; retrying up to 5 times"] * (
        is_told
    )


@pytest.mark.parametrize("loss", ERRORS)
@pytest.mark.parametrize(
    "state", ["not begun", "within its first cell", "all handed over, not ended"]
)
def test_a_task_of_one_cell_is_lost(
    monkeypatch: pytest.MonkeyPatch, state: str, loss: Loss
) -> None:
    losing(monkeypatch, state, loss)
    events = [*runner_of().run(WORK[:1], WORKLOADS)]
    (result,) = results_of(events)
    is_given_up = loss == "broken" and STATES[state].n_arrived == 0
    assert (result.error is not None) == is_given_up
    lines = [item for item in events if isinstance(item, Line)]
    assert len(lines) == (loss == "lost" and STATES[state].n_arrived == 0)


@pytest.mark.parametrize("loss", ERRORS)
def test_tasks_that_are_lost_again_and_again_after_all_was_handed_over(
    monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    ray = losing(monkeypatch, "all handed over, not ended", loss)
    ray.n_losses = 1_000
    events = [*runner_of().run(WORK, WORKLOADS)]
    assert sorted(item.key for item in results_of(events)) == sorted(cell.key for cell in WORK)
    assert {item.error for item in results_of(events)} == {None}
    assert not any(isinstance(item, Line) for item in events)


@pytest.mark.parametrize("n_cells", [1, 40])
@pytest.mark.parametrize("state", ["not begun", "within a cell", "all handed over, not ended"])
def test_a_cancelled_task_is_counted_against_no_cell(
    monkeypatch: pytest.MonkeyPatch, state: str, n_cells: int
) -> None:
    ray = losing(monkeypatch, state, "lost")
    ray.error, ray.n_losses = ray_errors.TaskCancelledError(), 3 * MAX_LOST
    events = [*runner_of().run(WORK[:n_cells], WORKLOADS)]
    assert sorted(item.key for item in results_of(events)) == sorted(
        cell.key for cell in WORK[:n_cells]
    )
    assert {item.error for item in results_of(events)} == {None}
    assert not any(isinstance(item, Line) for item in events)


def test_a_part_that_does_not_arrive_in_time_is_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = losing(monkeypatch, "ended, some of it not collected", "lost")
    ray.error = ray_errors.GetTimeoutError("not within 60 s")
    results = results_of(runner_of().run(WORK, WORKLOADS))
    assert sorted(item.key for item in results) == sorted(cell.key for cell in WORK)
    assert {item.error for item in results} == {None}
    assert ray.n_made == 2  # its workload, too, may be what is missing


@pytest.mark.parametrize("n_cells", [1, 3, 40])
def test_a_worker_that_ended_itself_over_a_cell_that_has_come_back(
    monkeypatch: pytest.MonkeyPatch, posted: dict[str, dict[str, Any]], n_cells: int
) -> None:
    """Its second thread looks at the clock while the first hands the cell over."""
    ray = losing(monkeypatch, "between cells", "lost")
    runner = RayRunner({"kind": "ray", "address": "auto"}, simulate=pytest.fail, timeout_s=5.0)
    late = {"key": "cell0", "seconds": 5.0, "over": True, "stack": ""}
    posted[f"{runner._heartbeat_prefix}{0:09d}"] = late
    results = results_of(runner.run(WORK[:n_cells], WORKLOADS))
    assert sorted(item.key for item in results) == sorted(cell.key for cell in WORK[:n_cells])
    assert {item.error for item in results} == {None}
    assert "cell0" in ray.back


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("loss", ERRORS)
def test_of_a_task_without_cells_nothing_waits(loss: Loss, careful: bool) -> None:
    batches = TaskQueue(WORK[:2], slots=1)
    batch = batches.next()
    assert batch is not None
    batches.done(batch, len(batch.cells), 0.2)
    batches.lost(Batch("w", [], one_by_one=careful), loss)
    batches.requeue(Batch("w", [], one_by_one=careful))
    assert batches.timed_out(Batch("w", [], one_by_one=careful), "cell0") is None
    assert batches.pop_completed() == []  # one cell is left
    other = batches.next()
    assert other is not None
    assert [cell.key for cell in other.cells] == ["cell1"]
    assert batches.next() is None
    batches.done(other, 1, 0.2)
    assert batches.pop_completed() == ["w"]
    batches.lost(Batch("w", []), loss)
    assert batches.pop_completed() == []
