"""Reachability of the results storage from a machine."""

import threading
from pathlib import Path

import pytest

from sweep.store import shard_writer, storage


@pytest.fixture(autouse=True)
def no_known_locations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clear the storages that this process has probed."""
    monkeypatch.setattr(shard_writer, "_PROBED", set())
    monkeypatch.setattr(shard_writer, "_REACHABLE", {})


def test_a_folder_is_recognised_by_its_marker(tmp_path: Path) -> None:
    marker = shard_writer.read_marker(storage.FolderStorage(tmp_path))
    assert len(marker) == 32
    assert shard_writer.read_marker(storage.FolderStorage(tmp_path)) == marker
    assert shard_writer.reachable(str(tmp_path), marker) is not None


def test_a_folder_with_another_marker_is_not_reachable(tmp_path: Path) -> None:
    shard_writer.read_marker(storage.FolderStorage(tmp_path))
    assert shard_writer.reachable(str(tmp_path), "0" * 32) is None
    assert shard_writer.reachable(str(tmp_path / "none"), "0" * 32) is None


def test_a_slow_storage_is_probed_once_and_used_when_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, requests, answered = storage.FolderStorage(tmp_path), [], threading.Event()
    marker = shard_writer.read_marker(results)

    def open_location(location: str) -> storage.Storage:
        requests.append(location)
        assert answered.wait(60)
        return results

    monkeypatch.setattr(storage, "open_location", open_location)
    monkeypatch.setattr(shard_writer, "PROBE_S", 0.01)
    assert shard_writer.reachable("s3://slow/one", marker) is None
    assert shard_writer.reachable("s3://slow/one", marker) is None
    answered.set()
    for thread in threading.enumerate():
        if thread.daemon and thread.name.endswith("(_probe)"):
            thread.join(60)
    assert shard_writer.reachable("s3://slow/one", marker) is results
    assert requests == ["s3://slow/one"]
