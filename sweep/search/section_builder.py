"""From a table of what was found to a part of the report: of each world words, table, plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweep.report.section import Plot, Section, Table
from sweep.stats.cell_columns import text

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SectionPart:
    """What is said of one world."""

    sentences: Sequence[str]
    header: Sequence[str]
    lines: Iterable[Sequence[str]]  # of the table
    plots: Sequence[Plot] = ()


def build_section(
    about: Section,
    rows: Sequence[Row],
    worlds: Sequence[str],
    say: Callable[[list[Row], str], SectionPart],
    always: int = 0,
) -> Section:
    """Fill a section: `say` is given a world's rows, and which world it is, if there are several.

    Worlds differ in the columns of these names, of which the first few are `always` said.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_said(name, row[name]) for name in worlds), []).append(row)
    sentences, tables, plots = list[str](), list[Table](), list[Plot]()
    for world, members in groups.items():
        where = ", ".join(filter(None, world[: None if len(groups) > 1 else always]))
        part = say(members, where)
        sentences += [f"{where}: {line}" if where else line for line in part.sentences]
        lines = tuple(map(tuple, part.lines))
        tables.append(Table(where if len(groups) > 1 else "", tuple(part.header), lines))
        plots += part.plots
    return replace(about, sentences=tuple(sentences), tables=tuple(tables), plots=tuple(plots))


def _said(name: str, value: Any) -> str:
    return f"capacity {text(value)}" if name == "capacity" else str(value)
