"""A disk that is full, that can't be written to, that two sweeps share, or that went bad."""

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


def results(folder: Path) -> dict[str, bytes]:
    """Tables of a sweep, without times and folders."""
    contents = every_file(folder)
    return {name: contents[name] for name in contents if name.startswith("sweeps/")}


def numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows less what may differ: whether a cell had been computed before."""
    return [{name: row[name] for name in row if name != "status"} for row in rows]


def fill(journal: Journal) -> None:
    for n in range(200):
        journal.append("cell", row=n, words="x" * 500)


class TestAFullDisk:
    def test_says_so_and_goes_on_from_there_with_room(
        self, fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
        monkeypatch.setattr(compute, "FLUSH_EVERY_S", 0.0)
        undisturbed = fake(*GRID)
        assert undisturbed.code == 0
        expected = results(fake.results)
        with tmpfs(tmp_path / "small", "300k") as small:
            fake.results = small
            full = fake(*GRID)
            assert full.code == main.WRONG
            assert f"No space left on device: '{small}" in full.err
            assert "the same command goes on from here" in full.err
            assert "Traceback" not in full.err
            n_kept = len(keys_kept(small))
            assert 0 < n_kept < 120
            assert not list(small.rglob(".tmp-*"))
            assert "interrupted; the same command goes on" in fake.verb("status").out
            remount(small, "size=64m")
            resumed = fake(*GRID)
            assert resumed.code == 0
            assert f"{n_kept} cached" in resumed.err
            assert results(small) == expected

    def test_a_line_of_the_journal_that_fits_in_part_is_no_event(self, tmp_path: Path) -> None:
        with tmpfs(tmp_path / "small", "16k") as small:
            journal = Journal(small, "sweep-1")
            with pytest.raises(OSError, match="No space left on device"):
                fill(journal)
            n_whole = len([*journal.events()])
            assert 0 < n_whole < 200
            remount(small, "size=1m")
            journal.append("end")
            assert [event["event"] for event in journal.events()] == ["cell"] * n_whole + ["end"]

    def test_a_report_that_has_no_room_can_be_written_later(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole: Callable[..., AbstractContextManager[BinaryIO]] = files.atomic_write

        def full(path: Path) -> AbstractContextManager[BinaryIO]:
            if path.name == "cells.parquet":
                raise OSError(28, "No space left on device", str(path))
            return whole(path)

        monkeypatch.setattr(files, "atomic_write", full)
        assert fake("policy=fifo").code == main.WRONG
        monkeypatch.setattr(files, "atomic_write", whole)
        ran = fake("policy=fifo")
        assert ran.code == 0
        assert "1 cached, 0 to run" in ran.err
        assert [row["status"] for row in ran.rows] == ["done"]

    def test_a_limit_on_the_size_of_files_is_like_a_full_disk(self, fake: Command) -> None:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**18, limit[1]))
        try:
            ran = fake("policy=fifo")  # the report holds a library of plots
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        assert ran.code == main.WRONG
        assert re.search(r"File too large: '.*/report.html'; make room", ran.err)
        again = fake("policy=fifo")
        assert again.code == 0
        assert "1 cached, 0 to run" in again.err


class TestAReadOnlyFolder:
    def test_a_sweep_is_refused_and_what_is_there_can_be_read(
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
            assert "1 cells, 1 cached, 0 to run" in fake("plan", "policy=fifo").out
            written = fake.verb("report")
            assert written.code == main.WRONG
            assert "name a folder that can be written to" in written.err


class TestTwoSweepsInOneFolder:
    def run_both(self, fake: Command, *grids: tuple[str, ...]) -> list[str]:
        """Run sweeps side by side, each in a process; give what they said on standard error."""
        gate = fake.results.with_name("gate")
        started = [
            subprocess.Popen(
                [sys.executable, "-c", SLOW_ENGINE, str(gate), *fake.words(*grid)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for grid in grids
        ]
        try:
            for process in started:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            gate.touch()
            errors = [process.communicate(timeout=300)[1] for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        assert [process.returncode for process in started] == [0, 0], errors
        return errors

    def test_of_the_same_grid_one_computes_and_the_other_waits(self, fake: Command) -> None:
        grid = ("policy=fifo,las", "seed=range(0,10)")
        errors = "".join(self.run_both(fake, grid, grid))
        assert errors.count("another process runs") == 1
        assert errors.count("20 to run") == 1
        (journal,) = (fake.results / "journal").glob("*.jsonl")
        assert journal.read_text().count('"event": "cell"') == 20
        (folder,) = (fake.results / "sweeps").iterdir()
        assert pq.read_table(folder / "cells.parquet").num_rows == 20

    def test_of_different_grids_both_have_all_their_cells(self, fake: Command) -> None:
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

    def test_of_the_cache_is_computed_anew(
        self, fake: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shard_writer, "MAX_CELLS", 1)
        before = fake(*self.GRID)
        expected = results(fake.results)
        shards = sorted((fake.results / "cache" / "shards").iterdir())
        whole = [file.read_bytes() for file in shards]
        damaged = [
            whole[0][: len(whole[0]) // 2],
            whole[1][:300] + bytes([whole[1][300] ^ 1]) + whole[1][301:],
            b"",
            whole[5],  # another cell's
            b"PAR1" + b"\0" * 100 + b"PAR1",
        ]
        for file, content in zip(shards, damaged, strict=False):
            file.write_bytes(content)
        again = fake(*self.GRID)
        assert again.code == 0
        assert "1 cached, 5 to run" in again.err
        assert repr(numbers(again.rows)) == repr(numbers(before.rows))
        assert [file.read_bytes() for file in shards] == whole
        assert results(fake.results).keys() == expected.keys()

    @pytest.mark.parametrize(
        ("name", "content"),
        [("config.yaml", b"\xff\xfe: ["), ("config.yaml", b"a: 1\n"), ("cells.parquet", b"")],
    )
    def test_of_a_sweep_is_said_so_and_written_anew(
        self, fake: Command, name: str, content: bytes
    ) -> None:
        fake(*self.GRID)
        ran = fake(*self.GRID)  # every cell is cached: what is made of it anew has the same bytes
        file = ran.folder / name
        whole = file.read_bytes()
        for verb in ("report", "show"):
            file.write_bytes(content)
            shown = fake.verb(verb)
            assert shown.code == 0
            assert f"{ran.folder.name}: {name}: damaged, rewritten" in shown.err
            assert "Traceback" not in shown.err
            assert file.read_bytes() == whole
        file.write_bytes(content)
        again = fake(*self.GRID)
        assert again.code == 0
        assert file.read_bytes() == whole

    def test_of_the_journal_is_passed_over(self, fake: Command) -> None:
        fake("policy=fifo")
        (journal,) = (fake.results / "journal").glob("*.jsonl")
        with journal.open("a") as file:
            file.write('{"event": "begin"}\n{"event": "begin", "time": "x", "cached": []}\n\x00{\n')
        assert fake.verb("status").code == 0
        assert "every cell is cached" in fake("policy=fifo").err


class TestACacheOfAnOlderVersion:
    def test_other_sources_are_computed_anew(self, fake: Command, edited: Sources) -> None:
        fake("policy=fifo", "seed=0,1")
        edited.edit("sim.engine.simulate", added=STATEMENT)
        again = fake("policy=fifo", "seed=0,1")
        assert again.code == 0
        assert "0 cached, 2 to run" in again.err
        assert len(keys_kept(fake.results)) == 4

    @pytest.mark.parametrize("about", [{"version": 2}, {"cells": 0, "metrics": []}])
    def test_another_layout_is_computed_anew(self, fake: Command, about: dict[str, Any]) -> None:
        """Write a whole manifest, digest and all, as another version might have."""
        before = fake("policy=fifo")
        (file,) = (fake.results / "cache" / "manifests").iterdir()
        head, _, rest = file.read_bytes().partition(b"\n")
        content = json.dumps({**json.loads(head), **about}).encode() + b"\n" + rest
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
    contents = results(fake.results)
    fake.results = fake.results.with_name("jumping")
    now = [1e9]

    def earlier_each_time() -> float:
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr(time, "time", earlier_each_time)
    ran = fake(*grid)
    assert ran.code == 0
    assert ran.folder.name == expected.folder.name
    assert results(fake.results) == contents
    status = fake.verb("status")
    assert status.code == 0
    assert "finished in 0 s: 8 of 8 cells done" in status.out
    again = fake(*grid)
    assert again.code == 0
    assert "every cell is cached" in again.err
