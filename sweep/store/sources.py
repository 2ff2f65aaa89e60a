"""Digests of the sources that numbers come from: of a cell, and of a workload.

The sources of a cell are all modules that its evaluator, its policy and `sweep.execution.cell`
import (`sim.base.sources`). Those of its workload are not among them: the workload's name is part
of the key itself. A comment changes no digest, nor does a module that a cell does not import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
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
"""By name: `sweep.execution` may not be imported here."""

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
    """Digest of all sources that the numbers of a cell under a policy come from."""
    return _cell_sources(*_name_and_module(policy), *_name_and_module(evaluator), (*sys.path,))[0]


def cell_table(policy: Named, evaluator: Named) -> Table:
    """Digests of the modules and data files that a cell's numbers come from."""
    return _cell_sources(*_name_and_module(policy), *_name_and_module(evaluator), (*sys.path,))[1]


def workload_digest(trace: Mapping[str, Any]) -> str:
    """Digest of all sources that make the workload of a trace configuration."""
    return _workload_sources(trace)[0]


def workload_table(trace: Mapping[str, Any]) -> Table:
    """Digests of the modules and data files that make the workload."""
    return _workload_sources(trace)[1]


def forget() -> None:
    """Clear the caches of sources read and digested in this process."""
    sources.clear_caches()
    _cell_sources.cache_clear()
    _cached_workload_sources.cache_clear()


def _name_and_module(configured: Named) -> tuple[str, str | None]:
    return configured["name"], configured.get("module")


def _workload_sources(trace: Mapping[str, Any]) -> tuple[str, Table]:
    return _cached_workload_sources((*_registered(trace),), (*sys.path,))


def _registered(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the registry and name of a trace's reader or generator, and of its transforms.

    The registry is empty for the module of a user's own.
    """
    if trace.get("module") is not None:
        yield "", trace["module"]  # a user's own
    else:
        yield (GENERATORS, trace["synth"]) if "synth" in trace else (READERS, trace["format"])
    for name, chosen in recipe.all_transforms(trace):
        yield TRANSFORMS, name
        if name == recipe.ADD:
            yield from _registered(chosen["trace"])


@cache
def _cell_sources(
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
        roots |= _policy_modules(policy)
    table = sources.closure([RUNS_CELLS, *roots], dispatcher=RUNS_CELLS)
    return sources.digest_table(table), table


@cache
def _cached_workload_sources(
    registered: tuple[tuple[str, str], ...], search_path: tuple[str, ...]
) -> tuple[str, Table]:
    recipe_module = recipe.make.__module__
    roots = {name for registry, name in registered if not registry}
    plugins = [plugin for plugin in registered if plugin[0]]
    roots = roots.union(*(sources.registry_modules(*plugin) for plugin in plugins))
    table = sources.closure([recipe_module, *roots], dispatcher=recipe_module)
    return sources.digest_table(table), table


def _policy_modules(name: str) -> set[str]:
    """Names of the modules of a policy's class and of its base classes."""
    try:
        return {cls.__module__ for cls in policies.spec(name).__mro__}
    except InputError:  # not registered yet: its module may have to be loaded
        return sources.registry_modules(POLICIES, name)


_SHORT = 12
"""Hex digits of a module's digest in a table, which explains misses and decides nothing."""

MAX_NAMED = 3


class SourceTables:
    """Tables of module digests under ``<results>/cache/sources``, by their own digest."""

    def __init__(self, results: Path) -> None:
        self._folder = results / "cache" / "sources"
        self._tables: dict[str, Mapping[str, str]] = {}

    def store(self, digest: str, table: Mapping[str, str]) -> None:
        """Store the table of a digest, unless it exists."""
        if digest not in self._tables:
            self._tables[digest] = _shortened(table)
            if not self._file(digest).exists():
                files.write_checked_json(self._file(digest), self._tables[digest])

    def changes(self, old: object, table: Mapping[str, str]) -> list[str]:
        """Name the modules in which a table differs from the table of the digest `old`."""
        old_table, new_table = self._table(old), _shortened(table)
        names = sorted(
            name for name in {*old_table, *new_table} if old_table.get(name) != new_table.get(name)
        )
        if not old_table or not names:
            return ["sources"]
        more = [f"{len(names) - MAX_NAMED} more"] if len(names) > MAX_NAMED else []
        return [f"sources: {', '.join((*names[:MAX_NAMED], *more))}"]

    def _table(self, digest: object) -> Mapping[str, str]:
        """Read the table of a digest; empty if there is none, or an older version's."""
        if not isinstance(digest, str):
            return {}
        if digest not in self._tables:
            self._tables[digest] = files.read_checked_json(self._file(digest)) or {}
        return self._tables[digest]

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.json"


def _shortened(table: Mapping[str, str]) -> dict[str, str]:
    return {name: digest[:_SHORT] for name, digest in table.items()}
