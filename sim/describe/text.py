"""A description as plain text: a table a section, for a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterator

from sim.describe.description import SECTIONS, Description, Row
from sim.describe.statistics import shown

_GAP = 3
_NARROWEST = 10


def lines(of: Description) -> Iterator[str]:
    """Give the lines of all sections."""
    for section, title in SECTIONS.items():
        rows = of.rows(section)
        if rows:
            yield from _table(title, [*of.names], rows)
            yield ""


def _table(title: str, names: list[str], rows: list[Row]) -> Iterator[str]:
    has_paper = any(row.paper is not None for row in rows)
    heads = [*names, "paper"] if has_paper else names
    cells = [_cells(row, has_paper) for row in rows]
    label = max(len(title), *(len(row.label) + 2 for row in rows))
    columns = zip(heads, *cells, strict=True)
    widths = [max(_NARROWEST, *map(len, column)) + _GAP for column in columns]
    yield f"{title:<{label}}" + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True))
    yield "─" * (label + sum(widths))
    group = ""
    for row, texts in zip(rows, cells, strict=True):
        if row.group != group:
            group = row.group
            yield group
        indent = "  " if group else ""
        numbers = "".join(f"{t:>{w}}" for t, w in zip(texts, widths, strict=True))
        yield f"{indent + row.label:<{label}}{numbers}".rstrip()


def _cells(row: Row, has_paper: bool) -> list[str]:
    found = (*row.values, row.paper) if has_paper else row.values
    return [shown(value, row.kind) for value in found]
