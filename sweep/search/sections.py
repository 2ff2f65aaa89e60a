"""What a sweep's report and terminal say first, where something was looked for; and what then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweep.report.section import Section
from sweep.search import equal_capacity, settings_section, target_section
from sweep.stats.cell_columns import cell_key
from sweep.store.folder import EQUAL, IMPORTANCE, SETTINGS, TARGETS, VERDICT, SweepFolder

N_SHOWN = 5
"""Of the capacities that the search for a target passed, so many are in the usual tables."""


def build_sections(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Return what was looked for and found, and what follows from any grid with a baseline."""
    targets, settings, alike = map(folder.table, (TARGETS, SETTINGS, EQUAL))
    sections = []
    if targets is not None:
        sections.append(target_section.build(targets, config))
    if settings is not None:
        sections.append(settings_section.build(settings, folder.table(IMPORTANCE), config))
    if alike is not None:
        sections.append(equal_capacity.build(alike, config))
    return sections


def add_answers(folder: SweepFolder, sections: Sequence[Section]) -> None:
    """Say in each entry of ``verdict.json`` what was looked for and found, if anything was."""
    found = [line for section in sections if section.is_answer for line in section.sentences]
    if found:
        entries = [entry | {"answer": found} for entry in folder.verdict()]
        folder.replace_json(VERDICT, entries)


def shown_cells(cells: pa.Table, config: Mapping[str, Any], folder: SweepFolder) -> pa.Table:
    """Leave out of the usual tables and plots what a search passed on its way.

    Of a target's cells those are left that all policies of a trace share: its ends, mostly; of a
    search's those of the default and of the best.
    """
    if config.get("goal") is None:
        return cells
    settings = folder.table(SETTINGS)
    if settings is not None:
        rows = settings.select(["role", "keys"]).to_pylist()
        kept = {key for row in rows if row["role"] for key in row["keys"]}
        return cells.filter(pa.array([cell_key(cells, at) in kept for at in range(len(cells))]))
    return _shared(cells)


def _shared(cells: pa.Table) -> pa.Table:
    """Keep a few of the capacities at which every policy of the trace was run, end to end."""
    rows = cells.select(["trace", "policy", "capacity"]).to_pylist()
    at: dict[str, dict[float, set[str]]] = {}
    for row in rows:
        at.setdefault(row["trace"], {}).setdefault(row["capacity"], set()).add(row["policy"])
    kept = set()
    for trace, policies in at.items():
        most = max(map(len, policies.values()))
        shared = sorted(capacity for capacity, names in policies.items() if len(names) == most)
        n = min(len(shared), N_SHOWN)
        kept |= {(trace, shared[k * (len(shared) - 1) // max(1, n - 1)]) for k in range(n)}
    return cells.filter(pa.array([(row["trace"], row["capacity"]) in kept for row in rows]))
