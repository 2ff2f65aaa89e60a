"""What a sweep's report and terminal say first, where something was looked for; and what then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sweep.report.section import Section
from sweep.search import equal, settings_section, target_section
from sweep.store.folder import EQUAL, IMPORTANCE, SETTINGS, TARGETS, SweepFolder


def of(folder: SweepFolder, config: Mapping[str, Any]) -> list[Section]:
    """Return what was looked for and found, and what follows from any grid with a baseline."""
    sections = []
    targets = folder.table(TARGETS)
    if targets is not None:
        sections.append(target_section.section(targets, config))
    settings = folder.table(SETTINGS)
    if settings is not None:
        mattered = folder.table(IMPORTANCE)
        sections.append(settings_section.section(settings, mattered, config))
    alike = folder.table(EQUAL)
    if alike is not None:
        sections.append(equal.section(alike, config))
    return sections


def shown(cells: pa.Table, config: Mapping[str, Any], folder: SweepFolder) -> pa.Table:
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
        return cells.filter(pa.array([key in kept for key in cells["key"].to_pylist()]))
    return _shared(cells)


def _shared(cells: pa.Table) -> pa.Table:
    """Keep the cells of capacities at which every policy of the trace was run."""
    rows = cells.select(["trace", "policy", "capacity"]).to_pylist()
    policies: dict[str, set[str]] = {}
    at: dict[tuple[str, float], set[str]] = {}
    for row in rows:
        policies.setdefault(row["trace"], set()).add(row["policy"])
        at.setdefault((row["trace"], row["capacity"]), set()).add(row["policy"])
    kept = [at[row["trace"], row["capacity"]] == policies[row["trace"]] for row in rows]
    return cells.filter(pa.array(kept)) if any(kept) else cells
