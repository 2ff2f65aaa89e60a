"""Digests of sources: edits that make cached cells stale, and edits that do not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import policies
import policies.registry
from sim import evaluators
from sim.base.plugins import Plugins
from sim.base.sources import closure, digest_table
from sim.evaluators import EVALUATORS
from sim.synth import GENERATORS
from sim.traces import FORMATS
from sweep.store import sources
from tests.sweep.store.edits import COMMENT, STATEMENT, Sources
from tests.without import absent

CELLS = {
    "fifo": ("fifo", "simulation"),
    "slearn": ("slearn", "simulation"),
    "wing_mil": ("wing_mil", "simulation"),
    "jockey": ("jockey", "deadlines"),
    "slurm": ("slurm", "simulation"),
    "described": ("none", "described"),
    "dag_distances": ("none", "dag_distances"),
}
WORKLOADS: dict[str, dict[str, Any]] = {
    "cosmos": {"synth": "cosmos"},
    "alibaba_synth": {"synth": "alibaba2018"},
    "scope_jobs": {"synth": "scope_jobs"},
    "swf": {"format": "swf"},
    "amplified": {"format": "parquet", "transforms": {"amplify": {"ratio": 2}}},
}
ALL_CELLS, ALL_WORKLOADS = {*CELLS}, {*WORKLOADS}
RUNS = {*ALL_CELLS, "scope_jobs"}  # whose history of runs is simulated
AMPLIFIERS = {"amplified", "alibaba_synth", "dag_distances"}
ALL = ALL_CELLS | ALL_WORKLOADS

DOCSTRING = {"old": b'"""', "new": b'"""Said better: '}
EDITS: list[tuple[str, str, dict[str, bytes], set[str]]] = [
    ("a comment in a generator", "policies.wing.cosmos.month", {"added": COMMENT}, set()),
    ("a comment in a loader", "sim.traces.swf", {"added": COMMENT}, set()),
    (
        "a comment in a kernel of lineage",
        "policies.wing.lineage.kernels.closure",
        {"added": COMMENT},
        set(),
    ),
    ("a comment in the engine", "sim.engine.simulate", {"added": COMMENT}, set()),
    ("a docstring of the engine", "sim.engine.simulate", DOCSTRING, set()),
    ("a docstring of a policy", "policies.orders", DOCSTRING, set()),
    ("the style sheet of pages", "sim.base.html/page.css", {"added": COMMENT}, set()),
    ("the command line", "sim.cli.main", {"added": STATEMENT}, set()),
    ("another evaluator", "policies.wing.evaluators.kinds", {"added": STATEMENT}, set()),
    ("another policy", "policies.sharing", {"added": STATEMENT}, set()),
    ("a generator", "policies.wing.cosmos.month", {"added": STATEMENT}, {"cosmos"}),
    ("a loader", "sim.traces.swf", {"added": STATEMENT}, {"swf"}),
    ("a transform", "sim.transforms.tasks", {"added": STATEMENT}, set()),
    ("a transform that is applied", "sim.transforms.demands", {"added": STATEMENT}, AMPLIFIERS),
    ("a policy", "policies.orders", {"added": STATEMENT}, {"fifo"}),
    (
        "a policy's helper",
        "policies.slearn.posterior",
        {"added": STATEMENT},
        {"slearn"},
    ),
    ("a policy's base", "policies.base", {"added": STATEMENT}, ALL_CELLS),
    (
        "a generator's table of numbers",
        "policies.alibaba.synth/tables.json",
        {"added": b"\n"},
        {"alibaba_synth", "dag_distances"},
    ),
    (
        "a number in a metric",
        "sim.metrics.jobs",
        {"old": b"jct, 50, 90, 95, 99", "new": b"jct, 50, 90, 95, 98"},
        ALL_CELLS,
    ),
    ("the main loop", "sim.engine.kernels.run", {"added": STATEMENT}, RUNS),
    ("a planner", "sim.engine.kernels.rigid.replan_nodes", {"added": STATEMENT}, {"slurm"}),
    ("a gang", "sim.engine.kernels.rigid.gang", {"added": STATEMENT}, RUNS),
    ("the engine", "sim.engine.simulate", {"added": STATEMENT}, RUNS),
    ("the clusters", "sweep.grid.clusters", {"added": STATEMENT}, ALL_CELLS),
    ("the size of clusters", "sweep.grid.cluster_size", {"added": STATEMENT}, ALL),
    ("the workload", "sim.workload.workload", {"added": STATEMENT}, ALL),
    ("the run of a cell", "sweep.execution.cell", {"added": STATEMENT}, ALL_CELLS),
    ("the recipe of workloads", "sweep.grid.recipe", {"added": STATEMENT}, ALL_WORKLOADS),
]


def digests() -> dict[str, str]:
    cells = {
        name: sources.cell_digest({"name": policy}, {"name": evaluator})
        for name, (policy, evaluator) in CELLS.items()
    }
    return cells | {name: sources.workload_digest(trace) for name, trace in WORKLOADS.items()}


BEFORE: dict[str, str] = {}


def unedited(edited: Sources) -> dict[str, str]:
    """Return the digests of sources without an edit, which are computed once."""
    if not BEFORE:
        edited.restore()
        BEFORE.update(digests())
    return BEFORE


@pytest.mark.parametrize(
    ("name", "edit", "stale"), [edit[1:] for edit in EDITS], ids=[edit[0] for edit in EDITS]
)
@pytest.mark.slow
def test_an_edit_changes_only_the_digests_that_depend_on_it(
    edited: Sources, name: str, edit: dict[str, bytes], stale: set[str]
) -> None:
    before = unedited(edited)
    edited.edit(name, **edit)
    after = digests()
    assert {name for name in before if before[name] != after[name]} == stale


def test_every_module_of_a_cell_is_in_its_digest(edited: Sources) -> None:
    policy, evaluator = CELLS["jockey"]  # it has most
    cell_sources = ({"name": policy}, {"name": evaluator})
    table = sources.cell_table(*cell_sources)
    names = sorted(table)
    assert len(names) > 150
    for some in (names[::2], names[1::2]):
        edited.add_to(some, STATEMENT)
        after = sources.cell_table(*cell_sources)
        assert {name for name in names if after[name] != table[name]} == {*some}
    edited.restore()
    assert sources.cell_digest(*cell_sources) == digest_table(table)
    assert all(digest_table({**table, name: "edited"}) != digest_table(table) for name in names)


def test_equal_sources_give_equal_digests(edited: Sources) -> None:
    before = digests()
    edited.restore()
    assert digests() == before


@pytest.mark.parametrize("name", evaluators.names())
def test_an_evaluator_is_in_the_digest_of_its_cells(name: str) -> None:
    module = EVALUATORS.module(name).__name__
    assert module in sources.cell_table({"name": "none"}, {"name": name})


def test_a_policy_is_in_the_digest_with_its_base_classes() -> None:
    for name in policies.names():
        table = sources.cell_table({"name": name}, {"name": "simulation"})
        modules = {cls.__module__ for cls in policies.spec(name).__mro__}
        assert modules - {"abc", "builtins"} <= {*table}


class TestUserModules:
    POLICY = """
from dataclasses import dataclass

from policies import Policy, register
from sources_helper import X


@register("sources_mine")
@dataclass(frozen=True)
class Mine(Policy):
    pass
"""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "sources_helper", raising=False)
        (tmp_path / "sources_helper.py").write_text("X = 1\n")
        yield tmp_path
        sources.forget()

    def changed_digests(
        self, folder: Path, policy: dict[str, Any], evaluator: dict[str, Any]
    ) -> list[bool]:
        """Return for a comment and for a number in an imported module: did the digest change?"""
        results = []
        for text in ("X = 1  # one\n", "X = 2\n"):
            sources.forget()
            before = sources.cell_digest(policy, evaluator)
            (folder / "sources_helper.py").write_text(text)
            sources.forget()
            results.append(sources.cell_digest(policy, evaluator) != before)
        return results

    def test_policy(self, folder: Path) -> None:
        (folder / "sources_mine.py").write_text(self.POLICY)
        policies.registry.load("sources_mine")
        user, fifo = {"name": "sources_mine", "module": "sources_mine"}, {"name": "fifo"}
        assert self.changed_digests(folder, user, {"name": "simulation"}) == [False, True]
        assert self.changed_digests(folder, fifo, {"name": "simulation"}) == [False, False]

    def test_evaluator(self, folder: Path) -> None:
        (folder / "sources_evaluator.py").write_text("from sources_helper import X\n")
        user = {"name": "mine", "module": "sources_evaluator"}
        assert self.changed_digests(folder, {"name": "fifo"}, user) == [False, True]


@pytest.mark.parametrize("kind", ["policy", "evaluator", "generator", "reader"])
def test_no_digest_holds_a_page_a_papers_results_or_the_numbers_of_another_paper(kind: str) -> None:
    modules_of: dict[str, Callable[[], dict[str, str]]] = {
        "policy": lambda: {n: policies.spec(n).__module__ for n in policies.names()},
        "evaluator": lambda: _plugin_modules(EVALUATORS),
        "generator": lambda: _plugin_modules(GENERATORS),
        "reader": lambda: _plugin_modules(FORMATS),
    }
    own = {"described": ("alibaba",), "published": ("alibaba", "dagps", "jockey", "wing")}
    for name, module in modules_of[kind]().items():
        if {f"policies/{paper}" for paper in own.get(name, ())} & {*absent().get("rooms", ())}:
            continue  # of a paper that is not here any numbers may be
        room = module.split(".")[1]
        allowed = tuple(f"policies.{paper}." for paper in (room, *own.get(name, ())))
        wrong = [
            part
            for part in closure([module])
            if part.startswith(("sim.base.html", "sim.describe.page", "sim.describe.figures"))
            or part.endswith((".html", ".j2", ".js", ".css", ".gz", ".md"))
            or (part.endswith("sections.yaml") and name not in own)
            or (".numbers" in part and not part.startswith(allowed))
            or ".study" in part  # what a paper prints of results, and definitions of ours
        ]
        assert not wrong, name


def _plugin_modules(plugins: Plugins) -> dict[str, str]:
    return {name: plugins.module(name).__name__ for name in plugins.names()}
