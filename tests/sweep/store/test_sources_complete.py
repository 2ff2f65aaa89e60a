"""Nothing of the project that numbers come from is unknown to their digest: seen by running it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import policies
from sim.base.sources import Table, modules
from sim.evaluators import NO_POLICY
from sweep.execution import plan
from sweep.execution.plan import PlannedCell, PreparedGrid
from sweep.grid import grid
from sweep.store import sources
from tests.sweep.small import request, write_workload
from tests.sweep.store.edits import file_of

ROOT = Path(__file__).resolve().parents[3]
NO_NUMBERS = (".py", ".pyc", ".j2", ".css", ".js")

# imports as little as it can before what is looked at: what was there already is not seen to come
HEAD = """
import json, sys
given = json.loads(sys.stdin.read())
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
"""
TAIL = """
print(json.dumps([sorted(sys.modules), sorted(set(opened))]))
"""
A_CELL = """
import importlib
from pathlib import Path
from sweep.execution.cell import CellSpec, clusters, run_cell
import policies
from sim.workload.workload import Workload

# it would import every policy that there is; what a cell needs of them is its own
policies.registry._discover = lambda: given["home"] and importlib.import_module(given["home"])
workload, spec = Workload.read(Path(given["folder"])), CellSpec(**given["spec"])
result = run_cell(workload, spec, clusters.build_for(workload, spec.cluster, spec.capacity))
assert result.error is None, result.error["traceback"]
"""
A_WORKLOAD = """
from sweep.grid import recipe
recipe.make(given["trace"], given["cluster"])
"""

TRACES = {
    "alibaba_synth": ("trace.jobs=20", "trace.max_tasks_per_stage=5"),
    "build_dags": ("trace.jobs=5",),
    "cosmos": ("trace.scale=0.02",),
    "parquet": ("+trace.transforms={amplify: {ratio: 2}, squeeze: {span_s: 3}}",),
    "production_dags": ("trace.jobs=5",),
    "scope_jobs": ("trace.job=A", "trace.deadline=short"),
    "slearn_2sigma": ("trace.jobs=50", "trace.history=60"),
    "swf": (),
}
SWF = "1 0 5 60 2 -1 -1 2 60 -1 1 3 1 1 1 1 -1 -1\n"

CELLS = [
    ("fifo", "simulation", "alibaba_synth"),
    ("fair", "alone", "alibaba_synth"),
    ("tetris", "simulation", "alibaba_synth"),
    ("coffman_graham", "alone", "alibaba_synth"),
    ("heft", "alone", "alibaba_synth"),
    ("dagps", "simulation", "alibaba_synth"),
    ("slearn", "sized", "slearn_2sigma"),
    ("bayes", "simulation", "slearn_2sigma"),
    ("wing_mil", "kinds", "cosmos"),
    ("wing_dep", "simulation", "cosmos"),
    ("jockey", "deadlines", "scope_jobs"),
    ("jockey", "progress", "scope_jobs"),
    ("jockey_online", "due", "scope_jobs"),
    ("max_allocation", "due", "scope_jobs"),
    (NO_POLICY, "described", "alibaba_synth"),
    *(
        pytest.param(NO_POLICY, evaluator, trace, marks=pytest.mark.long)
        for evaluator, trace in (
            ("dag_distances", "alibaba_synth"),
            ("published", "scope_jobs"),
            ("readers", "cosmos"),
            ("worth", "cosmos"),
            ("trained", "scope_jobs"),
            ("variation", "slearn_2sigma"),
            ("two_jobs", "alibaba_synth"),
        )
    ),
]


def prepared(tmp_path: Path, trace: str, *words: str) -> tuple[PreparedGrid, PlannedCell]:
    """Plan one small cell of a trace."""
    words = (*words, f"trace={trace}", *TRACES[trace], f"paths.results={tmp_path}")
    if trace == "parquet":
        words += (f"trace.path={write_workload(tmp_path / 'trace')}",)
    if trace == "swf":
        (tmp_path / "trace.swf").write_text(SWF)
        words += (f"trace.path={tmp_path / 'trace.swf'}",)
    plan_of_grid = plan.prepare(grid.build(request(words)))
    (planned_cell,) = plan_of_grid.planned
    return plan_of_grid, planned_cell


def a_cell(tmp_path: Path, trace: str, *words: str) -> dict[str, Any]:
    """Make what `A_CELL` is given of the one cell of a grid."""
    plan_of_grid, planned_cell = prepared(tmp_path, trace, *words)
    plan_of_grid.inputs.workload(planned_cell.workload).write(tmp_path / "workload")
    name = planned_cell.cell.policy["name"]
    home = None if name == NO_POLICY else policies.spec(name).__module__
    return {"spec": planned_cell.spec._asdict(), "home": home, "folder": str(tmp_path / "workload")}


def unknown(code: str, inputs: Mapping[str, Any], table: Table) -> set[str]:
    """Run code in a process of its own; name what it imports and reads that a table has not."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code + TAIL],
        input=json.dumps(inputs),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    imported, opened = json.loads(done.stdout.splitlines()[-1])
    ours = {name for name in imported if name.partition(".")[0] in modules.PROJECT}
    places = [str(file_of(package).parent) + "/" for package in modules.PROJECT]
    read = {file for file in opened if file.startswith((*places,)) and "__pycache__" not in file}
    data = {file for file in read if not file.endswith(NO_NUMBERS)}
    return (ours - {*table}) | (data - {str(file_of(name)) for name in table})


@pytest.mark.parametrize(("policy", "evaluator", "trace"), CELLS)
def test_a_cell(tmp_path: Path, policy: str, evaluator: str, trace: str) -> None:
    words = [f"evaluator={evaluator}", *([] if policy == NO_POLICY else [f"policy={policy}"])]
    inputs = a_cell(tmp_path, trace, *words)
    table = sources.cell_table(inputs["spec"]["policy"], inputs["spec"]["evaluator"])
    assert unknown(A_CELL, inputs, table) == set()


def test_this_test_notices(tmp_path: Path) -> None:
    inputs = a_cell(tmp_path, "alibaba_synth", "policy=dagps", "evaluator=alone")
    table = sources.cell_table({"name": "fifo"}, {"name": "alone"})
    assert "policies.dagps.online" in unknown(A_CELL, inputs, table)
    workload = {"trace": {"synth": "alibaba2018", "jobs": 5}, "cluster": {}}
    table = sources.workload_table({"synth": "recurring"})
    assert str(file_of("sim.synth.alibaba2018/tables.json")) in unknown(A_WORKLOAD, workload, table)


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(trace, marks=pytest.mark.long) if trace in ("scope_jobs", "cosmos") else trace
        for trace in TRACES
    ],
)
def test_a_workload(tmp_path: Path, trace: str) -> None:
    _, planned_cell = prepared(tmp_path, trace, "policy=fifo")
    inputs = {"trace": planned_cell.cell.trace, "cluster": planned_cell.cell.cluster}
    assert unknown(A_WORKLOAD, inputs, sources.workload_table(planned_cell.cell.trace)) == set()
