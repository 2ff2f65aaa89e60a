"""Nothing that a local sweep or the UI starts listens beyond this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Command
from tests.e2e.listening import is_loopback, listening
from tests.e2e.test_kill import grid, wait_for_cells
from tests.ports import any_port

pytestmark = pytest.mark.e2e


def test_the_addresses_are_read_right() -> None:
    with socket.create_server(("127.0.0.1", 0)) as near, socket.create_server(("", 0)) as far:
        found = listening(os.getpid())
        assert ("127.0.0.1", near.getsockname()[1]) in found
        assert ("0.0.0.0", far.getsockname()[1]) in found
    assert [is_loopback(a) for a in ("127.0.0.1", "::1", "::ffff:127.0.0.1")] == [True] * 3
    assert [is_loopback(a) for a in ("0.0.0.0", "::", "10.0.0.1")] == [False] * 3


@pytest.mark.long
def test_a_local_sweep_listens_on_loopback_alone(command: Command) -> None:
    results, gate = command.folder / "results", command.folder / "gate"
    gate.touch()
    process = command.start(*grid(command, "tracking=none", f"policy.gate={gate}"))
    try:
        wait_for_cells(results, 1, process)
        found = listening(process.pid)
        gate.unlink()
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, out + err
    assert found  # Ray's own
    assert {one for one in found if not is_loopback(one[0])} == set()


@pytest.mark.slow
def test_the_ui_listens_on_loopback_alone(tmp_path: Path) -> None:
    from sweep.track import connection

    with connection.connected(f"sqlite:///{tmp_path / 'mlflow.db'}", ""):
        pass
    port = any_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "sweep.ui", str(tmp_path), "--port", str(port)],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 240
        while not any(at == port for _, at in listening(process.pid)):
            assert process.poll() is None
            assert time.monotonic() < end, "the UI does not listen"
            time.sleep(0.2)
        assert {one for one in listening(process.pid) if not is_loopback(one[0])} == set()
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)
