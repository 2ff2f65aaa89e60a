"""Digests of the sources that numbers come from: a cell's, and those that make a workload.

A cell's are all that its evaluator, its policy and what runs it import (`sim.base.sources`); where
its workload comes from is not among them, as its content stands in the key itself. A comment
changes no digest, and nothing that a cell does not import changes its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import policies
from sim.base import files, sources
from sim.base.errors import InputError
from sim.base.sources import Table
from sim.evaluators import NO_POLICY
from sweep.grid import recipe

RUNS_CELLS = "sweep.execution.cell"
"""By name: the room of what runs stands above this one."""

POLICIES = policies.spec.__module__
TRANSFORMS, EVALUATORS, GENERATORS, READERS = (
    "sim.transforms",
    "sim.evaluators",
    "sim.synth",
    "sim.traces",
)
"""By name, too: they load Arrow."""

Named = Mapping[str, Any]
"""A policy or evaluator as configured: its ``name``, and the ``module`` if it is a user's own."""


def cell_digest(policy: Named, evaluator: Named) -> str:
    """Digest of all that the numbers of a cell under a policy come from."""
    return _of_cell(*_named(policy), *_named(evaluator), (*sys.path,))[0]


def cell_table(policy: Named, evaluator: Named) -> Table:
    """Digests of the modules and the data that a cell's numbers come from."""
    return _of_cell(*_named(policy), *_named(evaluator), (*sys.path,))[1]


def workload_digest(trace: Mapping[str, Any]) -> str:
    """Digest of all that makes the workload which a trace is configured to be."""
    return _made_by(trace)[0]


def workload_table(trace: Mapping[str, Any]) -> Table:
    """Digests of the modules and the data that make the workload."""
    return _made_by(trace)[1]


def forget() -> None:
    """Forget what was read and digested in this process."""
    sources.clear_caches()
    _of_cell.cache_clear()
    _of_workload.cache_clear()


def _named(configured: Named) -> tuple[str, str | None]:
    return configured["name"], configured.get("module")


def _made_by(trace: Mapping[str, Any]) -> tuple[str, Table]:
    made_by = (GENERATORS, trace["synth"]) if "synth" in trace else (READERS, trace["format"])
    return _of_workload(*made_by, tuple(trace.get("transforms") or ()), (*sys.path,))


@cache
def _of_cell(
    policy: str,
    policy_module: str | None,
    evaluator: str,
    evaluator_module: str | None,
    search_path: tuple[str, ...],  # where a user's modules lie
) -> tuple[str, Table]:
    roots = {module for module in (policy_module, evaluator_module) if module is not None}
    if evaluator_module is None:
        roots |= sources.registry_modules(EVALUATORS, evaluator)
    if policy != NO_POLICY:
        roots |= _of_policy(policy)
    table = sources.closure([RUNS_CELLS, *roots], dispatcher=RUNS_CELLS)
    return sources.digest_table(table), table


@cache
def _of_workload(
    registry: str, name: str, transforms: tuple[str, ...], search_path: tuple[str, ...]
) -> tuple[str, Table]:
    makes_it = recipe.make.__module__
    roots = sources.registry_modules(registry, name)
    for transform in transforms:
        roots = roots | sources.registry_modules(TRANSFORMS, transform)
    table = sources.closure([makes_it, *roots], dispatcher=makes_it)
    return sources.digest_table(table), table


def _of_policy(name: str) -> set[str]:
    """Name the modules of a policy's class and of those that it is made from."""
    try:
        return {cls.__module__ for cls in policies.spec(name).__mro__}
    except InputError:  # not known yet: it may be one of a module to load
        return sources.registry_modules(POLICIES, name)


_SHORT = 12
"""Hex digits of a module's digest that are kept: they explain, and are never gone by."""

MOST_NAMED = 3


class KeptSources:
    """Tables of sources under ``<results>/cache/sources``, by their digests."""

    def __init__(self, results: Path) -> None:
        self._folder = results / "cache" / "sources"
        self._known: dict[str, Mapping[str, str]] = {}

    def keep(self, digest: str, table: Mapping[str, str]) -> None:
        """Keep the table of a digest, unless it is there."""
        if digest not in self._known:
            self._known[digest] = _shortened(table)
            if not self._file(digest).exists():
                files.write_checked_json(self._file(digest), self._known[digest])

    def changes(self, old: object, table: Mapping[str, str]) -> list[str]:
        """Name the modules by which a table differs from the one of the digest `old`."""
        before, now = self._table(old), _shortened(table)
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if not before or not names:
            return ["sources"]
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        return [f"sources: {', '.join((*names[:MOST_NAMED], *more))}"]

    def _table(self, digest: object) -> Mapping[str, str]:
        """Read the table of a digest; an empty one if there is none, or an older version's."""
        if not isinstance(digest, str):
            return {}
        if digest not in self._known:
            self._known[digest] = files.read_checked_json(self._file(digest)) or {}
        return self._known[digest]

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"


def _shortened(table: Mapping[str, str]) -> dict[str, str]:
    return {name: digest[:_SHORT] for name, digest in table.items()}
