"""Report sections of targets, parameter searches and equal capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sweep.questions.search import (
    equal_capacity,
    restore_section,
    settings_section,
    target_section,
    waits_section,
)
from sweep.questions.search.files import (
    EQUAL,
    IMPORTANCE,
    SETTINGS,
    TARGETS,
    WHAT_IF,
    WHAT_IF_GROUPS,
)
from sweep.report.section import Section
from sweep.stats.cell_columns import cell_key
from sweep.store.folder import SweepFolder

N_SHOWN = 5
"""Largest number of a target search's capacities in the tables of means."""


def build_sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Build the sections of a sweep from the tables in its folder."""
    targets, settings, equal_table = map(folder.table, (TARGETS, SETTINGS, EQUAL))
    changes = folder.table(WHAT_IF)
    sections = []
    if changes is not None:
        groups = _group_rows(folder)
        sections.append(restore_section.build(changes, config, groups))
        sections += [waits_section.build(changes.to_pylist(), groups)] if groups else []
    if targets is not None:
        sections.append(target_section.build(targets, config))
    if settings is not None:
        sections.append(settings_section.build(settings, folder.table(IMPORTANCE), config))
    if equal_table is not None:
        sections.append(equal_capacity.build(equal_table, config))
    return sections


def what_if_answer(folder: SweepFolder) -> dict[str, Any]:
    """Return the field of ``answer.json`` on what-ifs; empty for other sweeps."""
    changes = folder.table(WHAT_IF)
    if changes is None:
        return {}
    return {"what_if": waits_section.answer(changes.to_pylist(), _group_rows(folder))}


def _group_rows(folder: SweepFolder) -> list[dict[str, Any]]:
    table = folder.table(WHAT_IF_GROUPS)
    return [] if table is None else table.to_pylist()


def shown_cells(cells: pa.Table, config: Mapping[str, Any], folder: SweepFolder) -> pa.Table:
    """Select the cells for tables of means and plots, without a search's intermediate cells.

    For a target, these are capacities that all policies of a trace share, mostly the ends; for a
    parameter search, the cells of the default and of the best.
    """
    if config.get("goal") is None:
        return cells
    settings = folder.table(SETTINGS)
    if settings is not None:
        rows = settings.select(["role", "keys"]).to_pylist()
        shown_keys = {key for row in rows if row["role"] for key in row["keys"]}
        return cells.filter(
            pa.array([cell_key(cells, row) in shown_keys for row in range(len(cells))])
        )
    return _shared(cells)


def _shared(cells: pa.Table) -> pa.Table:
    """Select a few capacities, from lowest to highest, at which all policies of the trace ran."""
    rows = cells.select(["trace", "policy", "capacity"]).to_pylist()
    policies_at: dict[str, dict[float, set[str]]] = {}
    for row in rows:
        policies_at.setdefault(row["trace"], {}).setdefault(row["capacity"], set()).add(
            row["policy"]
        )
    shown = set()
    for trace, policies in policies_at.items():
        n_policies = max(map(len, policies.values()))
        shared = sorted(
            capacity for capacity, names in policies.items() if len(names) == n_policies
        )
        n = min(len(shared), N_SHOWN)
        shown |= {(trace, shared[k * (len(shared) - 1) // max(1, n - 1)]) for k in range(n)}
    return cells.filter(pa.array([(row["trace"], row["capacity"]) in shown for row in rows]))
