"""Section of a report: sentences, tables and plots, for terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from sweep.report import table_model
from sweep.report.console import print_line
from sweep.report.table_model import TableModel, escape_markdown

MAX_SENTENCES = 3
"""Most sentences of a section in a short output."""


@dataclass(frozen=True)
class Table:
    """A small table of texts; the first column labels the rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def model(self) -> TableModel:
        """Table model, from which every medium is written."""
        return table_model.from_texts(self.header, self.rows, title=self.caption)


@dataclass(frozen=True)
class Plot:
    """A plotly figure in plain data, with a caption and a remark."""

    caption: str
    figure: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """Sentences, a command, then tables, then plots (on the page only)."""

    id: str
    title: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    is_answer: bool = False  # shown before all else, in place of the verdict
    question: str = ""  # that it answers, with {jobs} and {policies}
    n_column_notes: int = 0  # its first notes, which explain columns of its tables
    command: str = ""  # one line for a shell, as it is typed

    @property
    def has_text(self) -> bool:
        """True if a terminal can show any of it: it is not plots alone."""
        return bool(self.sentences or self.tables or self.notes)


def shortened(section: Section) -> Section:
    """Return a section for a short output: its first sentences, or its tables if it has none."""
    if not section.sentences:
        return replace(section, notes=())
    more = len(section.sentences) - MAX_SENTENCES
    below = (f"and {more} more",) if more > 0 else ()
    return replace(
        section, sentences=section.sentences[:MAX_SENTENCES] + below, tables=(), notes=()
    )


def to_markdown(section: Section, level: int = 2) -> str:
    """Write a section as Markdown, its heading at `level`; nothing of one that is plots alone."""
    if not section.has_text:
        return ""
    lines = [f"{'#' * level} {escape_markdown(section.title)}", ""]
    lines += [escape_markdown(sentence) + "  " for sentence in section.sentences]
    lines += ["", f"    {section.command}"] if section.command else []
    for table in section.tables:
        lines += ["", escape_markdown(table.caption), ""] if table.caption else [""]
        lines.append(table_model.to_markdown(table.model).rstrip())
    lines += (
        ["", *(escape_markdown(note) + "  " for note in section.notes)] if section.notes else []
    )
    return "\n".join(lines).rstrip() + "\n"


def print_section(section: Section, console: Console) -> None:
    """Print a section: its title, sentences and tables."""
    print_line(console, section.title, "bold underline")
    for sentence in section.sentences:
        print_line(console, sentence, "bold" if section.is_answer else "")
    if section.command:
        print_line(console, f"  {section.command}")
    for table in section.tables:
        print_line(console, "")
        if table.caption:
            print_line(console, table.caption)
        table_model.print_model(table.model, console)
    for note in section.notes:
        print_line(console, note, "dim")
