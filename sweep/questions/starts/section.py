"""Section of expected starts, for terminal and report."""

from __future__ import annotations

from typing import Any

from sweep.questions.starts.goal import STARTS, STARTS_JSON
from sweep.report.section import Section, Table
from sweep.store.folder import SweepFolder

MAX_ROWS = 40
"""Largest number of jobs in the table; the file has all."""
_HEADER = ("job", "partition", "user", "expected start", "80 % between", "and", "in")


def build_sections(folder: SweepFolder) -> list[Section]:
    """Build the section of a sweep's expected starts; none for another sweep."""
    record, starts = folder.read_json(STARTS_JSON), folder.table(STARTS)
    if not isinstance(record, dict) or starts is None:
        return []
    rows = starts.to_pylist()
    body = tuple(_entries(row) for row in rows[:MAX_ROWS])
    more = len(rows) - len(body)
    notes = [f"{more:,} more jobs are in {STARTS}"] if more > 0 else []
    tables = (Table("", _HEADER, body),) if body else ()
    return [
        Section(
            "starts", "Expected starts", tuple(record["sentences"]), tables=tables,
            notes=tuple(notes), is_answer=True,
            question="When do the jobs of {jobs} start that wait now, under {policies}?",
        )
    ]  # fmt: skip


def _entries(row: dict[str, Any]) -> tuple[str, ...]:
    ends = [row[name] or ("held" if row.get("reason", "").startswith("JobHeld") else "never")
            for name in ("expected_start", "low", "high")]  # fmt: skip
    return (row["job"], row["partition"], row.get("user", ""), *ends, span(row["expected_s"]))


def span(seconds: float | None) -> str:
    """Write a time: ``40 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``; "" for none.

    >>> [span(x) for x in (40, 720, 12_000, 187_200, None)]
    ['40 s', '12 min', '3 h 20 min', '2 d 4 h', '']
    """
    if seconds is None:
        return ""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"
