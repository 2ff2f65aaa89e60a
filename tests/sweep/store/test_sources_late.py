"""Kernels that a cell's key leaves out are imported by no run of that cell."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import policies
import sim
from policies.base import Policy
from sim.base import jit, sources
from sim.base.errors import SimError
from sim.base.sources import meaning, modules
from sim.cluster.faults import Outages
from sim.engine.kernels.features import MODULES_SET
from sim.engine.kernels.run import run
from sim.engine.plan import Plan
from sim.engine.simulate import variant
from sweep.store.sources import cell_table
from tests import without

KERNELS = "sim.engine.kernels"
COMPUTED = {
    "policies.check.suite",
    "policies.views",
    "sim.base.lazy",
    "sim.cluster.requests",
    "sim.engine.plan",
    "sim.cluster.default_times",
    "sim.workload.columns",
    "sim.workload.record",
    "sim.workload.workload",
}
"""Modules that may assign an attribute of a computed name: none of a plan's but those of tasks that
are set already."""

COMBINED: dict[str, Any] = {"slurm": {"preemption": {"by": "priority"}}}
"""Policies with options of which no policy has both by default."""
OF_NO_CELL = {f"{KERNELS}.pins"}
"""Kernels of runs that begin in a state, as no cell's does."""

MAP = {"name": "map", "durations_s": [3.0, 4.0], "demand": {"cpu": 1.0, "net": 0.5}}
REDUCE = {"name": "reduce", "durations_s": [5.0], "parents": ["map"], "demand": {"cpu": 2.0}}
JOBS = {
    "jobs": {"stages": [MAP, REDUCE], "deadline_s": 60.0},
    "rigid jobs": {"stages": [MAP], "min_tasks": 2, "requested_s": 9.0},
}
CLUSTERS = {
    "slots": sim.Cluster.slots(4),
    "machines": sim.Cluster.machines(2, cpu=4, net=1),
    "a shared network": sim.Cluster.machines(2, cpu=4, net=1, fungible=("net",)),
    "machines that are lost": sim.Cluster.machines(2, cpu=4, net=1).with_outages(
        Outages.from_columns([0], [1.0], [2.0])
    ),
}


def late_kernels() -> Iterator[jit.Late]:
    for name in modules.below(KERNELS):
        values = vars(importlib.import_module(name)).values()
        yield from (value for value in values if isinstance(value, jit.Late))


def test_late_kernels_are_those_of_attributes_of_a_plan() -> None:
    assert {*vars(Plan(1, 1, 1)), *vars(Plan)} >= MODULES_SET.keys()
    declared = {home for homes in MODULES_SET.values() for home in homes}
    reached = sources.closure(declared, packages=False)
    named = {kernel.name.rpartition(".")[0] for kernel in late_kernels()}
    assert declared <= {module for module in reached if module.startswith(KERNELS)}
    assert named <= {*reached}
    assert not named & {*sources.closure(["sim.engine.simulate"])}


def test_the_engine_sets_defaults_of_a_plan_alone() -> None:
    """Its other code does not count where a cell's kernels are located."""
    sets: dict[str, set[str]] = {}
    for name in modules.below("sim.engine"):
        tree = ast.parse(modules.read(modules.find(name).file))  # type: ignore[union-attr]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                assigned = {*meaning.assigned_attributes(node)} & MODULES_SET.keys()
                sets |= {f"{name}.{node.name}": assigned} if assigned else {}
    assert sets == {
        "sim.engine.plan.__init__": {*MODULES_SET} - {"evict"},
        "sim.engine.plan.evict": {"preemption"},
        "sim.engine.session.begin_run": {"pinned"},
    }


def test_code_that_computes_the_name_of_an_attribute_sets_none_of_a_plan() -> None:
    located = [
        modules.find(name) for package in ("sim", "policies") for name in modules.below(package)
    ]
    parsed = {module.name: sources.module_meaning(module) for module in located if module}
    assert {name for name in parsed if meaning.ANY in parsed[name].sets} == COMPUTED


def test_every_late_kernel_is_among_the_sources_of_the_compiled_loop() -> None:
    loop = sources.closure([f"{KERNELS}.run"], packages=False, all_late=True)
    assert {kernel.name.rpartition(".")[0] for kernel in late_kernels()} <= {*loop}


def features_of(jobs: str, cluster: str, policy: Policy) -> frozenset[str]:
    """Return the features of a run of a few jobs; none where it is refused."""
    rows = [
        JOBS[jobs] | {"submit_s": float(i), "template": f"t{i % 2}", "user": f"u{i % 3}"}
        for i in range(6)
    ]
    try:
        return variant(sim.Workload.from_jobs(rows), CLUSTERS[cluster], policy)
    except SimError:
        return frozenset()


def imported(features: frozenset[str], monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the modules of kernels that a variant of the event loop imports late."""
    names: list[str] = []
    load = jit._load
    for kernel in late_kernels():  # decorated, before `_compile` does nothing
        load(kernel)
    with monkeypatch.context() as patch:
        patch.setattr(jit, "_load", lambda kernel: names.append(kernel.name) or load(kernel))
        patch.setattr(jit, "_compile", lambda function, **_: function)
        jit.specialised.__wrapped__(run, features)
    return {name.rpartition(".")[0] for name in names}


def test_runs_import_only_kernels_of_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIM_VARIANTS", "exact")
    kernels: dict[frozenset[str], set[str]] = {}
    for name, params in [*((name, {}) for name in policies.names()), *COMBINED.items()]:
        table = cell_table({"name": name, "params": params}, {"name": "simulation"})
        for jobs in JOBS:
            for cluster in CLUSTERS:
                features = features_of(jobs, cluster, policies.build(name, **params))
                if features not in kernels:
                    kernels[features] = imported(features, monkeypatch)
                assert kernels[features] <= {*table}, (name, jobs, cluster)
    every = {kernel.name.rpartition(".")[0] for kernel in late_kernels()} - OF_NO_CELL
    used = set[str]().union(*kernels.values())
    assert used <= every if without.absent() else used == every
