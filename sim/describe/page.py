"""A description before people: as plain text, and as one HTML page that needs nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sim.base import files, html
from sim.base.html.figures import section_plots
from sim.base.text import table_lines
from sim.describe.fidelity import MOST
from sim.describe.figures import figures
from sim.describe.statistics import NOTES, SECTIONS, Description, Row, shown, to_table, write_tables

_LETTER_REM = 0.52  # about as wide as a letter of a table is
_GAP = 2  # letters between columns
_TEMPLATES = Path(__file__).parent / "templates"


def write_page(of: Description, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``describe.html``, and beside it ``measures.parquet`` and a file a table.

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
    everything = [(name, number) for name in of.names for number in of.statistics[name]]
    target, paths = write_tables({"measures": to_table(everything), **of.tables}, folder)
    files.write_text(target / "describe.html", page(of))
    return [*paths, target / "describe.html"]


def page(of: Description) -> str:
    """Return the page; the same description gives the same text."""
    drawn = [figure for figure in figures(of) if of.told(figure.section)]
    sections = list(_fidelity_sections(of))
    for key in of.order():
        title = SECTIONS[key]
        groups = [(group, rows) for group, rows in of.groups(key)]
        if groups:
            tables = [_table(of, group, rows) for group, rows in groups]
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
        "title": of.names[0],
        "lead": lead(of),
        "columns": [
            {"label": name, "symbol": html.symbol(at), "colour": at % html.N_COLOURS}
            for at, name in enumerate(of.names)
        ],
        "sections": sections,
        "silent": of.silent(),
        **html.embedded([figure.plot for figure in drawn]),
    }
    return html.environment(_TEMPLATES).get_template("describe.html.j2").render(context)


def _table(of: Description, group: str, rows: list[Row]) -> dict[str, Any]:
    """Lay a group out: a column for the first dataset and for whatever else has something."""
    columns = [
        at
        for at in range(len(of.names))
        if at == 0 or any(row.values[at] is not None for row in rows)
    ]
    heads = [of.names[at] for at in columns]
    lines = [[shown(row.values[at], row.kind) for at in columns] for row in rows]
    has_paper = any(row.paper is not None for row in rows)
    if has_paper:
        heads.append("paper")
        for line, row in zip(lines, rows, strict=True):
            line.append(shown(row.paper, row.kind))
    body = [(row.label, line) for row, line in zip(rows, lines, strict=True)]
    letters = max(len(row.label) for row in rows) + sum(
        max(len(text) for text in column) + _GAP for column in zip(heads, *lines, strict=True)
    )
    return {
        "caption": group, "heads": heads, "body": body, "has_paper": has_paper,
        "width_rem": _LETTER_REM * letters,
    }  # fmt: skip


def lead(of: Description) -> str:
    """Say in a line how much there is."""
    parts = [
        f"{of.value('overview', key):,.0f} {words}"
        for key, words in (
            ("jobs", "jobs"),
            ("stages", "stages"),
            ("tasks", "tasks"),
            ("edges", "dependencies"),
        )
        if any(m.section == "overview" and m.key == key for m in of.statistics[of.names[0]])
    ]
    return ", ".join(parts)


_HEADS = ("real half", "this one", "distance", "of halves", "")


def _fidelity(of: Description) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Give a title and rows (group, label, texts) of each workload that was held to be alike."""
    if "fidelity" not in of.tables:
        return
    for name, verdicts in groupby(of.tables["fidelity"].to_pylist(), lambda row: row["dataset"]):
        rows = []
        for v in verdicts:
            values = [None if math.isnan(v[key]) else v[key] for key in ("real", "other")]
            texts = [shown(x, "number") for x in (*values, v["distance"], v["halves"])]
            rows.append((v["group"], v["label"], [*texts, "alike" if v["alike"] else "differs"]))
        yield f"Alike? {name} beside the second half of {of.names[0]}", rows


def _fidelity_lines(of: Description) -> Iterator[str]:
    for title, rows in _fidelity(of):
        body = [["  " + label, *texts] for _, label, texts in rows]
        header = [title.ljust(max(len(line[0]) for line in body)), *_HEADS]
        yield from _grouped_lines(header, body, [group for group, _, _ in rows])
        n = sum(row[2][-1] == "alike" for row in rows)
        yield f"{n} of {len(rows)} rows alike: at most {MOST} times what halves differ by at most"
        yield ""


def _fidelity_sections(of: Description) -> Iterator[dict[str, Any]]:
    for number, (title, rows) in enumerate(_fidelity(of)):
        tables = [
            {"caption": group, "heads": _HEADS, "has_paper": False, "width_rem": 40,
             "body": [(label, texts) for _, label, texts in of_group]}
            for group, of_group in groupby(rows, lambda row: row[0])
        ]  # fmt: skip
        note = f"Alike is at most {MOST} times what halves of {of.names[0]} differ by at most."
        yield {
            "id": f"fidelity-{number}", "title": title, "note": note, "plots": [], "tables": tables,
            "width_rem": 40,
        }  # fmt: skip


def lines(of: Description) -> Iterator[str]:
    """Give the lines of plain text: a table a section."""
    yield from _fidelity_lines(of)
    for section in of.order():
        rows = of.told(section)
        if rows:
            yield from _section_lines(SECTIONS[section], of.names, rows)
            yield ""
    silent = of.silent()
    if silent:
        yield "Nothing to say"
        width = max(len(title) for title, _ in silent)
        yield from (f"  {title.ljust(width)}   {why}" for title, why in silent)
        yield ""


def _section_lines(title: str, names: Sequence[str], rows: list[Row]) -> Iterator[str]:
    has_paper = any(row.paper is not None for row in rows)
    label = max(len(title), *(len(row.label) + 2 for row in rows))
    header = [title.ljust(label), *names, *(["paper"] if has_paper else [])]
    body = []
    for row in rows:
        values = (*row.values, row.paper) if has_paper else row.values
        indent = "  " if row.group else ""
        body.append([indent + row.label, *(shown(value, row.kind) for value in values)])
    yield from _grouped_lines(header, body, [row.group for row in rows])


def _grouped_lines(
    header: Sequence[str], body: Sequence[Sequence[str]], groups: Sequence[str]
) -> Iterator[str]:
    """Give the lines of a table, the name of each group of its rows before them."""
    head, *laid_out = table_lines(header, body, gap=3, numbers=True, min_width=10)
    yield head
    yield "─" * len(head)
    for before, group, line in zip(["", *groups], groups, laid_out, strict=False):
        if group != before:
            yield group
        yield line
