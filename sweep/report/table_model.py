"""Table model of the report, built once and written as text, Markdown or HTML.

`print_model` writes to a terminal or a pipe, `to_markdown` Markdown, and the template
``table.html.j2`` HTML.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.console import Console
from rich.text import Text

from sim.base.text import label as short_label
from sim.base.text import printable, single_line
from sweep.report.console import ascii_substitutes, terminal_width

BEST = "*"
_GAP = 2  # blanks between columns
_STYLES = {
    **{"best": "bold green", "better": "green", "worse": "red", "failed": "red"},
    "unsure": "dim",
}


@dataclass(frozen=True)
class Cell:
    """Cell of a table; ``about``, ``small`` and ``weight`` are for pages."""

    text: str = ""
    rest: str = ""  # an interval, after the text
    mark: str = ""  # signs after both, including a blank before them if needed
    # ``best``, ``better``, ``worse``, ``failed``, ``unsure``; in a picture ``more`` or ``less``
    style: str = ""
    small: str = ""  # in Markdown too
    about: str = ""
    weight: float | None = None  # strength of its colour, 0 to 1

    def line(self, blank: str = " ") -> str:
        """Write the cell on one line, such as ``1,234 ±56*``."""
        return self.text + blank * bool(self.rest) + self.rest + self.mark


@dataclass(frozen=True)
class Group:
    """Rows under a common heading; a row is a label and a cell for each column."""

    title: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class TableModel:
    """A table. ``codes`` maps row labels that are identifiers to their meanings; None for none."""

    heads: tuple[tuple[str, ...], ...]  # of each column, in lines
    groups: tuple[Group, ...]
    corner: str = ""
    title: str = ""
    kind: str = ""  # the page's class: ``headline``, ``picture``, ``texts``
    codes: Mapping[str, str] | None = None

    @property
    def rests(self) -> list[int]:
        """Largest length of intervals and marks in each column."""
        rows = [cells for group in self.groups for _, cells in group.rows]
        return [max(len(c.rest + c.mark.replace(BEST, "")) for c in col) for col in zip(*rows)]  # noqa: B905


def from_texts(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", kind: str = ""
) -> TableModel:
    """Build a table of texts; the first text of a row is its label."""
    body = tuple((row[0], tuple(map(Cell, row[1:]))) for row in rows)
    heads = tuple((name,) for name in header[1:])
    return TableModel(heads, (Group("", body),), header[0], title, kind)


def escape_markdown(text: str, *extra: str) -> str:
    """Escape Markdown special characters, and those in `extra`.

    ``_`` inside a word and ``[`` without a link's address after it are not special.
    """
    text = " ".join(printable(text).split())
    for character in ("\\", "|", "*", "<", "`", "~~", "](", "][", "]:", "$", *extra):
        text = text.replace(character, "\\" + character)
    text = _ENTITY.sub(r"\\&", text)
    text = _NUMBERED.sub(r"\1\\\2", _BEGINS_BLOCK.sub(r"\\\1", text))
    return _OUTSIDE_WORDS.sub(lambda match: "\\_" * len(match[0]), text)


def code_span(text: str) -> str:
    """Write a text as a Markdown code span on one line, fit for the cell of a table.

    Its fence has more backticks than any run in the text.
    """
    line = " ".join(printable(text).split()) or " "
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    blank = " " * (line[0] == "`" or line[-1] == "`")
    return f"{fence}{blank}{line}{blank}{fence}".replace("|", "\\|")


_ENTITY = re.compile(r"&(?=#?\w+;)")
# a heading, a quotation, a rule, an item of a list
_BEGINS_BLOCK = re.compile(r"^([#>]|[-+](?=[\s-]|$)|=+$)")
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_OUTSIDE_WORDS = re.compile(r"(?<!\w)_+|_+(?!\w)")
_NUMBER = re.compile(r"[-+]?(\d[\d.,]*(e[-+]?\d+)?|inf)( %)?|nan")


def to_markdown(table: TableModel) -> str:
    """Write a table as Markdown; best and better cells are bold."""
    heads = [escape_markdown(" ".join(head)) for head in table.heads]
    lines = [[escape_markdown(table.corner), *heads], ["---", *_sides(table)]]
    for group in table.groups:
        if group.title:
            lines.append([f"**{escape_markdown(group.title)}**", *[""] * len(heads)])
        for label, cells in group.rows:
            name = escape_markdown(label) if table.codes is None else code_span(label)
            lines.append([name, *map(_markdown_cell, cells)])
    return "".join(f"| {' | '.join(texts)} |\n" for texts in lines)


def _sides(table: TableModel) -> list[str]:
    """Return the alignment of each column: numbers right, texts left."""
    if table.kind == "headline":
        return ["---"] * len(table.heads)
    sides = ["---:"] * len(table.heads)
    if table.kind == "texts":
        rows = [cells for group in table.groups for _, cells in group.rows]
        for column in range(len(sides)):
            texts = [cells[column].text for cells in rows if cells[column].text]
            if not texts or not all(map(_NUMBER.fullmatch, texts)):
                sides[column] = "---"
    return sides


def _markdown_cell(cell: Cell) -> str:
    words = escape_markdown(cell.line().replace(BEST, ""), "[")
    words = f"**{words}**" if cell.style == "better" or "best" in cell.style.split() else words
    return f"{words} ({escape_markdown(cell.small)})" if cell.small else words


def print_model(table: TableModel, console: Console) -> None:
    """Print a table, split by columns to fit the width; no number is cut or wrapped.

    It is set more tightly first, if that avoids a split. If the output cannot encode ``±`` and
    ``×``, ASCII replaces them.
    """
    substitutes = ascii_substitutes(console)
    table = _printable(table)
    indent, first, texts, cuts = _layout(table, console)

    def show(label: str, cells: Sequence[Text]) -> None:
        line = Text(label.ljust(first).translate(substitutes))
        for cell in cells:
            line.append(" " * _GAP).append_text(cell)
        line.rstrip()
        console.print(line, soft_wrap=True)

    for begin, end in pairwise(cuts):
        if begin:
            console.print()
        heads = table.heads[begin:end]
        for line in range(max(map(len, heads))):
            words = [head[line] if line < len(head) else "" for head in heads]
            shown = zip(words, texts[begin:end], strict=True)
            bold = [
                Text(w.rjust(len(column[0])).translate(substitutes), "bold") for w, column in shown
            ]
            show("" if line else table.corner, bold)
        row = 0
        for group in table.groups:
            if group.title:
                console.print(
                    Text(group.title.translate(substitutes), style="bold"), soft_wrap=True
                )
            for label, _ in group.rows:
                show(indent + label, [column[row] for column in texts[begin:end]])
                row += 1


def n_lines(table: TableModel, console: Console) -> int:
    """Count the lines that `print_model` prints."""
    table = _printable(table)
    *_, cuts = _layout(table, console)
    body = sum(bool(group.title) + len(group.rows) for group in table.groups)
    heads = [max(map(len, table.heads[begin:end])) for begin, end in pairwise(cuts)]
    return sum(heads) + len(heads) * (body + 1) - 1


def _layout(table: TableModel, console: Console) -> tuple[str, int, list[list[Text]], list[int]]:
    """Return indent and width of labels, the texts of each column, the columns to split at."""
    substitutes = ascii_substitutes(console)
    rows = [row for group in table.groups for row in group.rows]
    indent = "  " * any(group.title for group in table.groups)
    first = max(len(table.corner), *(len(indent + label) for label, _ in rows))
    columns = [[cells[line] for _, cells in rows] for line in range(len(table.heads))]
    width = terminal_width(console) - first
    texts, cuts = _laid_out(table.heads, columns, width, substitutes, " ")
    tight = _laid_out(table.heads, columns, width, substitutes, "")
    if len(tight[1]) < len(cuts):
        texts, cuts = tight
    return indent, first, texts, cuts


def _printable(table: TableModel) -> TableModel:
    """Return the table with control characters removed and labels shortened."""
    groups = [
        Group(
            short_label(group.title),
            tuple(
                (
                    short_label(row),
                    tuple(replace(cell, text=single_line(cell.text)) for cell in cells),
                )
                for row, cells in group.rows
            ),
        )
        for group in table.groups
    ]
    heads = tuple(tuple(map(short_label, head)) for head in table.heads)
    return replace(table, heads=heads, groups=tuple(groups), corner=short_label(table.corner))


def _laid_out(
    heads: Sequence[Sequence[str]],
    columns: Sequence[Sequence[Cell]],
    available_width: int,
    substitutes: Mapping[int, str],
    separator: str,
) -> tuple[list[list[Text]], list[int]]:
    """Return the texts of each column, padded to its width, and the columns to split at.

    Numbers are right-aligned and their suffixes left-aligned; without a `separator` between them,
    the whole is right-aligned.
    """
    texts, cuts, used = [], [0], 0
    for index, (head, column) in enumerate(zip(heads, columns, strict=True)):
        means = [cell.text.translate(substitutes) for cell in column]
        suffixes = [
            (separator * bool(c.rest) + c.rest + c.mark).translate(substitutes) for c in column
        ]
        suffixes = [
            suffix.ljust(max(map(len, suffixes)) if separator else 0) for suffix in suffixes
        ]
        width = max(
            map(len, [*head, *(m + suffix for m, suffix in zip(means, suffixes, strict=True))])
        )
        parts = zip(column, means, suffixes, strict=True)
        texts.append(
            [_styled(cell, m.rjust(width - len(suffix)), suffix) for cell, m, suffix in parts]
        )
        if used and used + width + _GAP > available_width:
            cuts.append(index)
            used = 0
        used += width + _GAP
    return texts, [*cuts, len(texts)]


def _styled(cell: Cell, text: str, suffix: str) -> Text:
    styled = Text(text + suffix)
    if cell.style:
        styled.stylize(_STYLES[cell.style])
    else:
        styled.stylize("dim", len(text))
    return styled
