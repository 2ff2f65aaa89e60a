from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.base import files, process
from tests.damages import damages


def test_replaces_in_one_step_and_makes_folders(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b.txt"
    files.write_text(file, "one")
    files.write_text(file, "two")
    assert file.read_text() == "two"
    assert [path.name for path in file.parent.iterdir()] == ["b.txt"]


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "b.txt"
    files.write_text(file, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        files.write_text(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    files.write_text(tmp_path / "ours", "x")
    (tmp_path / "usual").write_text("x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_temporaries_of_dead_processes_are_deleted(tmp_path: Path) -> None:
    me = process.current()
    run = [sys.executable, "-c", "from sim.base import process; print(process.current())"]
    dead = subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()
    names = {
        f".tmp-{dead}-0": False,
        f".tmp-{me}-0": True,
        f".tmp-{me.machine}-{me.pid}-{me.start - 1}-0": False,  # its number was used again
        # from another machine, or another namespace of processes, nothing can be looked for
        f".tmp-{'0' * 16}-{me.pid}-1-0": True,
        "cells.parquet": True,
    }
    folder = tmp_path / "cache" / "ab"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text("half")
    files.delete_stale_temporaries(tmp_path)
    assert {path.name for path in folder.iterdir()} == {n for n, stays in names.items() if stays}
    elsewhere = folder / f".tmp-{'0' * 16}-{me.pid}-1-0"
    os.utime(elsewhere, (0, 0))
    files.delete_stale_temporaries(tmp_path)
    assert not elsewhere.exists()


def test_broken_json_is_none(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    assert files.read_json(file) is None
    file.write_text('{"half": ')
    assert files.read_json(file) is None
    files.write_json(file, {"b": 1, "a": "é"})
    assert files.read_json(file) == {"b": 1, "a": "é"}


def test_a_damaged_checked_json_is_none(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    content = {"digest": "ab12", "n_tasks": 17, "tuple": [1, 2.5], "none": None, "ä": {"b": "x"}}
    files.write_checked_json(file, content)
    assert files.read_checked_json(file) == content
    whole = file.read_bytes()
    for damaged in damages(whole, 200):
        file.write_bytes(damaged)
        assert files.read_checked_json(file) in (None, content)  # white space may differ
    file.unlink()
    assert files.read_checked_json(file) is None


def test_half_a_surrogate_pair_is_read_again(tmp_path: Path) -> None:
    content = {"pattern": "[\udc80-\udcff] ü"}
    files.write_checked_json(tmp_path / "x.json", content)
    assert files.read_checked_json(tmp_path / "x.json") == content
