"""Probing of a storage by its marker."""

import threading
from pathlib import Path

import pytest

from sweep.store import shard_writer, storage


@pytest.fixture(autouse=True)
def nothing_sought(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process know of no place."""
    monkeypatch.setattr(shard_writer, "_PROBED", set())
    monkeypatch.setattr(shard_writer, "_REACHABLE", {})


def test_a_folder_is_reached_at_once_by_its_mark(tmp_path: Path) -> None:
    mark = shard_writer.read_marker(storage.FolderStorage(tmp_path))
    assert len(mark) == 32
    assert shard_writer.read_marker(storage.FolderStorage(tmp_path)) == mark
    assert shard_writer.reachable(str(tmp_path), mark) is not None


def test_a_folder_of_that_name_on_another_disk_is_not_taken_for_it(tmp_path: Path) -> None:
    shard_writer.read_marker(storage.FolderStorage(tmp_path))
    assert shard_writer.reachable(str(tmp_path), "0" * 32) is None
    assert shard_writer.reachable(str(tmp_path / "none"), "0" * 32) is None


def test_a_place_that_does_not_answer_is_waited_for_once_and_used_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_storage, calls, answers = storage.FolderStorage(tmp_path), [], threading.Event()
    mark = shard_writer.read_marker(folder_storage)

    def named(where: str) -> storage.Storage:
        calls.append(where)
        assert answers.wait(60)
        return folder_storage

    monkeypatch.setattr(storage, "open_location", named)
    monkeypatch.setattr(shard_writer, "PROBE_S", 0.01)
    assert shard_writer.reachable("s3://slow/one", mark) is None
    assert shard_writer.reachable("s3://slow/one", mark) is None
    answers.set()
    for thread in threading.enumerate():
        if thread.daemon and thread.name.endswith("(_look_for)"):
            thread.join(60)
    assert shard_writer.reachable("s3://slow/one", mark) is folder_storage
    assert calls == ["s3://slow/one"]
