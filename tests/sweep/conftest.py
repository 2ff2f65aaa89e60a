"""Fixtures of the platform's tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim.base.sources import meaning, modules
from sweep.execution import memory
from sweep.store import provenance
from tests.sweep.small import Command, fake_engine
from tests.sweep.store.edits import Sources

VERSION = cache(provenance._version)  # of a package: a sweep looks thirteen up on disk


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
    monkeypatch.setattr(provenance, "_version", VERSION)
    # looks at all that the process of the tests holds, which takes longer than the sweep
    monkeypatch.setattr(memory, "gc", SimpleNamespace(collect=lambda: 0))
    return Command(tmp_path, capfd)


@pytest.fixture
def fake(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Do the same with a stand-in for the simulator, which takes no time to compile."""
    fake_engine(monkeypatch)
    return command


@pytest.fixture
def edited(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sources]:
    """Sources to edit, as long as a test runs."""
    folder = tmp_path_factory.getbasetemp() / "meanings"  # edits are of no use to anybody else
    monkeypatch.setattr(meaning, "cache_folder", lambda: folder)
    edited_sources = Sources()
    monkeypatch.setattr(modules, "read", edited_sources.read)
    yield edited_sources
    edited_sources.restore()
