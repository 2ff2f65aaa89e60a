"""Section of a backtest, for terminal and report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweep.report.section import Section
from sweep.store.folder import SweepFolder


def build_sections(folder: SweepFolder) -> list[Section]:
    """Build the section of a backtest from its files; none for another sweep."""
    record = folder.backtest()
    return [] if record is None else [_section(record)]


def _section(record: Mapping[str, Any]) -> Section:
    lines = [
        *record["audit"]["sentences"],
        *(entry["sentence"] for entry in record["policies"]),
        record["sentence"],
    ]
    notes = [f"{record['cluster']}, {record['runs']} runs a policy", *record["cautions"]]
    return Section("backtest", "Backtest", tuple(lines), notes=tuple(notes), is_answer=True)
