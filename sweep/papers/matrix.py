"""Findings as tables of rows and columns, in Markdown.

The figure of a finding is ``TABLE · COLUMN``, its quantity ``ROW · LABEL``. Several findings of a
field stand below each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sweep.report.findings import Finding, number

BETTER, WORSE = "▲", "▼"
"""Marks of a policy that is better or worse than the other one of its field."""
_SEPARATOR = " · "


def field(first: str, second: str) -> str:
    """Join the name of a table and of a column, or of a row and a label."""
    return f"{first}{_SEPARATOR}{second}" if second else first


def is_field(finding: Finding) -> bool:
    """Tell whether a finding belongs into a table of rows and columns."""
    return _SEPARATOR in finding.figure


def to_markdown(findings: Sequence[Finding]) -> str:
    """Write the findings that belong into tables, each table under its name."""
    tables: dict[str, dict[str, dict[str, list[str]]]] = {}
    for finding in filter(is_field, findings):
        table, _, column = finding.figure.partition(_SEPARATOR)
        row, _, label = finding.quantity.partition(_SEPARATOR)
        fields = tables.setdefault(table, {}).setdefault(row, {})
        fields.setdefault(column, []).append(_text(finding, label))
    parts = []
    for name, rows in tables.items():
        columns = list(dict.fromkeys(column for fields in rows.values() for column in fields))
        lines = [_line("", *columns), "| --- |" + " --- |" * len(columns)]
        lines += [
            _line(row, *("<br>".join(fields.get(column, ["–"])) for column in columns))
            for row, fields in rows.items()
        ]
        title = name[0].upper() + name[1:]
        parts.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _text(finding: Finding, label: str) -> str:
    """Write a value with its interval: ``±`` its half if that is symmetric."""
    if finding.exact:
        return f"{label} {finding.ours:g}".strip()
    value = number(finding.ours)
    below, above = finding.ours - finding.low, finding.high - finding.ours
    if math.isnan(below):
        interval = ""
    elif abs(above - below) <= 1e-9 * max(abs(finding.ours), 1e-12):
        interval = f" ±{number(above)}"
    else:
        interval = f" ({number(finding.low)} to {number(finding.high)})"
    return f"{label} {value}{interval}".strip()


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
