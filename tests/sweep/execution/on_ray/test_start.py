from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import exceptions as ray_errors
from ray._private.node import Node

from sim.base.errors import InputError
from sweep.execution.on_ray import environment, start


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


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("RAY_") or name == "TMPDIR":
            monkeypatch.delenv(name)


def run(monkeypatch: pytest.MonkeyPatch, late: Late) -> None:
    monkeypatch.setitem(sys.modules, "ray", late)
    start.start_local(2, {})


RAYLET = (
    "[2026-11-28 15:40:47,904 I 1 2] (raylet) main.cc:1: all is well\n"
    "[2026-11-28 15:40:47,905 E 1 2] (raylet) agent_manager.cc:87: The raylet exited immediately "
    "because one Ray agent failed, agent_name = dashboard_agent.\n*** StackTrace ***\n"
)
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
    before = dict(os.environ)
    late = Late(9, NEVER)
    with pytest.raises(InputError) as caught:
        run(monkeypatch, late)
    assert len(late.ports) == 4
    assert str(caught.value) == (
        "Ray does not start on this machine: it did not come up in time in 4 attempts (The current "
        "node timed out during startup. This could happen because); the machine may be too busy or "
        "short of memory: try again later, or with launcher.workers=1; launcher=inline runs "
        "without it [no cluster]"
    )
    assert before == dict(os.environ)


def test_the_last_line_of_rays_log_is_told_and_the_same_twice_is_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "raylet.out").write_text(RAYLET)
    (tmp_path / "dashboard_agent.log").write_text("Traceback\nTypeError: no documentation\n")

    class Node:
        def __init__(self) -> None:
            raise Exception("The current node timed out during startup.")

        def get_logs_dir_path(self) -> str:
            return str(tmp_path)

        def kill_all_processes(self, **_: object) -> None:
            late.n_killed += 1

    late = Late(0, NEVER)
    monkeypatch.setattr(late, "init", lambda **_: Node())
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with pytest.raises(InputError) as caught:
        run(monkeypatch, late)
    assert late.n_killed == 2
    assert str(caught.value) == (
        "Ray does not start on this machine: it did not come up in time in 2 attempts (The current "
        "node timed out during startup.); Ray's log ends: TypeError: no documentation; RAY_USE_TLS "
        "is set here and may be the reason: try without it; launcher=inline runs without it "
        "[no cluster]"
    )


def test_ray_inherits_no_switch_of_python_and_no_outer_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in environment.DROPPED:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("TMPDIR", "beside")
    before = dict(os.environ)
    inherited: dict[str, str] = {}
    late = Late(0, NEVER)
    monkeypatch.setattr(late, "init", lambda **_: inherited.update(os.environ))
    run(monkeypatch, late)
    assert not inherited.keys() & {*environment.DROPPED}
    assert inherited["RAY_TMPDIR"] == str(Path("beside").absolute())
    assert dict(os.environ) == before


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


@pytest.mark.parametrize("address", ["127.0.0.1:1", "http://127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_stale_address_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(InputError) as caught:
        start.join("auto", {})
    message = str(caught.value)
    answers = "no Ray cluster answers at launcher.address=auto, which is"
    assert message.startswith(f"{answers} RAY_ADDRESS={address}: ")
    assert "; unset RAY_ADDRESS, or name a cluster with launcher.address=HOST:PORT; " in message


def test_a_stale_address_is_named_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    file = tmp_path / "ray" / "ray_current_cluster"
    file.parent.mkdir()
    file.write_text("127.0.0.1:1\n")
    with pytest.raises(InputError) as caught:
        start.join("auto", {})
    assert f"launcher.address=auto, which is 127.0.0.1:1 by {file}: " in str(caught.value)


def test_what_joins_no_cluster_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outer job's configuration that is no JSON fails in Ray, not at the cluster."""
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{")
    late = Late(0, NEVER)

    def init(**_: object) -> None:
        raise ValueError("Expecting property name")

    monkeypatch.setattr(late, "init", init)
    monkeypatch.setitem(sys.modules, "ray", late)
    monkeypatch.setattr(start, "check_speaks_grpc", lambda address: None)
    with pytest.raises(InputError) as caught:
        start.join("head:6379", {})
    assert str(caught.value).startswith(
        "can't join the Ray cluster at launcher.address=head:6379: Expecting property name; "
        "RAY_JOB_CONFIG_JSON_ENV_VAR is set here and may be the reason: try without it; "
    )


@pytest.mark.parametrize("reason", ["InvalidAuthToken: it is missing", "something else"])
def test_a_refused_token_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], reason: str
) -> None:
    """Ray prints why on the standard error of the process, and raises something vague."""
    late = Late(0, NEVER)

    def init(**_: object) -> None:
        for _ in range(7):
            os.write(2, f"gcs_client.cc: {reason}\n".encode())
        raise ConnectionError("Failed to connect to Ray cluster")

    monkeypatch.setattr(late, "init", init)
    monkeypatch.setitem(sys.modules, "ray", late)
    monkeypatch.setattr(start, "check_speaks_grpc", lambda address: None)
    with pytest.raises(InputError) as caught:
        start.join("head:6379", {})
    is_token = "Token" in reason
    assert ("RAY_AUTH_MODE=token" in str(caught.value)) == is_token
    assert ("Failed to connect" in str(caught.value)) == (not is_token)
    assert capfd.readouterr().err.count(reason) == (0 if is_token else 7)


@pytest.fixture
def listener(request: pytest.FixtureRequest) -> Iterator[str]:
    """Listen on a port, and answer each client with the parameter; return the address."""
    with contextlib.ExitStack() as clients, socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):  # the server is closed
                while True:
                    client = clients.enter_context(server.accept()[0])
                    client.sendall(request.param)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"
GRPC = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x40\x00\x00"


@pytest.mark.parametrize("listener", [HTTP, b"hm", b""], ids=repr, indirect=True)
def test_a_port_that_another_server_has_is_refused(
    monkeypatch: pytest.MonkeyPatch, listener: str
) -> None:
    """Such as a dashboard's, or one that was a head's."""
    monkeypatch.setattr(start, "GREETING_TIMEOUT_S", 0.2)
    monkeypatch.setenv("RAY_ADDRESS", listener)
    with pytest.raises(InputError) as caught:
        start.join("auto", {})
    answers = "no Ray cluster answers at launcher.address=auto, which is"
    assert str(caught.value).startswith(f"{answers} RAY_ADDRESS={listener}: ")
    start.knock(listener)


@pytest.mark.parametrize("listener", [GRPC], ids=["grpc"], indirect=True)
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_server_of_grpc_is_taken(listener: str, scheme: str) -> None:
    start.check_speaks_grpc(f"{scheme}{listener}")


@pytest.mark.parametrize("listener", [HTTP], ids=["http"], indirect=True)
def test_what_greets_encrypted_is_taken(monkeypatch: pytest.MonkeyPatch, listener: str) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    start.check_speaks_grpc(listener)
