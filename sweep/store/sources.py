"""Digests of the sources that numbers come from: a cell's, and those that make a workload.

A cell's are all that its measure, its policy and what runs it import (`sweep.store.closure`); where
its workload comes from is not among them, as its content stands in the key itself. A comment
changes no digest, and nothing that a cell does not import changes its own.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from sweep.grid import recipe
from sweep.run.cell import NO_POLICY, canonical, run_cell
from sweep.store import closure
from sweep.store.closure import Table

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
    runs_it = run_cell.__module__
    told = [(runs_it, registry) for registry in (closure.MEASURES, closure.POLICIES)]
    return closure.of([runs_it, *roots], told)


@cache
def _table_of_workload(registry: str, name: str, knobs: tuple[str, ...]) -> Table:
    roots = [*closure.option(registry, name)]
    for knob in knobs:
        roots += closure.option(closure.KNOBS, knob)
    makes_it = recipe.make.__module__
    told = [(makes_it, one) for one in (closure.GENERATORS, closure.READERS, closure.KNOBS)]
    return closure.of([makes_it, *roots], told)


def _digest(table: Table) -> str:
    return hashlib.sha256(canonical(table).encode()).hexdigest()
