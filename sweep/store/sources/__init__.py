"""Digests of the sources that numbers come from: a cell's, and those that make a workload.

A cell's are all that its measure, its policy and what runs it import (`closure`); where its
workload comes from is not among them, as its content stands in the key itself. A comment changes
no digest (`meaning`), and nothing that a cell does not import changes its own.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sim.base import files
from sim.measures import NO_POLICY
from sweep.grid import recipe
from sweep.grid.config_tree import canonical
from sweep.store.sources import closure
from sweep.store.sources.closure import Table

RUNS_CELLS = "sweep.execution.cell"
"""By name: the room of what runs stands above this one."""

Named = Mapping[str, Any]
"""A policy or a measure as configured: its ``name``, and the ``module`` if it is the user's own."""

_Names = tuple[str, str | None, str, str | None]


def of_cell(policy: Named, measure: Named) -> str:
    """Digest of all that the numbers of a cell under a policy come from."""
    return _digest_of_cell(_names(policy, measure))


def table_of_cell(policy: Named, measure: Named) -> Table:
    """Digests of the modules and the data that a cell's numbers come from."""
    return _table_of_cell(_names(policy, measure))


def of_workload(trace: Mapping[str, Any]) -> str:
    """Digest of all that makes the workload which a trace is configured to be."""
    return _digest(table_of_workload(trace))


def table_of_workload(trace: Mapping[str, Any]) -> Table:
    """Digests of the modules and the data that make the workload."""
    _keep_up()
    knobs = tuple(trace.get("knobs") or ())
    if "synth" in trace:
        return _table_of_workload(closure.GENERATORS, trace["synth"], knobs)
    return _table_of_workload(closure.READERS, trace["format"], knobs)


def forget() -> None:
    """Forget what was read and digested in this process."""
    closure.forget()
    _clear()


@cache
def _search_path() -> list[str]:
    """Folders in which modules were looked for when this was first asked."""
    return [*sys.path]


def _keep_up() -> None:
    """Look for modules again where the search path has changed: a user's may only be there now."""
    if _search_path() != sys.path:
        closure.search_again()
        _clear()


def _clear() -> None:
    for remembered in (_search_path, _digest_of_cell, _table_of_cell, _table_of_workload):
        remembered.cache_clear()


def _names(policy: Named, measure: Named) -> _Names:
    _keep_up()
    return policy["name"], policy.get("module"), measure["name"], measure.get("module")


@cache
def _digest_of_cell(names: _Names) -> str:
    return _digest(_table_of_cell(names))


@cache
def _table_of_cell(names: _Names) -> Table:
    policy, policy_module, measure, measure_module = names
    roots = [module for module in (policy_module, measure_module) if module is not None]
    if measure_module is None:
        roots += closure.option(closure.MEASURES, measure)
    if policy != NO_POLICY:
        roots += closure.option(closure.POLICIES, policy)
    told = [(RUNS_CELLS, registry) for registry in (closure.MEASURES, closure.POLICIES)]
    return closure.of([RUNS_CELLS, *roots], told)


@cache
def _table_of_workload(registry: str, name: str, knobs: tuple[str, ...]) -> Table:
    roots = [*closure.option(registry, name)]
    for knob in knobs:
        roots += closure.option(closure.KNOBS, knob)
    makes_it = recipe.make.__module__
    told = [
        (makes_it, registry) for registry in (closure.GENERATORS, closure.READERS, closure.KNOBS)
    ]
    return closure.of([makes_it, *roots], told)


def _digest(table: Table) -> str:
    return hashlib.sha256(canonical(table).encode()).hexdigest()


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
