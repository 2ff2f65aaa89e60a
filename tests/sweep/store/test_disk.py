"""A disk that is full, read-only, shared by two sweeps, or damaged."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq
import pytest

from sim.base import files
from sweep.cli import main
from sweep.execution import compute
from sweep.store import shard_writer, shards
from sweep.store.journal import Journal
from tests.sweep.mounts import remount, tmpfs
from tests.sweep.small import Command, every_file, keys_kept
from tests.sweep.store.edits import STATEMENT, Sources

ROOT = Path(__file__).resolve().parents[3]
SLOW_ENGINE = """
import pathlib, sys, time
import sim
from sweep.cli import main
from sweep.execution import compute
from sweep.cli import run
from tests.sweep.small import fake_simulate, keys_kept

def slow(*args, **options):
    while gate.with_name("hold").exists():
        time.sleep(0.001)
    time.sleep(0.05)
    return fake_simulate(*args, **options)

sim.simulate = slow
gate = pathlib.Path(sys.argv[1])
print("ready", flush=True)
while not gate.exists():
    time.sleep(0.001)
sys.exit(main.main(sys.argv[2:]))
"""
GRID = ("policy=fifo,las", "capacity=0.5,1", "seed=range(0,30)", "baseline=fifo")


def sweep_files(folder: Path) -> dict[str, bytes]:
    """Contents of all files of sweeps, by path: independent of the time and of the folder."""
    contents = every_file(folder)
    return {name: contents[name] for name in contents if name.startswith("sweeps/")}


def without_status(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the status, which depends on the cells that were cached before."""
    return [{name: row[name] for name in row if name != "status"} for row in rows]


def fill(journal: Journal) -> None:
    for n in range(200):
        journal.append("cell", row=n, words="x" * 500)


class TestAFullDisk:
    def test_is_reported_and_the_sweep_resumes_when_there_is_room(
        self, fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
        monkeypatch.setattr(compute, "FLUSH_EVERY_S", 0.0)
        undisturbed = fake(*GRID)
        assert undisturbed.code == 0
        expected = sweep_files(fake.results)
        with tmpfs(tmp_path / "small", "300k") as small:
            fake.results = small
            full = fake(*GRID)
            assert full.code == main.WRONG
            assert f"No space left on device: '{small}" in full.err
            assert "the same command continues from there" in full.err
            assert "Traceback" not in full.err
            n_kept = len(keys_kept(small))
            assert 0 < n_kept < 120
            assert not list(small.rglob(".tmp-*"))
            assert "stopped; the same command resumes it" in fake.verb("status").out
            remount(small, "size=64m")
            resumed = fake(*GRID)
            assert resumed.code == 0
            assert f"{n_kept} cached" in resumed.err
            assert sweep_files(small) == expected

    def test_a_partly_written_journal_line_is_no_event(self, tmp_path: Path) -> None:
        with tmpfs(tmp_path / "small", "16k") as small:
            journal = Journal(small, "sweep-1")
            with pytest.raises(OSError, match="No space left on device"):
                fill(journal)
            n_whole = len([*journal.events()])
            assert 0 < n_whole < 200
            remount(small, "size=1m")
            journal.append("end")
            assert [event["event"] for event in journal.events()] == ["cell"] * n_whole + ["end"]

    def test_a_report_can_be_written_later(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        atomic_write: Callable[..., AbstractContextManager[BinaryIO]] = files.atomic_write

        def fail_on_cells(path: Path) -> AbstractContextManager[BinaryIO]:
            if path.name == "cells.parquet":
                raise OSError(28, "No space left on device", str(path))
            return atomic_write(path)

        monkeypatch.setattr(files, "atomic_write", fail_on_cells)
        assert fake("policy=fifo").code == main.WRONG
        monkeypatch.setattr(files, "atomic_write", atomic_write)
        ran = fake("policy=fifo")
        assert ran.code == 0
        assert "1 cached, 0 to run" in ran.err
        assert [row["status"] for row in ran.rows] == ["done"]

    def test_a_file_size_limit_is_reported_like_a_full_disk(self, fake: Command) -> None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, limit[1]))
        try:
            ran = fake("policy=fifo")  # the report holds a library of plots
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert ran.code == main.WRONG
        assert re.search(r"File too large: '.*/report.html'; free disk space", ran.err)
        again = fake("policy=fifo")
        assert again.code == 0
        assert "1 cached, 0 to run" in again.err


class TestAReadOnlyFolder:
    def test_a_sweep_is_refused_and_stored_results_can_be_read(
        self, fake: Command, tmp_path: Path
    ) -> None:
        with tmpfs(tmp_path / "read-only", "64m") as folder:
            fake.results = folder
            assert fake("policy=fifo").code == 0
            remount(folder, "ro")
            refused = fake("policy=las")
            assert refused.code == main.WRONG
            assert "Read-only file system; give paths.results=DIR" in refused.err
            for verb in ("status", "show"):
                shown = fake.verb(verb)
                assert (shown.code, shown.err) == (0, ""), verb
            assert "1 cell, 1 cached, 0 to run" in fake("plan", "policy=fifo").out
            written = fake.verb("report")
            assert written.code == main.WRONG
            assert "name a folder that can be written to" in written.err


@pytest.mark.slow
class TestTwoSweepsInOneFolder:
    def run_both(self, fake: Command, *grids: tuple[str, ...], message: str = "") -> list[str]:
        """Run sweeps side by side, each in its own process; return their standard error.

        No cell ends before one of them has printed `message`.
        """
        gate, hold = (fake.results.with_name(name) for name in ("gate", "hold"))
        logs = [fake.results.with_name(f"log{number}") for number in range(len(grids))]
        started = []
        for grid, log in zip(grids, logs, strict=True):
            command = [sys.executable, "-c", SLOW_ENGINE, str(gate), *fake.words(*grid)]
            with log.open("w") as err:
                started.append(
                    subprocess.Popen(
                        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=err, text=True
                    )
                )
        try:
            for process in started:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            hold.touch()
            gate.touch()
            end_s = time.monotonic() + 300
            while not any(message in log.read_text() for log in logs):
                assert [process.poll() for process in started] == [None, None]
                assert time.monotonic() < end_s, f"none printed {message!r}"
                time.sleep(0.01)
            hold.unlink()
            for process in started:
                process.communicate(timeout=300)
        finally:
            for process in started:
                process.kill()
                process.wait()
        errors = [log.read_text() for log in logs]
        assert [process.returncode for process in started] == [0, 0], errors
        return errors

    def test_of_one_grid_the_second_waits_for_the_first(self, fake: Command) -> None:
        grid = ("policy=fifo,las", "seed=range(0,10)")
        errors = "".join(self.run_both(fake, grid, grid, message="another process runs"))
        assert errors.count("another process runs") == 1
        assert errors.count("20 to run") == 1
        (journal,) = (fake.results / "journal").glob("*.jsonl")
        assert journal.read_text().count('"event": "cell"') == 20
        (folder,) = (fake.results / "sweeps").iterdir()
        assert pq.read_table(folder / "cells.parquet").num_rows == 20

    def test_of_overlapping_grids_both_have_all_their_cells(self, fake: Command) -> None:
        grids = (("policy=fifo,las", "seed=range(0,10)"), ("policy=fifo,las", "seed=range(5,15)"))
        alone = [dict(enumerate(fake(*grid).rows)) for grid in grids]
        fake.results = fake.results.with_name("together")
        self.run_both(fake, *grids)
        for grid, expected in zip(grids, alone, strict=True):
            rows = fake(*grid).rows
            assert len(rows) == 20
            for index, row in enumerate(rows):
                for name in ("key", "seed", "policy", "jct_mean_s"):
                    assert row[name] == expected[index][name]
        assert not list(fake.results.rglob(".tmp-*"))


class TestADamagedFile:
    GRID = ("policy=fifo,las", "seed=range(0,3)", "baseline=fifo")

    def test_of_the_cache_is_recomputed(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
        before = fake(*self.GRID)
        expected = sweep_files(fake.results)
        shards = sorted((fake.results / "cache" / "shards").iterdir())
        originals = [file.read_bytes() for file in shards]
        damaged = [
            originals[0][: len(originals[0]) // 2],
            originals[1][:300] + bytes([originals[1][300] ^ 1]) + originals[1][301:],
            b"",
            originals[5],  # another cell's
            b"PAR1" + b"\0" * 100 + b"PAR1",
        ]
        for file, content in zip(shards, damaged, strict=False):
            file.write_bytes(content)
        again = fake(*self.GRID)
        assert again.code == 0
        assert "1 cached, 5 to run" in again.err
        assert repr(without_status(again.rows)) == repr(without_status(before.rows))
        assert [file.read_bytes() for file in shards] == originals
        assert sweep_files(fake.results).keys() == expected.keys()

    @pytest.mark.parametrize(
        ("name", "content"),
        [("config.yaml", b"\xff\xfe: ["), ("config.yaml", b"a: 1\n"), ("cells.parquet", b"")],
    )
    def test_of_a_sweep_is_reported_and_rewritten(
        self, fake: Command, name: str, content: bytes
    ) -> None:
        fake(*self.GRID)
        ran = fake(*self.GRID)  # every cell is cached: files derived from them have the same bytes
        file = ran.folder / name
        original = file.read_bytes()
        for verb in ("report", "show"):
            file.write_bytes(content)
            shown = fake.verb(verb)
            assert shown.code == 0
            assert f"{ran.folder.name}: {name}: damaged, rewritten" in shown.err
            assert "Traceback" not in shown.err
            assert file.read_bytes() == original
        file.write_bytes(content)
        again = fake(*self.GRID)
        assert again.code == 0
        assert file.read_bytes() == original

    def test_of_the_journal_is_skipped(self, fake: Command) -> None:
        fake("policy=fifo")
        (journal,) = (fake.results / "journal").glob("*.jsonl")
        with journal.open("a") as file:
            file.write('{"event": "begin"}\n{"event": "begin", "time": "x", "cached": []}\n\x00{\n')
        assert fake.verb("status").code == 0
        assert "every cell is cached" in fake("policy=fifo").err


class TestACacheOfAnOlderVersion:
    def test_cells_of_other_sources_are_recomputed(self, fake: Command, edited: Sources) -> None:
        fake("policy=fifo", "seed=0,1")
        edited.edit("sim.engine.simulate", added=STATEMENT)
        again = fake("policy=fifo", "seed=0,1")
        assert again.code == 0
        assert "0 cached, 2 to run" in again.err
        assert len(keys_kept(fake.results)) == 4

    @pytest.mark.parametrize("changed", [{"version": 2}, {"cells": 0, "metrics": []}])
    def test_cells_of_another_layout_are_recomputed(
        self, fake: Command, changed: dict[str, Any]
    ) -> None:
        """Write an intact manifest, with its digest, as another version might have written it."""
        before = fake("policy=fifo")
        (file,) = (fake.results / "cache" / "manifests").iterdir()
        head, _, rest = file.read_bytes().partition(b"\n")
        content = json.dumps({**json.loads(head), **changed}).encode() + b"\n" + rest
        file.unlink()
        (file.parent / shards.digest_name(content)).write_bytes(content)
        assert fake("plan", "policy=fifo", "seed=1").code == 0
        again = fake("policy=fifo")
        assert "0 cached, 1 to run" in again.err
        assert again.rows[0]["jct_mean_s"] == before.rows[0]["jct_mean_s"]


def test_a_clock_that_is_set_back_changes_no_result(
    fake: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ("policy=fifo,las", "seed=range(0,4)", "baseline=fifo")
    expected = fake(*grid)
    before = sweep_files(fake.results)
    fake.results = fake.results.with_name("jumping")
    now = [1e9]

    def decreasing_time() -> float:
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr(time, "time", decreasing_time)
    ran = fake(*grid)
    assert ran.code == 0
    assert ran.folder.name == expected.folder.name
    assert sweep_files(fake.results) == before
    status = fake.verb("status")
    assert status.code == 0
    assert "finished in 0 s: 8 of 8 cells done" in status.out
    again = fake(*grid)
    assert again.code == 0
    assert "every cell is cached" in again.err
