"""Fixtures of the platform's tests."""

from __future__ import annotations

import gc
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


@pytest.fixture(scope="session", autouse=True)
def quick_sweeps() -> Iterator[None]:
    """Leave out what takes longer than a sweep of a test, here where hundreds run in one process.

    A full garbage collection looks through all that the tests hold; the versions of thirteen
    packages are looked up on disk.
    """
    with pytest.MonkeyPatch.context() as patch:
        thresholds = {"get_threshold": gc.get_threshold, "set_threshold": gc.set_threshold}
        patch.setattr(memory, "gc", SimpleNamespace(collect=lambda: 0, **thresholds))
        patch.setattr(provenance, "_version", cache(provenance._version))
        yield


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
