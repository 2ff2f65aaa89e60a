"""The runner on Ray, as far as it can be told without Ray."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors

from sim.base.errors import InputError
from sweep.execution.on_ray import connection, pool
from sweep.execution.on_ray.pool import RayRunner
from sweep.execution.on_ray.task_queue import Batch
from sweep.execution.progress import Line
from sweep.execution.result_batch import ResultBatch
from tests.sweep.execution.on_ray.fake_ray import (
    WORK,
    WORKLOADS,
    FakeRay,
    Stream,
    outcomes,
    results_of,
    runner_of,
)
from tests.sweep.small import planned


class Ref:
    """Stands for an ObjectRef, in a cycle as a traceback makes them."""

    def __init__(self) -> None:
        self.cycle = self


def test_no_garbage_is_left_to_free_while_ray_shuts_down(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.disable()
    try:
        left = weakref.ref(Ref())
        assert left() is not None
        ray_connection: list[bool] = []
        fake = SimpleNamespace(shutdown=lambda: ray_connection.append(left() is not None))
        monkeypatch.setitem(sys.modules, "ray", fake)
        monkeypatch.setattr(connection, "start_local", lambda *_: None)
        monkeypatch.setattr(connection.Connection, "update", lambda _: True)
        opened = connection.Connection({"kind": "local"}, [])
        opened.close()
        assert ray_connection == []
        opened.open()
        opened.close()
        opened.close()
        assert ray_connection == [False]
    finally:
        gc.enable()


def test_ray_stays_up_for_more_work_until_it_is_closed(fake: FakeRay) -> None:
    runner = runner_of()
    assert [*runner.run(WORK[:3], WORKLOADS)].count("joining the cluster") == 1
    more = [*runner.run(WORK[3:5], WORKLOADS)]
    assert [item.key for item in results_of(more)] == ["cell3", "cell4"]
    assert "joining the cluster" not in more
    assert fake.n_inits == 1
    runner.close()
    half = runner.run(WORK, WORKLOADS)
    assert next(half) == "joining the cluster"
    assert isinstance(next(half), ResultBatch)
    runner.close()  # what was on its way is forgotten
    again = results_of(runner.run(WORK[:2], WORKLOADS))
    assert [item.key for item in again] == ["cell0", "cell1"]
    assert fake.n_inits == 3


def test_a_task_that_is_over_is_replaced_before_the_next_is_taken_in(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.at_once = 4
    runner, on_their_way = runner_of(), []
    end = runner._pop

    def over(ref: Any) -> Batch:
        on_their_way.append(len(runner._tasks))
        return end(ref)

    monkeypatch.setattr(runner, "_pop", over)
    assert len(results_of(runner.run(WORK, WORKLOADS))) == len(WORK)
    assert on_their_way[:4] == [4, 4, 4, 4]


@pytest.mark.parametrize("step", range(1, 12))
def test_a_broken_connection_loses_no_cell_and_doubles_none(fake: FakeRay, step: int) -> None:
    fake.breaks_at = {step, step + 3}
    results = outcomes()
    assert sorted(item.key for item in results) == sorted(item.key for item in WORK)
    assert [item.error for item in results] == [None] * len(WORK)
    assert fake.n_inits == fake.n_made == 3


def test_waits_for_the_cluster_to_come_back(fake: FakeRay) -> None:
    def break_connection(*_: object) -> None:
        fake.refuses = 3

    fake.breaks_at = {2}
    fake.shutdown = break_connection  # type: ignore[method-assign]
    with pytest.raises(InputError, match="did not come back within 0 s"):
        outcomes()
    fake.shutdown = lambda: None  # type: ignore[method-assign]
    fake.n_waits, fake.refuses = 0, 0
    fake.breaks_at = {2, 3}
    assert len(outcomes(patience_s=60.0)) == len(WORK)


def test_a_connection_that_breaks_at_once_again_and_again(fake: FakeRay) -> None:
    fake.breaks_at = set(range(1000))
    with pytest.raises(InputError, match="Broken pipe, 11 times in a row"):
        outcomes()


def test_a_cell_that_breaks_the_connection_fails_by_itself(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does whose policy takes down its whole node."""
    plain = fake.get

    def get(ref: Stream, **_: object) -> Any:
        part = plain(ref)
        if any(item.key == "cell7" for item in part.results):
            raise OSError("Broken pipe")
        return part

    monkeypatch.setattr(fake, "get", get)
    results = {item.key: item.error for item in outcomes()}
    assert set(results) == {item.key for item in WORK}
    error = results.pop("cell7")
    assert error is not None
    assert error["type"] == "DisconnectedError"


def test_out_of_memory_once_is_tried_again_twice_is_not(fake: FakeRay) -> None:
    fake.fails_with = [ray_errors.OutOfMemoryError("killed")]
    assert [item.error for item in outcomes()] == [None] * len(WORK)
    fake.fails_with = [ray_errors.OutOfMemoryError("killed") for _ in range(2 * len(WORK))]
    errors = [item.error for item in outcomes()]
    assert {error["type"] for error in errors if error is not None} == {"OutOfMemoryError"}
    assert len([error for error in errors if error is not None]) == len(WORK)


def test_a_workload_that_can_not_be_made_ends_the_sweep(fake: FakeRay) -> None:
    error = ray_errors.RayError("RayTaskError(InputError)")
    error.cause = InputError("at capacity 3 a job does not fit")  # type: ignore[attr-defined]
    fake.fails_with = [error]
    with pytest.raises(InputError, match="at capacity 3 a job does not fit"):
        outcomes()


def test_machines_that_come_are_used(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPDATE_EVERY_S", 0.0)
    ray_connection = connection.Connection({"kind": "ray", "address": "auto"}, [])
    ray_connection.open()
    assert ray_connection.slots == 2
    fake.nodes_up = 3
    ray_connection.update()
    assert (ray_connection.slots, ray_connection.memory_to_reserve(0, double=True)) == (6, 8)
    fake.nodes_up = 0
    ray_connection.update()
    assert (ray_connection.slots, ray_connection.n_cpus) == (1, 0)
    assert not ray_connection.memory_to_reserve(0, double=True)


def test_a_head_that_does_not_answer_is_gone_after_a_while(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: str) -> None:
        if address == "head:1":
            raise ConnectionRefusedError("refused")

    monkeypatch.setattr(connection, "UPDATE_EVERY_S", 0.0)
    ray_connection = connection.Connection({"kind": "ray", "address": "auto"}, [])
    ray_connection.open()
    monkeypatch.setattr(connection, "knock", refuse)
    assert not ray_connection.update()
    monkeypatch.setattr(connection, "HEAD_TIMEOUT_S", 0.0)
    with pytest.raises(connection.DisconnectedError, match="the head of the cluster is gone"):
        ray_connection.update()


def test_a_node_that_does_not_answer_is_gone_at_once(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: str) -> None:
        if address == "own:1":
            raise ConnectionRefusedError("refused")

    monkeypatch.setattr(connection, "UPDATE_EVERY_S", 0.0)
    ray_connection = connection.Connection({"kind": "ray", "address": "auto"}, [])
    ray_connection.open()
    monkeypatch.setattr(connection, "knock", refuse)
    with pytest.raises(connection.DisconnectedError, match="the node of this process is gone"):
        ray_connection.update()


def test_a_cell_that_was_ended_at_the_limit_is_not_tried_again(
    fake: FakeRay, posted: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, runs = fake.get, []

    def get(ref: Stream, **_: object) -> Any:
        part = plain(ref)
        runs.extend(item.key for item in part.results)
        if any(item.key == "cell7" for item in part.results):
            watched = fake._tasks[ref.number][1][1].watched
            posted[watched.name] = {
                "key": "cell7",
                "seconds": 5.1,
                "over": True,
                "stack": "in loop",
            }
            assert watched.limit_s == 5.0
            raise ray_errors.WorkerCrashedError
        return part

    monkeypatch.setattr(fake, "get", get)
    runner = RayRunner({"kind": "ray", "address": "auto"}, simulate=pytest.fail, timeout_s=5.0)
    events = [*runner.run(WORK, WORKLOADS)]
    results = {item.key: item for item in results_of(events)}
    assert results.keys() == {item.key for item in WORK}
    error = results.pop("cell7").error
    assert error is not None
    assert (error["type"], error["traceback"]) == ("CellTimeoutError", "in loop")
    assert error["message"].startswith("ran for longer than 5 s and was ended")
    assert {item.error for item in results.values()} == {None}
    assert runs.count("cell7") == 1
    assert not any(isinstance(item, Line) for item in events)


def test_one_that_can_say_nothing_is_told_by_its_time(
    fake: FakeRay, posted: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "GRACE_S", 0.0)
    fake.fails_with = [ray_errors.WorkerCrashedError()]
    runner = RayRunner({"kind": "ray", "address": "auto"}, simulate=pytest.fail, timeout_s=1e-9)
    (item,) = results_of(runner.run(WORK[:1], WORKLOADS))
    assert item.error is not None
    assert item.error["type"] == "CellTimeoutError"


def test_a_worker_that_dies_is_one_line(fake: FakeRay, posted: dict[str, dict[str, Any]]) -> None:
    fake.fails_with = [ray_errors.WorkerCrashedError() for _ in range(6)]
    work = [planned("cell0", policy="las", capacity=0.7), *WORK[1:3]]
    events = [*runner_of().run(work, WORKLOADS)]
    lines = [item for item in events if isinstance(item, Line)]
    assert (
        lines[0] == "a worker died while running las t capacity=0.7 seed=0; retrying up to 5 times"
    )
    assert len(lines) <= 3  # one for each cell that lost one
    fake.fails_with = [ray_errors.WorkerCrashedError() for _ in range(6)]
    (result,) = results_of(runner_of().run(work[:1], WORKLOADS))
    assert result.error is not None
    assert result.error["message"].startswith(
        "its worker died 6 times: it may have been killed for its memory, or crashed by the cell; "
    )


def test_an_environment_that_ray_cannot_set_up_is_no_death(
    fake: FakeRay, posted: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    text = "Failed\nTraceback\nOSError: Failed to download gcs://x.zip"
    fake.fails_with = [ray_errors.RuntimeEnvSetupError(text) for _ in range(6)]
    events = [*runner_of().run([planned("cell0", policy="las", capacity=0.7)], WORKLOADS)]
    (line,) = (item for item in events if isinstance(item, Line))
    assert line.startswith("Ray could not set up a worker for las t capacity=0.7 seed=0; retrying")
    (result,) = results_of(events)
    assert result.error is not None
    assert result.error["type"] == "RuntimeEnvSetupError"
    assert result.error["message"].startswith(
        "Ray could not set up the environment of its worker, 6 times: OSError: Failed to download "
        "gcs://x.zip; RAY_JOB_CONFIG_JSON_ENV_VAR"
    )
    assert "set here and may be the reason: try without" in result.error["message"]


CELL = "fifo t capacity=1.0 seed="


def test_names_the_cells_that_run_for_long(
    fake: FakeRay, posted: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    work = [planned(item.key, seed=step) for step, item in enumerate(WORK[:5])]
    runner = runner_of()
    run = runner.run(work, WORKLOADS)
    assert next(run) == "joining the cluster"
    monkeypatch.setattr(fake, "wait", lambda refs, **_: ([], refs))
    assert next(run) == ""
    monkeypatch.setattr(pool, "HEARTBEAT_EVERY_S", 0.0)
    for step, seconds in enumerate((47.0, 250.0, 31.0, 35.0)):
        posted[f"{runner._heartbeat_prefix}{step:09d}"] = {
            "key": f"cell{step}",
            "seconds": seconds,
            "over": False,
        }
    back = {"key": "a cell that has come back", "seconds": 60.0, "over": False}
    posted[f"{runner._heartbeat_prefix}{4:09d}"] = back
    assert next(run) == (
        f"still running: {CELL}1 for 4 min, {CELL}0 for 40 s, {CELL}3 for 30 s and 1 more"
    )
    runner.close()
