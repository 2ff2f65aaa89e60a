"""A package of another's: its strategy, section and verbs; broken ones cost a line each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.base import entry_points
from sweep.cli import verb_source, verbs
from sweep.grid import plugins
from sweep.store import provenance, sources
from tests.sweep.small import Command

STRATEGY = """
from dataclasses import dataclass

import pyarrow as pa

from sweep.execution.strategy import Batch
from sweep.grid import grid
from sweep.grid.goal import Goal

ORDER = 50
KEYS = ("every.nth",)
FILES = ("every.parquet",)
HELP = ("  every.nth=N         each N-th cell of the grid",)


@dataclass(frozen=True)
class Every(Goal):
    nth: int
    sweep_name = "every"

    def record(self):
        return {"every": {"nth": self.nth}}


def take(lines, defaults):
    line = lines.pop("every.nth", None)
    return None if line is None else Every(line.value)


class Strategy:
    def __init__(self, request):
        self.request, self.id_part = request, request.goal

    def batches(self, inputs):
        import dataclasses

        whole = grid.build(self.request)
        chosen = dataclasses.replace(whole, cells=whole.cells[:: self.request.goal.nth])
        yield Batch(chosen)
        return chosen

    def tables(self):
        return {"every.parquet": pa.table({"nth": [self.request.goal.nth]})}


def strategy(request):
    return Strategy(request) if isinstance(request.goal, Every) else None
"""
SECTION = """
from sweep.report.contribution import Contribution
from sweep.report.section import Section

ORDER = 50


def contribute(sweep):
    return Contribution(
        sections=tuple(sections(sweep.folder, sweep.config)),
        verdict={entry: {"mine": 1} for entry in ("parquet",)},
    )


def sections(folder, config):
    return [Section("mine", "A section of another's", ("Every cell was counted.",))]


def points(folder):
    return {"mine_counted": 3.0}
"""
VERB = '''
def mine_arguments(parser):
    parser.usage = f"{parser.prog} [SWEEP]"
    parser.add_argument("--loud", action="store_true")
    parser.add_argument("--times", type=int, default=1)


def mine(command):
    """Count the sheep."""
    print("sheep " * command.flags.times)
    return 0


def show_mine_arguments(parser):
    parser.add_argument("--mine", action="store_true")


def show_mine(command):
    return print("mine, not theirs") or 0 if command.flags.mine else None
'''
MODULES = {
    "strategy": STRATEGY,
    "section": SECTION,
    "verb": VERB,
    "broken": "raise RuntimeError('no such luck')\n",
    "failing": "ORDER = 60\n\n\ndef contribute(sweep):\n    raise KeyError('luck')\n",
    "__init__": "",
}
ENTRIES = """
[cluster_sweep.strategies]
every = my_plugs.strategy
unlucky = my_plugs.broken
[cluster_sweep.sections]
mine = my_plugs.section
failing = my_plugs.failing
[cluster_sweep.verbs]
mine = my_plugs.verb
show.mine = my_plugs.verb
show.unlucky = my_plugs.broken
unlucky = my_plugs.broken
[cluster_sweep.policies]
unlucky = my_plugs.broken
"""
GRID = ("policy=fifo,sjf", "seed=0,1")


def forget() -> None:
    for cached in (
        *(entry_points._by_kind, plugins.installed, verbs.about, verb_source._functions),
    ):
        cached.cache_clear()
    sources.forget()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install a package for the time of a test."""
    folder = tmp_path / "site"
    for name, text in MODULES.items():
        (folder / "my_plugs").mkdir(parents=True, exist_ok=True)
        (folder / "my_plugs" / f"{name}.py").write_text(text)
    (folder / "my_plugs-1.5.dist-info").mkdir()
    (folder / "my_plugs-1.5.dist-info" / "METADATA").write_text("Name: my-plugs\nVersion: 1.5\n")
    (folder / "my_plugs-1.5.dist-info" / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_plugs"]:
        del sys.modules[name]
    forget()


def test_the_verb_plugins_names_each_and_what_is_broken(fake: Command, package: Path) -> None:
    ran = fake.bare("plugins")
    assert ran.code == 1
    assert ["strategies", "every", "my-plugs", "1.5"] in [
        line.split() for line in ran.out.split("\n")
    ]
    broken = [line for line in ran.out.splitlines() if "no such luck" in line]
    assert len(broken) == 4
    assert all("'unlucky' of my-plugs 1.5 can't be imported: RuntimeError" in b for b in broken[:1])
    alone = fake.bare("plugins", "readers")
    assert alone.code == 0
    assert "my-plugs" not in alone.out
    assert "did you mean 'readers'" in fake.bare("plugins", "reader").err


def test_the_projects_own_plug_ins_are_whole(fake: Command) -> None:
    assert fake.bare("plugins").code == 0


def test_help_shows_verbs_without_importing_them(fake: Command, package: Path) -> None:
    shown = fake.bare("--help")
    assert shown.code == 0
    assert "\n  mine        Count the sheep.\n" in shown.out
    assert "\n  every.nth=N         each N-th cell of the grid\n" in shown.out
    assert "my_plugs.verb" not in sys.modules
    assert verbs.about("mine").flags == ("--help", "--loud", "--times")
    assert verbs.about("mine").with_value == {"--times"}
    assert verbs.takes("mine", "SWEEP")
    assert verbs.verb_position(["--times", "list", "mine"]) == 2
    assert "my_plugs.verb" not in sys.modules


def test_a_verb_and_an_extension_run(fake: Command, package: Path) -> None:
    assert fake.bare("mine", "--times=2").out == "sheep sheep \n"
    assert fake(*GRID).code == 0
    assert fake.verb("show", "--mine").out == "mine, not theirs\n"
    shown = fake.verb("show", "0")
    assert shown.code == 0
    assert shown.out.startswith("row 0")
    (line,) = shown.err.splitlines()
    assert "verbs: 'show.unlucky' of my-plugs 1.5 can't be imported" in line
    unlucky = fake.bare("unlucky")
    assert unlucky.code == 2
    assert "no such luck" in unlucky.err


def test_a_strategy_and_a_section_take_part(command: Command, package: Path) -> None:
    ran = command(*GRID, "every.nth=2")
    assert ran.code == 0, ran.err
    assert ran.folder.name.startswith("every-")
    assert [(row["policy"], row["seed"]) for row in ran.rows] == [("fifo", 0), ("sjf", 0)]
    assert (ran.folder / "every.parquet").is_file()
    assert "## A section of another's" in (ran.folder / "report.md").read_text()
    assert "A section of another's" in ran.out
    verdict = json.loads((ran.folder / "verdict.json").read_text())
    assert [entry["mine"] for entry in verdict] == [1]
    record = json.loads((ran.folder / "provenance.json").read_text())
    assert record["plugins"] == {"my-plugs": "1.5"}
    for name in ("strategies: 'unlucky'", "sections: 'failing' of my-plugs 1.5 failed: KeyError"):
        assert len([line for line in ran.err.splitlines() if name in line]) == 1
    before = (ran.folder / "every.parquet").read_bytes()
    (ran.folder / "every.parquet").write_bytes(b"")
    assert "every.parquet: damaged, rewritten" in command.verb("report").err
    assert (ran.folder / "every.parquet").read_bytes() == before
    checked = command.verb("verify", "--cells", "2")
    assert checked.code == 0, checked.out
    assert "every.parquet" in checked.out


def test_an_archive_says_which_package_it_could_use(
    command: Command, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(*GRID).code == 0
    file = tmp_path / "a.zip"
    assert command.verb("export", str(file), "--with-traces").code == 0
    assert "it could use" not in command.bare("verify", str(file), "--cells", "1").err
    monkeypatch.setattr(provenance, "plug_in_packages", dict)
    noted = command.bare("verify", str(file), "--cells", "1").err
    assert "it could use my-plugs 1.5, here not installed" in noted
