"""Plain text and self-contained HTML page of a description."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sim.base import files, html
from sim.base.html.figures import section_plots
from sim.base.table_files import write_tables
from sim.base.text import table_lines
from sim.describe.fidelity import MAX_RATIO
from sim.describe.figures import figures
from sim.describe.statistics import (
    NOTES,
    SECTIONS,
    Description,
    Row,
    format_value,
    to_table,
)

_LETTER_REM = 0.52  # approximate width of a letter in a table
_GAP = 2  # letters between columns
_TEMPLATES = Path(__file__).parent / "templates"


def write_page(description: Description, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``describe.html``, ``measures.parquet`` and one Parquet file per table.

    The same description gives the same bytes. Files of other names in the folder stay.

    Returns
    -------
    list of Path
        The files; the page is last.

    Raises
    ------
    InputError
        If the folder can't be made.
    """
    everything = [
        (name, number) for name in description.names for number in description.statistics[name]
    ]
    target, paths = write_tables({"measures": to_table(everything), **description.tables}, folder)
    files.write_text(target / "describe.html", page(description))
    return [*paths, target / "describe.html"]


def page(description: Description) -> str:
    """Render the page; the same description gives the same text."""
    drawn = [figure for figure in figures(description) if description.visible_rows(figure.section)]
    sections = list(_fidelity_sections(description))
    for key in description.order():
        title = SECTIONS[key]
        groups = [(group, rows) for group, rows in description.visible_groups(key)]
        if groups:
            tables = [_table(description, group, rows) for group, rows in groups]
            sections.append(
                {
                    "id": key,
                    "title": title,
                    "note": NOTES[key],
                    "plots": section_plots(drawn, key),
                    "tables": tables,
                    "width_rem": round(max(table["width_rem"] for table in tables), 1),
                }
            )
    context = {
        "title": description.names[0],
        "lead": lead(description),
        "columns": [
            {"label": name, "symbol": html.symbol(index), "colour": index % html.N_COLOURS}
            for index, name in enumerate(description.names)
        ],
        "sections": sections,
        "empty": description.empty_sections(),
        **html.embedded([figure.plot for figure in drawn]),
    }
    return html.environment(_TEMPLATES).get_template("describe.html.j2").render(context)


def _table(description: Description, group: str, rows: list[Row]) -> dict[str, Any]:
    """Build the table model of a group, with a column per dataset that has a value in it."""
    columns = [
        index
        for index in range(len(description.names))
        if index == 0 or any(row.values[index] is not None for row in rows)
    ]
    heads = [description.names[index] for index in columns]
    cells = [[format_value(row.values[index], row.kind) for index in columns] for row in rows]
    has_paper = any(row.paper is not None for row in rows)
    if has_paper:
        heads.append("paper")
        for line, row in zip(cells, rows, strict=True):
            line.append(format_value(row.paper, row.kind))
    body = [(row.label, line) for row, line in zip(rows, cells, strict=True)]
    letters = max(len(row.label) for row in rows) + sum(
        max(len(text) for text in column) + _GAP for column in zip(heads, *cells, strict=True)
    )
    return {
        "caption": group, "heads": heads, "body": body, "has_paper": has_paper,
        "width_rem": _LETTER_REM * letters,
    }  # fmt: skip


def lead(description: Description) -> str:
    """Return a line with the numbers of jobs, stages, tasks and dependencies."""
    parts = [
        f"{description.value('overview', key):,.0f} {words}"
        for key, words in (
            ("jobs", "jobs"),
            ("stages", "stages"),
            ("tasks", "tasks"),
            ("edges", "dependencies"),
        )
        if any(
            m.section == "overview" and m.key == key
            for m in description.statistics[description.names[0]]
        )
    ]
    return ", ".join(parts)


_CRITERION = f"distance to the real half is at most {MAX_RATIO} times that of two random halves"
_HEADS = ("real half", "this one", "distance", "chance", "")


def _fidelity(description: Description) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Yield a title and rows (group, label, texts) for each workload tested for similarity."""
    if "fidelity" not in description.tables:
        return
    for name, verdicts in groupby(
        description.tables["fidelity"].to_pylist(), lambda row: row["dataset"]
    ):
        rows = []
        for v in verdicts:
            values = [None if math.isnan(v[key]) else v[key] for key in ("real", "other")]
            texts = [format_value(x, "number") for x in (*values, v["distance"], v["halves"])]
            rows.append((v["group"], v["label"], [*texts, "similar" if v["alike"] else "differs"]))
        yield f"Fidelity: {name} compared with the second half of {description.names[0]}", rows


def _fidelity_lines(description: Description) -> Iterator[str]:
    for title, rows in _fidelity(description):
        body = [["  " + label, *texts] for _, label, texts in rows]
        header = [title.ljust(max(len(line[0]) for line in body)), *_HEADS]
        yield from _grouped_lines(header, body, [group for group, _, _ in rows])
        n = sum(row[2][-1] == "similar" for row in rows)
        yield f"{n} of {len(rows)} properties are similar: {_CRITERION}"
        yield ""


def _fidelity_sections(description: Description) -> Iterator[dict[str, Any]]:
    for number, (title, rows) in enumerate(_fidelity(description)):
        tables = [
            {"caption": group, "heads": _HEADS, "has_paper": False, "width_rem": 40,
             "body": [(label, texts) for _, label, texts in group_rows]}
            for group, group_rows in groupby(rows, lambda row: row[0])
        ]  # fmt: skip
        note = f"A property is similar if the {_CRITERION}."
        yield {
            "id": f"fidelity-{number}", "title": title, "note": note, "plots": [], "tables": tables,
            "width_rem": 40,
        }  # fmt: skip


def text_lines(description: Description) -> Iterator[str]:
    """Yield the lines of plain text: one table per section."""
    yield from _fidelity_lines(description)
    for section in description.order():
        rows = description.visible_rows(section)
        if rows:
            yield from _section_lines(SECTIONS[section], description.names, rows)
            yield ""
    empty = description.empty_sections()
    if empty:
        yield "Sections without data"
        width = max(len(title) for title, _ in empty)
        yield from (f"  {title.ljust(width)}   {why}" for title, why in empty)
        yield ""


def _section_lines(title: str, names: Sequence[str], rows: list[Row]) -> Iterator[str]:
    has_paper = any(row.paper is not None for row in rows)
    label = max(len(title), *(len(row.label) + 2 for row in rows))
    header = [title.ljust(label), *names, *(["paper"] if has_paper else [])]
    body = []
    for row in rows:
        values = (*row.values, row.paper) if has_paper else row.values
        indent = "  " if row.group else ""
        body.append([indent + row.label, *(format_value(value, row.kind) for value in values)])
    yield from _grouped_lines(header, body, [row.group for row in rows])


def _grouped_lines(
    header: Sequence[str], body: Sequence[Sequence[str]], groups: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of a table, with the name of each group before its rows."""
    head, *laid_out = table_lines(header, body, gap=3, numbers=True, min_width=10)
    yield head
    yield "─" * len(head)
    for before, group, line in zip(["", *groups], groups, laid_out, strict=False):
        if group != before:
            yield group
        yield line
