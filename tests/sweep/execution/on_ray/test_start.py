from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors
from ray._private.node import Node

from sim.base.errors import InputError
from sweep.execution.on_ray import start


class Late:
    """Stands for Ray on a machine that is so busy that it comes up late, or never."""

    exceptions = ray_errors

    def __init__(self, n_late: int, error: Exception) -> None:
        self.n_late = n_late
        self.error = error
        self.ports: list[str | None] = []
        self.n_killed = self.n_shutdowns = 0
        self._private = SimpleNamespace(worker=SimpleNamespace(print_to_stdstream=print))

    def init(self, **options: Any) -> None:
        assert "_node_ip_address" in options
        assert Node.start_api_server is Node.start_monitor is Node.start_log_monitor  # none
        self.ports.append(os.environ.get("RAY_GCS_SERVER_PORT"))
        if self.n_late:
            self.n_late -= 1
            raise self.error

    def shutdown(self) -> None:
        self.n_shutdowns += 1


def run(monkeypatch: pytest.MonkeyPatch, late: Late) -> None:
    monkeypatch.setitem(sys.modules, "ray", late)
    start.start_local(2, {})


NEVER = Exception("The current node timed out during startup. This could happen because\n...")


@pytest.mark.parametrize("n_late", [0, 1, 3])
def test_ray_that_is_late_is_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], n_late: int
) -> None:
    before = dict(os.environ)
    late = Late(n_late, NEVER)
    run(monkeypatch, late)
    assert late.ports[0] is None
    assert len({*late.ports}) == n_late + 1  # another fixed port each time
    assert all(str(port).isdigit() for port in late.ports[1:])
    assert late.n_shutdowns == n_late
    assert os.environ == before
    assert Node.start_api_server is not Node.start_monitor  # as they were
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == n_late
    assert all(f"retry {index + 1} of 3" in line for index, line in enumerate(lines))
    assert late._private.worker.print_to_stdstream("a worker died") is None
    assert capsys.readouterr().out == ""  # of workers that die the runner says one line


def test_ray_that_never_comes_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = Late(9, NEVER)
    with pytest.raises(InputError) as caught:
        run(monkeypatch, late)
    assert len(late.ports) == 4
    assert str(caught.value) == (
        "Ray does not start on this machine: it did not come up in time in 4 attempts (The current "
        "node timed out during startup. This could happen because), so the machine is too busy or "
        "short of memory: try again later, or with launcher.workers=1; launcher=inline runs "
        "without it [no cluster]"
    )


def test_what_is_wrong_at_once_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(9, ValueError("no such option"))
    with pytest.raises(InputError, match="start on this machine: no such option; launcher=inline"):
        run(monkeypatch, late)
    assert len(late.ports) == 1


def test_a_node_that_came_up_halfway_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        def __init__(self) -> None:
            raise Exception("The current node timed out during startup.")

        def kill_all_processes(self, **_: object) -> None:
            late.n_killed += 1

    late = Late(0, NEVER)
    monkeypatch.setattr(late, "init", lambda **_: Node())
    with pytest.raises(InputError):
        run(monkeypatch, late)
    assert late.n_killed == 4


def test_auto_is_no_cluster_that_happens_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match="=auto: neither RAY_ADDRESS nor"):
        start.join("auto", {})
