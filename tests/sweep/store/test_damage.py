"""Damaged files are never shown as results: they are refused, or rewritten with the same bytes."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sim.base.errors import InputError
from sweep import driver
from sweep.cli import main
from sweep.store import checksums
from sweep.store.folder import DamagedError, SweepFolder
from tests import without
from tests.damages import damages
from tests.sweep.small import Command, Ran, every_file, fake_engine

GRID = ("policy=fifo,sjf", "seed=0,1", "baseline=fifo", "capacity=1.0,2.0")
N_DAMAGES = 200
N_COMMAND_DAMAGES = 3  # one of each kind

Reader = Callable[[SweepFolder], object]


def _table(name: str) -> Reader:
    return lambda folder: folder.table(name).to_pylist()  # type: ignore[union-attr]


_READERS: dict[str, Reader] = {
    "cells.parquet": lambda folder: folder.cells().to_pylist(),
    "config.yaml": SweepFolder.config,
    "provenance.json": SweepFolder.provenance,
    "verdict.json": SweepFolder.verdict,
    "table.md": lambda folder: folder.text("table.md"),
    "against_baseline.parquet": _table("against_baseline.parquet"),
    "equal_capacity.parquet": _table("equal_capacity.parquet"),
}
READERS = {name: _READERS[name] for name in without.present(_READERS)}
TARGET_READERS = {"targets.parquet": _table("targets.parquet")}
SETTINGS_READERS = {
    "settings.parquet": _table("settings.parquet"),
    "importance.parquet": _table("importance.parquet"),
}
TARGET = (
    *("policy=fifo", "capacity=interval(0.3,1.5)", "seed=0,1"),
    *("target.metric=jct_mean_s", "target.at_most=30"),
)
SEARCH = (
    *("policy=las", "policy.queues=range(1,9)"),
    *("search.metric=jct_mean_s", "search.cells=60", "search.seeds=2", "search.test_seeds=5"),
)
STUDY = """# Mine.
axes: {policy: [fifo, sjf], seed: [0, 1]}
baseline: fifo
study:
  source: nobody
  notes: none
  module: figures_of_damage
  name: fig1
"""
FIGURES = """
from sweep.questions.papers.figures import grouped, means


def fig1(finished):
    yield from means("Fig. 1", grouped(finished.cells, "policy"), "jct_mean_s")
"""


@dataclass
class FinishedSweep:
    """A finished sweep with every cell cached, and a copy of its folder."""

    folder: Path
    copy: Path
    words: tuple[str, ...]

    def restore(self) -> None:
        for file in self.folder.iterdir():
            file.unlink()
        for file in self.copy.iterdir():
            shutil.copy2(file, self.folder / file.name)


def _run_twice(command: Command, words: tuple[str, ...], tmp_path: Path) -> FinishedSweep:
    ran = command(*words)
    assert ran.code == 0, ran.err
    ran = command(*words)
    copy = tmp_path / "copy"
    shutil.copytree(ran.folder, copy)
    return FinishedSweep(ran.folder, copy, words)


def _check_reads(finished: FinishedSweep, name: str, read: Reader) -> None:
    """Damage a file `N_DAMAGES` times; assert that each read fails with an error that names it."""
    file = finished.folder / name
    original, expected = file.read_bytes(), read(SweepFolder(finished.folder))
    for content in damages(original, N_DAMAGES):
        file.write_bytes(content)
        with pytest.raises(
            DamagedError, match="running the same sweep again rewrites it"
        ) as raised:
            read(SweepFolder(finished.folder))
        assert str(file) in str(raised.value)
    file.unlink()
    with pytest.raises(DamagedError, match="it is missing"):
        read(SweepFolder(finished.folder))
    file.write_bytes(original)
    assert repr(read(SweepFolder(finished.folder))) == repr(expected)


def _check_commands(finished: FinishedSweep, command: Command, name: str) -> None:
    """Damage a file; assert that commands report it in one line and rewrite the same bytes."""
    before = every_file(finished.folder)
    file = finished.folder / name
    contents = damages(before[name], N_COMMAND_DAMAGES, seed=1)
    for number, content in enumerate(contents):
        file.write_bytes(content)
        verbs: list[Callable[[], Ran]] = [
            lambda: command(*finished.words),
            lambda: command.verb("report", finished.folder.name),
            lambda: command.verb("show", finished.folder.name),
        ]
        ran = verbs[number % 3]()
        assert ran.code == 0, ran.err
        lines = [line for line in ran.err.splitlines() if "damaged" in line]
        assert len(lines) == 1
        assert f": {name}: damaged, rewritten" in lines[0]
        assert "Traceback" not in ran.err
        assert every_file(finished.folder) == before


@pytest.mark.long
def test_damaged_files_of_a_grid(fake: Command, tmp_path: Path) -> None:
    finished = _run_twice(fake, GRID, tmp_path)
    for name, read in READERS.items():
        _check_reads(finished, name, read)
        _check_commands(finished, fake, name)
    for name in ("report.html", "report.md"):
        _check_commands(finished, fake, name)


@pytest.mark.parametrize(
    ("words", "readers"),
    [(TARGET, TARGET_READERS), (SEARCH, SETTINGS_READERS)],
    ids=["target", "settings"],
)
@pytest.mark.long
def test_damaged_files_of_a_search(
    command: Command, tmp_path: Path, words: tuple[str, ...], readers: dict[str, Reader]
) -> None:
    finished = _run_twice(command, words, tmp_path)
    for name, read in readers.items():
        _check_reads(finished, name, read)
        _check_commands(finished, command, name)


@pytest.mark.long
def test_damaged_findings_of_a_study(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "user" / "experiment"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(STUDY)
    (folder.parent / "figures_of_damage.py").write_text(FIGURES)
    finished = _run_twice(command, ("experiment=mine", f"--config-dir={folder.parent}"), tmp_path)
    _check_reads(finished, "findings.parquet", _table("findings.parquet"))
    _check_commands(finished, command, "findings.parquet")


def test_damaged_checksums(fake: Command, tmp_path: Path) -> None:
    finished = _run_twice(fake, GRID, tmp_path)
    file, before = finished.folder / checksums.NAME, every_file(finished.folder)
    expected = {name: read(SweepFolder(finished.folder)) for name, read in READERS.items()}
    for number, content in enumerate(damages(before[checksums.NAME], N_DAMAGES)):
        file.write_bytes(content)
        for name, read in READERS.items():
            with contextlib.suppress(DamagedError):
                assert repr(read(SweepFolder(finished.folder))) == repr(expected[name])
        if number % 20 == 0:
            ran = fake(*finished.words)
            assert ran.code == 0
            assert every_file(finished.folder) == before
        finished.restore()


def test_a_damaged_table_is_refused_when_its_cells_are_not_cached(
    fake: Command, tmp_path: Path
) -> None:
    finished = _run_twice(fake, GRID, tmp_path)
    shutil.rmtree(fake.results / "cache")
    original = (finished.folder / "cells.parquet").read_bytes()
    (finished.folder / "cells.parquet").write_bytes(original[:-9])
    damaged = every_file(finished.folder)
    shown = fake.verb("show", finished.folder.name)
    assert shown.code == main.WRONG
    assert "cells.parquet: it is damaged or was edited" in shown.err
    assert "not cached: 8 cells" in shown.err
    assert "running the same sweep again" in shown.err
    assert len(shown.err.splitlines()) == 1
    assert every_file(finished.folder) == damaged
    listed = fake.verb("list")
    assert listed.code == 0
    assert f"damaged: `python -m sweep report {finished.folder.name}`" in listed.out
    # files that are derived from the cells alone need no cache
    (finished.folder / "cells.parquet").write_bytes(original)
    (finished.folder / "verdict.json").write_bytes(b"[]")
    assert fake.verb("show", finished.folder.name).code == 0
    assert SweepFolder(finished.folder).is_whole()


def test_failed_cells_are_stored_only_in_the_table(
    fake: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    fake_engine(monkeypatch, fails)
    ran = fake("policy=fifo")
    assert ran.code == main.FAILED
    (ran.folder / "cells.parquet").write_bytes(b"")
    shown = fake.verb("show")
    assert shown.code == main.WRONG
    assert "not cached: 1 cell" in shown.err
    again = fake("policy=fifo")
    assert again.code == main.FAILED
    assert again.rows[0]["error_message"] == "no"


def test_a_copy_in_another_folder_is_checked_too(fake: Command, tmp_path: Path) -> None:
    finished = _run_twice(fake, GRID, tmp_path)
    assert SweepFolder(finished.copy).is_whole()
    assert driver.open_intact(fake.results, str(finished.copy)).cells().num_rows == 8
    (finished.copy / "config.yaml").write_text("a: 1\n")
    with pytest.raises(InputError, match=r"config\.yaml: it is damaged"):
        driver.open_intact(fake.results, str(finished.copy))


def test_checksums_are_in_the_format_of_sha256sum(fake: Command) -> None:
    folder = fake(*GRID).folder
    recorded = checksums.read(folder)
    names = {path.name for path in folder.iterdir()} - {checksums.NAME}
    assert recorded.keys() == names
    assert all(checksums.is_intact(folder / name, recorded[name]) for name in names)
    line = (folder / checksums.NAME).read_text().splitlines()[0]
    assert line == f"{recorded[line[66:]]}  {line[66:]}"
