"""Build a report section from a table of results: sentences, a table and plots for each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sweep.report.section import Plot, Section, Table
from sweep.stats.cell_columns import text

Row = Mapping[str, Any]


@dataclass(frozen=True)
class SectionPart:
    """Part of a section about one group of rows."""

    sentences: Sequence[str]
    header: Sequence[str]
    table_rows: Iterable[Sequence[str]]  # of the table
    plots: Sequence[Plot] = ()


def build_section(
    template: Section,
    rows: Sequence[Row],
    group_keys: Sequence[str],
    build_part: Callable[[list[Row], str], SectionPart],
    n_always: int = 0,
) -> Section:
    """Fill a section with the parts of each group of rows.

    Rows are grouped by the columns `group_keys`. `build_part` is called with the rows of a group
    and its name: the values of all keys if there are several groups, else of the first `n_always`.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_label_text(name, row[name]) for name in group_keys), []).append(
            row
        )
    sentences, tables, plots = list[str](), list[Table](), list[Plot]()
    for labels, members in groups.items():
        where = ", ".join(filter(None, labels[: None if len(groups) > 1 else n_always]))
        part = build_part(members, where)
        sentences += [f"{where}: {line}" if where else line for line in part.sentences]
        table_rows = tuple(map(tuple, part.table_rows))
        tables.append(Table(where if len(groups) > 1 else "", tuple(part.header), table_rows))
        plots += part.plots
    return replace(template, sentences=tuple(sentences), tables=tuple(tables), plots=tuple(plots))


def _label_text(name: str, value: Any) -> str:
    return f"capacity {text(value)}" if name == "capacity" else str(value)
