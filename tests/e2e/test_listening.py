"""A local sweep starts only the processes that it needs, and none listens beyond this machine.

For the UI, see its tests.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.e2e.conftest import Command
from tests.e2e.listening import descendants, is_loopback, listening
from tests.e2e.test_kill import grid, wait_for_cells

pytestmark = pytest.mark.e2e


def test_addresses_are_read_from_proc() -> None:
    with socket.create_server(("127.0.0.1", 0)) as near, socket.create_server(("", 0)) as far:
        addresses = listening(os.getpid())
        assert ("127.0.0.1", near.getsockname()[1]) in addresses
        assert ("0.0.0.0", far.getsockname()[1]) in addresses
    assert [is_loopback(a) for a in ("127.0.0.1", "::1", "::ffff:127.0.0.1")] == [True] * 3
    assert [is_loopback(a) for a in ("0.0.0.0", "::", "10.0.0.1")] == [False] * 3


@pytest.mark.long
def test_a_local_sweep_listens_only_on_loopback(command: Command) -> None:
    results, gate = command.folder / "results", command.folder / "gate"
    gate.touch()
    process = command.start(*grid(command, "tracking=none", f"policy.gate={gate}"))
    try:
        wait_for_cells(results, 1, process)
        addresses = listening(process.pid)
        words = [
            Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in descendants(process.pid)
        ]
        gate.unlink()
        out, err = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode == 0, out + err
    programs = {Path(word).name for argv in words for word in argv}
    assert "gcs_server" in programs
    assert not {"dashboard.py", "log_monitor.py", "monitor.py"} & programs
    assert addresses  # Ray's own
    assert {address for address in addresses if not is_loopback(address[0])} == set()
