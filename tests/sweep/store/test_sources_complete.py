"""Digests cover all sources and data files of the project that a run imports and opens."""

from __future__ import annotations

import json
import os
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
from tests.sweep.store.edits import source_file

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
CODE_SUFFIXES = (".py", ".pyc", ".j2", ".css", ".js")

# imports as little as it can first: the audit hook does not see files that were opened before it
HEAD = """
import json, sys
arguments = json.loads(sys.stdin.read())
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
"""
TAIL = """
print(json.dumps([sorted(sys.modules), sorted(set(opened))]))
"""
CELL_CODE = """
import importlib
from pathlib import Path
from sweep.execution.cell import CellSpec, clusters, run_cell
from policies import registry
from sim.workload.workload import Workload

# it would import every policy; a cell needs only its own
home = arguments["home"]
registry._discover = lambda: home and importlib.import_module(home)
workload, spec = Workload.read(Path(arguments["folder"])), CellSpec(**arguments["spec"])
result = run_cell(workload, spec, clusters.build_for(workload, spec.cluster, spec.capacity))
assert result.error is None, result.error["traceback"]
"""
WORKLOAD_CODE = """
from sweep.grid import recipe
recipe.make(arguments["trace"], arguments["cluster"])
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

COMPILED = ("fifo", "simulation", "swf")
"""The cell that compiles, in a pool of slots, whose variant takes least. Others import the same
kernels, which run as plain Python where jobs are few."""

CELLS = [
    COMPILED,
    ("tetris", "simulation", "alibaba_synth"),
    ("heft", "alone", "alibaba_synth"),
    ("dagps", "simulation", "alibaba_synth"),
    ("slearn", "sized", "slearn_2sigma"),
    ("wing_mil", "kinds", "cosmos"),
    ("easy", "simulation", "swf"),
    ("backfill/slurm", "simulation", "swf"),
    ("wserpt", "simulation", "swf"),
    (NO_POLICY, "described", "alibaba_synth"),
]
"""Cells of each system, of kernels that are imported late, and of evaluators that run policies."""

LONG_CELLS = [
    ("jockey_online", "due", "scope_jobs"),
    ("fair", "alone", "alibaba_synth"),
    ("coffman_graham", "alone", "alibaba_synth"),
    ("bayes", "simulation", "slearn_2sigma"),
    ("wing_dep", "simulation", "cosmos"),
    ("jockey", "deadlines", "scope_jobs"),
    ("jockey", "progress", "scope_jobs"),
    ("max_allocation", "due", "scope_jobs"),
    ("multifactor_easy", "simulation", "swf"),
    ("best_fit", "simulation", "alibaba_synth"),
    (NO_POLICY, "dag_distances", "alibaba_synth"),
    (NO_POLICY, "published", "scope_jobs"),
    (NO_POLICY, "readers", "cosmos"),
    (NO_POLICY, "worth", "cosmos"),
    (NO_POLICY, "trained", "scope_jobs"),
    (NO_POLICY, "variation", "slearn_2sigma"),
    (NO_POLICY, "two_jobs", "alibaba_synth"),
]


def prepare_cell(tmp_path: Path, trace: str, *words: str) -> tuple[PreparedGrid, PlannedCell]:
    """Plan one small cell of a trace."""
    words = (*words, f"trace={trace}", *TRACES[trace], f"paths.results={tmp_path}")
    if trace == "parquet":
        words += (f"trace.path={write_workload(tmp_path / 'trace')}",)
    if trace == "swf":
        (tmp_path / "trace.swf").write_text(SWF)
        words += (f"trace.path={tmp_path / 'trace.swf'}",)
    prepared_grid = plan.prepare(grid.build(request(words)))
    (planned,) = prepared_grid.planned
    return prepared_grid, planned


def cell_arguments(tmp_path: Path, trace: str, *words: str) -> dict[str, Any]:
    """Return the arguments of `CELL_CODE` for the one cell of a grid."""
    prepared_grid, planned = prepare_cell(tmp_path, trace, *words)
    prepared_grid.inputs.workload(planned.workload).write(tmp_path / "workload")
    name = planned.cell.policy["name"]
    home = None if name == NO_POLICY else policies.spec(name).__module__
    return {"spec": planned.spec._asdict(), "home": home, "folder": str(tmp_path / "workload")}


def missing_sources(
    code: str, arguments: Mapping[str, Any], table: Table, jit: bool = True
) -> set[str]:
    """Run code in a process of its own; return modules and files it reads that a table lacks."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code + TAIL],
        env={**os.environ, "NUMBA_DISABLE_JIT": str(int(not jit)), "SIM_VARIANTS": "exact"},
        input=json.dumps(arguments),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    imported, opened = json.loads(done.stdout.splitlines()[-1])
    project_modules = {name for name in imported if name.partition(".")[0] in modules.PROJECT}
    folders = [str(source_file(package).parent) + "/" for package in modules.PROJECT]
    read = {file for file in opened if file.startswith((*folders,)) and "__pycache__" not in file}
    data = {file for file in read if not file.endswith(CODE_SUFFIXES)}
    return (project_modules - {*table}) | (data - {str(source_file(name)) for name in table})


@pytest.mark.parametrize(
    ("policy", "evaluator", "trace"),
    [*CELLS, *(pytest.param(*cell, marks=pytest.mark.long) for cell in LONG_CELLS)],
)
def test_a_cell_reads_only_sources_of_its_digest(
    tmp_path: Path, policy: str, evaluator: str, trace: str
) -> None:
    words = [f"evaluator={evaluator}", *([] if policy == NO_POLICY else [f"policy={policy}"])]
    arguments = cell_arguments(tmp_path, trace, *words)
    table = sources.cell_table(arguments["spec"]["policy"], arguments["spec"]["evaluator"])
    cell = (policy, evaluator, trace)
    jit = cell == COMPILED or (policy == NO_POLICY and trace in ("cosmos", "scope_jobs"))
    assert missing_sources(CELL_CODE, arguments, table, jit) == set()


def test_missing_sources_are_detected(tmp_path: Path) -> None:
    arguments = cell_arguments(tmp_path, "alibaba_synth", "policy=dagps", "evaluator=alone")
    table = sources.cell_table({"name": "fifo"}, {"name": "alone"})
    assert "policies.dagps.online" in missing_sources(CELL_CODE, arguments, table, jit=False)
    workload = {"trace": {"synth": "alibaba2018", "jobs": 5}, "cluster": {}}
    table = sources.workload_table({"synth": "recurring"})
    assert str(source_file("policies.alibaba.synth/tables.json")) in missing_sources(
        WORKLOAD_CODE, workload, table
    )


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(trace, marks=pytest.mark.long) if trace in ("scope_jobs", "cosmos") else trace
        for trace in TRACES
    ],
)
def test_a_workload_reads_only_sources_of_its_digest(tmp_path: Path, trace: str) -> None:
    _, planned = prepare_cell(tmp_path, trace, "policy=fifo")
    arguments = {"trace": planned.cell.trace, "cluster": planned.cell.cluster}
    assert (
        missing_sources(WORKLOAD_CODE, arguments, sources.workload_table(planned.cell.trace))
        == set()
    )
