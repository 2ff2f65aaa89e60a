from __future__ import annotations

import subprocess
from pathlib import Path

import numpy
import pytest

from sweep.store import provenance


def git(folder: Path, *words: str) -> None:
    name = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    (folder / "sim").mkdir(parents=True)
    (folder / "sim" / "a.py").write_text("A = 1\n")
    (folder / "requirements.lock").write_text("numpy==2.0\n")
    git(tmp_path, "init", "-q", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    monkeypatch.setattr(provenance, "_ROOT", folder)
    return folder


def test_the_record_of_a_clean_checkout(checkout: Path) -> None:
    record, diff = provenance.collect(["policy=fifo"], [0, 1], [{"digest": "d"}])
    assert record["command"] == "python -m sweep policy=fifo"
    assert record["seeds"] == [0, 1]
    assert record["packages"]["numpy"] == numpy.__version__
    assert record["cpu"]
    assert record["cpu_features"] == provenance.cpu_features() != []
    assert len(record["lock"]) == 64
    assert len(record["git"]["commit"]) == 40
    assert record["git"]["dirty"] is False
    assert diff == ""


def test_the_diff_of_a_dirty_checkout(checkout: Path) -> None:
    (checkout / "sim" / "a.py").write_text("A = 2\n")
    (checkout / "sim" / "b.py").write_text("B = 1\n")
    record, diff = provenance.collect([], [0], [])
    assert record["git"]["dirty"] is True
    assert "+A = 2" in diff
    assert "new file sim/b.py sha256" in diff
    (checkout / "sim" / "b.py").write_text("B = 2\n")
    other, _ = provenance.collect([], [0], [])
    assert other["git"]["diff_sha256"] != record["git"]["diff_sha256"]


def test_files_that_a_run_writes_do_not_make_a_checkout_dirty(checkout: Path) -> None:
    (checkout / "my results").mkdir()
    (checkout / "my results" / "cells.parquet").write_bytes(b"x")
    record, _ = provenance.collect([], [0], [])
    assert record["git"]["dirty"] is False


def test_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    record, diff = provenance.collect([], [0], [])
    assert record["git"] is None
    assert record["lock"] is None
    assert diff == ""


def test_secrets_are_masked(checkout: Path) -> None:
    words = ["trace.path=s3://me:hush@host/x?token=hush"]
    (checkout / "sim" / "a.py").write_text("password = 'hush'\nURI = 'http://a:hush@b'\n")
    record, diff = provenance.collect(words, [0], [{"path": "ftp://a:hush@b"}])
    assert "hush" not in str(record)
    assert "http://a:hush" not in diff


def test_results_of_other_versions_are_reported(checkout: Path) -> None:
    record, _ = provenance.collect([], [0], [])
    assert provenance.other_bits(record) == ""
    moved = {**record, "cpu_features": ["NEON"], "packages": {**record["packages"], "numpy": "1.0"}}
    message = provenance.other_bits(moved)
    assert "computed with CPU features NEON, this machine has CPU features " in message
    assert f"computed with numpy 1.0, this machine has numpy {numpy.__version__}" in message
    del record["cpu_features"]
    assert "before numbers were the same bits on every machine" in provenance.other_bits(record)
