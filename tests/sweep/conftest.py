"""Fixtures of the platform's tests."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sweep.store import provenance
from tests.sweep.small import Command, fake_engine


@pytest.fixture
def closed_port() -> int:
    """Port of this machine on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run ``python -m sweep`` in this process, inline, on a small workload."""
    # what somebody edits while the tests run is no difference between two runs
    monkeypatch.setattr(provenance, "_git", lambda: (None, ""))
    return Command(tmp_path, capfd)


@pytest.fixture
def fake(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Do the same with a stand-in for the simulator, which takes no time to compile."""
    fake_engine(monkeypatch)
    return command
