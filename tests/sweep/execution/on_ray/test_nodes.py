"""Nodes of a cluster, without Ray."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors

from sim.base.errors import InputError
from sweep.execution.on_ray import nodes, preflight
from sweep.execution.on_ray.nodes import LABEL, Nodes
from sweep.store.cell import CellResult


class FakeRay:
    """Answers for nodes; who is in `answers` has answered."""

    exceptions = ray_errors
    cloudpickle = SimpleNamespace(register_pickle_by_value=lambda module: None)

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.checked: list[str] = []

    def remote(self, function: Any) -> Any:
        def options(scheduling_strategy: Any, **_: Any) -> Any:
            self.checked.append(scheduling_strategy.node_id)
            return SimpleNamespace(remote=lambda environment: scheduling_strategy.node_id)

        return SimpleNamespace(options=options)

    def wait(self, refs: list[str], timeout: float) -> tuple[list[str], list[str]]:
        return [ref for ref in refs if ref in self.answers], []

    def get(self, ref: str) -> list[str]:
        answer = self.answers[ref]
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


A, B, C = "a" * 56, "b" * 56, "c" * 56


def up(*ids: str, cpus: float = 1.0) -> list[dict[str, Any]]:
    return [
        {
            "NodeID": node_id,
            "NodeManagerHostname": f"host-{node_id[0]}",
            "NodeManagerAddress": f"10.0.0.{ord(node_id[0])}",
            "Resources": {"CPU": cpus, "memory": 8.0},
        }
        for node_id in ids
    ]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(nodes, "RECHECK_DELAY_S", 0.0)
    monkeypatch.setattr(
        preflight,
        "driver_environment",
        lambda specs, python_path, traces: {"table": {"policies": ""}},
    )
    return ray


@pytest.fixture
def nodes_up(fake: FakeRay) -> Nodes:
    instance = Nodes()
    instance.expect([], [])
    return instance


def test_nodes_are_given_cells_once_they_have_answered(
    fake: FakeRay, nodes_up: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes_up.update(up(A, B))
    assert nodes_up.waits()
    assert nodes_up.good() == {}
    fake.answers = {A: []}
    nodes_up.update(up(A, B))
    assert nodes_up.waits()
    monkeypatch.setattr(nodes, "MAX_WAIT_S", 0.0)
    assert not nodes_up.waits()
    assert [*nodes_up.good()] == [A]
    assert nodes_up.placement_options() == {"label_selector": {LABEL: f"!in({B})"}}
    fake.answers = {B: []}
    nodes_up.update(up(A, B, C))
    assert nodes_up.placement_options() == {"label_selector": {LABEL: f"!in({C})"}}
    assert fake.checked == [A, B, C]
    assert [*nodes_up.pop_lines()] == []


def test_a_bad_node_is_named_left_out_and_asked_again_when_it_is_another(
    fake: FakeRay, nodes_up: Nodes
) -> None:
    fake.answers = {A: [], B: ["numpy 1 (2 here)", "no room"]}
    nodes_up.update(up(A, B))
    assert [*nodes_up.pop_lines()] == []
    for _ in range(2):
        nodes_up.update(up(A, B))
    assert fake.checked == [A, B, B]
    (line,) = nodes_up.pop_lines()
    assert line == "node host-b (10.0.0.98) is excluded: numpy 1 (2 here); no room"
    assert [*nodes_up.pop_lines()] == []
    assert nodes_up.placement_options() == {"label_selector": {LABEL: f"!in({B})"}}
    nodes_up.update(up(A))
    assert nodes_up.placement_options() == {}
    fake.answers = {C: []}
    nodes_up.update(up(A, C))
    assert [*nodes_up.good()] == [A, C]


def test_where_all_are_bad_nothing_is_waited_for(fake: FakeRay, nodes_up: Nodes) -> None:
    fake.answers = {A: ["no room"]}
    for _ in range(3):
        nodes_up.update([*up(A), *up(B, cpus=0.0)])
    assert not nodes_up.waits()
    assert len([*nodes_up.pop_lines()]) == 1
    with pytest.raises(InputError, match="no node of the cluster can run this sweep's cells"):
        nodes_up.check_any_usable()


def test_a_check_that_is_lost_is_asked_again_and_one_that_fails_tells(
    fake: FakeRay, nodes_up: Nodes
) -> None:
    fake.answers = {
        A: ray_errors.WorkerCrashedError(),
        B: ray_errors.RuntimeEnvSetupError("No space left on device"),
    }
    nodes_up.update(up(A, B))
    assert fake.checked == [A, B, A]
    fake.answers[A] = []
    for _ in range(2):
        nodes_up.update(up(A, B))
    (line,) = nodes_up.pop_lines()
    assert "can't set up the environment of tasks there (" in line
    assert "No space left on device); its disk may be full: make room" in line
    assert [*nodes_up.good()] == [A]


def test_where_no_check_comes_to_its_end_it_is_said_what_to_do(
    fake: FakeRay, nodes_up: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "RECHECK_DELAY_S", 0.0)
    fake.answers = {A: ray_errors.WorkerCrashedError()}
    for _ in range(nodes.MAX_CHECKS + 2):
        nodes_up.update(up(A))
    (line,) = nodes_up.pop_lines()
    assert "is excluded: its checks die each time" in line
    assert "make room, and let it join again (The worker died" in line


def test_a_silent_node_is_named_and_welcome_later(
    fake: FakeRay, nodes_up: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "ANSWER_TIMEOUT_S", -1.0)
    nodes_up.update(up(A))
    assert not nodes_up.waits()
    assert [*nodes_up.pop_lines()] == [
        "node host-a (10.0.0.97) has not answered for -1 s; it gets no cells"
    ]
    fake.answers = {A: []}
    nodes_up.update(up(A))
    assert [*nodes_up.good()] == [A]


def test_a_node_that_will_go_is_given_nothing_more(fake: FakeRay, nodes_up: Nodes) -> None:
    fake.answers = {A: [], B: []}
    nodes_up.update(up(A, B))
    nodes_up.update(up(A, B), draining=[B])
    assert [*nodes_up.good()] == [A]
    (line,) = nodes_up.pop_lines()
    assert "is draining" in line
    nodes_up.update(up(A))
    assert nodes_up.was_excluded(ray_errors.NodeDiedError(f"its node {B} is dead"))
    assert not nodes_up.was_excluded(ray_errors.NodeDiedError(f"its node {A} is dead"))


def test_a_loss_has_nodes_asked_again(fake: FakeRay, nodes_up: Nodes) -> None:
    fake.answers = {A: [], B: []}
    nodes_up.update(up(A, B))
    for _ in range(2):
        assert not nodes_up.was_excluded(ray_errors.WorkerCrashedError())
    assert fake.checked == [A, B, A, B]
    assert [*nodes_up.good()] == [A, B]
    fake.answers = {A: [], B: ["its disk is full"]}
    for _ in range(3):
        nodes_up.update(up(A, B))
    assert [*nodes_up.good()] == [A]


def test_cells_that_reached_a_node_too_early_are_not_its_trial(
    fake: FakeRay, nodes_up: Nodes
) -> None:
    fake.answers = {A: []}
    nodes_up.update(up(A, B))
    error: Any = {"stage": "sources", "type": "SourcesChanged", "message": "", "traceback": ""}
    for index in range(5):
        assert nodes_up.must_retry(CellResult(f"c{index}", error=error, node=B), "fifo")
        assert nodes_up.excluded_node(f"c{index}") == ""
    assert [*nodes_up.pop_lines()] == []


def test_three_cells_that_others_do_and_it_is_left_out(fake: FakeRay, nodes_up: Nodes) -> None:
    fake.answers = {A: [], B: []}
    nodes_up.update(up(A, B))
    error: Any = {"stage": "simulate", "type": "OSError", "message": "ill", "traceback": ""}
    for index in range(3):
        assert nodes_up.must_retry(CellResult(f"c{index}", error=error, node=B), "fifo")
        assert nodes_up.placement_options(nodes_up.excluded_node(f"c{index}")) == {
            "label_selector": {LABEL: f"!in({B})"}
        }
        assert not nodes_up.must_retry(CellResult(f"c{index}", node=A), "fifo")
    (line,) = nodes_up.pop_lines()
    assert line.endswith(
        "is excluded: cells failed there and succeeded on other nodes: OSError: ill"
    )
    assert not nodes_up.has_other(A)


def test_on_this_machine_nothing_is_asked(fake: FakeRay) -> None:
    nodes_up = Nodes()
    nodes_up.update(up(A))
    assert [*nodes_up.good()] == [A]
    assert fake.checked == []
