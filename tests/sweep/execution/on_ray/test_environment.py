"""Environment variables that keep Ray from starting."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sim.base.errors import InputError
from sweep.execution.on_ray import environment

LONG = "/" + "t" * 90


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({}, "/tmp"),
        ({"TMPDIR": ""}, "/tmp"),
        ({"TMPDIR": "/var/tmp"}, "/var/tmp"),
        ({"TMPDIR": LONG, "RAY_TMPDIR": "/short"}, "/short"),
        ({"TMPDIR": "/var/tmp", "RAY_TMPDIR": ""}, "/var/tmp"),
    ],
)
def test_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.temp_folder() == Path(folder)


def test_it_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "below")
    assert environment.temp_folder() == tmp_path / "below"


@pytest.mark.parametrize("name", ["TMPDIR", "RAY_TMPDIR"])
def test_one_too_long_for_a_socket_is_refused_before_ray_starts(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, LONG)
    with pytest.raises(InputError) as caught, environment.prepared():
        pytest.fail("not reached")
    message = str(caught.value)
    assert message.startswith(f"{name}={LONG} has 91 bytes, and Ray's sockets need a path of at")
    assert "set RAY_TMPDIR to a shorter one, as RAY_TMPDIR=/tmp" in message


def test_the_longest_that_fits_is_the_one_that_ray_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray._private.utils import validate_socket_filepath

    socket = environment._SOCKET.format(pid=os.getpid())
    longest = "/" + "ü" * ((107 - len(socket) - 2) // 2)
    monkeypatch.setenv("TMPDIR", longest)
    environment.check_temp_folder()
    validate_socket_filepath(str(environment.temp_folder() / socket))
    monkeypatch.setenv("TMPDIR", f"{longest}üü")
    with pytest.raises(InputError, match="RAY_TMPDIR=/tmp"):
        environment.check_temp_folder()
    with pytest.raises(OSError, match="107"):
        validate_socket_filepath(f"{longest}üü/{socket}")


@pytest.mark.parametrize("name", ["PYTHONPATH", "NUMBA_CACHE_DIR"])
def test_a_folder_that_workers_cannot_read_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    for variable in ("LC_CTYPE", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("LC_ALL", "C")
    environment.check_text({name: "/plain"})
    with pytest.raises(InputError) as caught:
        environment.check_text({name: "/f\udcc3\udcbcr"})
    assert "the encoding ascii (PYTHONUTF8=0, LC_ALL=C): set PYTHONUTF8=1" in str(caught.value)
    assert name in str(caught.value)


def test_suspects_are_what_the_user_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name not in ("PATH", "HOME"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")  # as `start_local` sets it
    assert environment.suspects() == ""
    monkeypatch.setenv("LD_PRELOAD", "/x.so")
    assert environment.suspects() == (
        "; LD_PRELOAD is set here and may be the reason: try without it"
    )
    monkeypatch.setenv("RAY_raylet_x", "1")
    monkeypatch.setenv("https_proxy", "http://proxy")
    assert environment.suspects() == (
        "; LD_PRELOAD, RAY_raylet_x, https_proxy are set here and may be the reason: try without "
        "them"
    )


HEAD = "[2026-11-28 15:40:47,905 {severity} 26320 26345] (raylet) node_manager.cc:3588:  {text}\n"


def test_the_last_error_of_the_logs(tmp_path: Path) -> None:
    assert environment.last_log_line(tmp_path / "none") == ""
    (tmp_path / "raylet.out").write_bytes(b"\xff\n")
    assert environment.last_log_line(tmp_path) == ""
    texts = [("I", "all is well"), ("C", "A bug. Check failed: a port"), ("W", "slow")]
    lines = [HEAD.format(severity=severity, text=text) for severity, text in texts]
    (tmp_path / "raylet.out").write_text("".join(lines) + "main(+0x1) [0x2]\n")
    assert environment.last_log_line(tmp_path) == "Check failed: a port"
    agent = HEAD.format(severity="E", text="one Ray agent failed, agent_name = some_agent.")
    (tmp_path / "raylet.out").write_text(agent + "".join(lines))
    assert environment.last_log_line(tmp_path) == "Check failed: a port"  # the agent has no log
    (tmp_path / "some_agent.log").write_text("Traceback\n  File\nTypeError: no text\n\n")
    assert environment.last_log_line(tmp_path) == "TypeError: no text"
