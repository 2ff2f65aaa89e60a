"""A part of a report that another room fills: sentences, tables and plots, for every medium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from sim.base.text import table_lines
from sweep.report.table import escaped, piped, signs


@dataclass(frozen=True)
class Table:
    """A small table of texts; the first column names the rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """A plotly figure in plain data, what is written above it, and a remark."""

    caption: str
    figure: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Sentences first, then tables, then plots, which only a page has."""

    id: str
    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    is_answer: bool = False  # whether it is what was asked for, and stands before all else


def to_markdown(section: Section, level: int = 2) -> str:
    """Write a section as Markdown, its heading at `level`."""
    lines = [f"{'#' * level} {escaped(section.title)}", ""]
    lines += [escaped(sentence) + "  " for sentence in section.sentences]
    for table in section.tables:
        lines += ["", escaped(table.caption), ""] if table.caption else [""]
        lines.append(piped([*map(escaped, table.header)]))
        lines.append(piped(["---", *(["---:"] * (len(table.header) - 1))]))
        lines += [piped([*map(escaped, row)]) for row in table.rows]
    lines += ["", *(escaped(note) + "  " for note in section.notes)] if section.notes else []
    return "\n".join(lines).rstrip() + "\n"


def print_section(section: Section, console: Console) -> None:
    """Print a section: its title, sentences and tables."""

    def say(line: str, style: str = "") -> None:
        console.print(Text(line.translate(signs(console)), style=style), soft_wrap=True)

    say(section.title, "bold underline")
    for sentence in section.sentences:
        say(sentence, "bold" if section.is_answer else "")
    for table in section.tables:
        say("")
        if table.caption:
            say(table.caption)
        for line in table_lines(table.header, table.rows, numbers=True):
            say(line)
    for note in section.notes:
        say(note, "dim")


def context(sections: Sequence[Section], add_plot: Any) -> list[dict[str, Any]]:
    """Give the page's template its sections; `add_plot` takes a figure and its words."""
    return [
        {
            "id": section.id,
            "title": section.title,
            "sentences": section.sentences,
            "tables": section.tables,
            "notes": section.notes,
            "is_answer": section.is_answer,
            "plots": [add_plot(dict(p.figure), p.caption, note=p.note) for p in section.plots],
        }
        for section in sections
    ]
