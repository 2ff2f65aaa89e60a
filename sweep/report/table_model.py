"""A table of a report as every medium shows it: built once, written by three small writers.

`print_sheet` is for a terminal or a pipe, `to_markdown` for ``.md``; ``table.html.j2`` beside this
module has the page's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rich.console import Console
from rich.text import Text

from sim.base.text import label as in_short
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
    """What stands at one place; ``about``, ``small`` and ``weight`` are for pages."""

    text: str = ""
    rest: str = ""  # an interval, beside it
    mark: str = ""  # signs after both, a blank first where there is to be one
    # ``best``, ``better``, ``worse``, ``failed``, ``unsure``; of a picture's ``more`` or ``less``
    look: str = ""
    small: str = ""  # in Markdown too
    about: str = ""
    weight: float | None = None  # 0 to 1: how strong its colour is

    def line(self, blank: str = " ") -> str:
        """Write it on one line, such as ``1,234 ±56*``."""
        return self.text + blank * bool(self.rest) + self.rest + self.mark


@dataclass(frozen=True)
class Group:
    """Rows that stand together: each a label and its cells, one a column."""

    title: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class TableModel:
    """A table. ``codes`` are labels that a program knows, with what they mean; None for none."""

    heads: tuple[tuple[str, ...], ...]  # of each column, in lines
    groups: tuple[Group, ...]
    corner: str = ""
    title: str = ""
    kind: str = ""  # the page's class: ``headline``, ``picture``, ``texts``
    codes: Mapping[str, str] | None = None

    @property
    def rests(self) -> list[int]:
        """Length of what stands beside the numbers of each column."""
        rows = [cells for group in self.groups for _, cells in group.rows]
        return [max(len(c.rest + c.mark.replace(BEST, "")) for c in col) for col in zip(*rows)]  # noqa: B905


def from_texts(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", kind: str = ""
) -> TableModel:
    """Make a table of texts; the first of each row names it."""
    body = tuple((row[0], tuple(map(Cell, row[1:]))) for row in rows)
    heads = tuple((name,) for name in header[1:])
    return TableModel(heads, (Group("", body),), header[0], title, kind)


def escape_markdown(text: str, *more: str) -> str:
    """Take the meaning in Markdown from a text's signs, and from some `more`.

    Inside a word ``_`` has none, and ``[`` has none but before a link's address.
    """
    text = " ".join(printable(text).split())
    for sign in ("\\", "|", "*", "<", "`", "~~", "](", "][", "]:", "$", *more):
        text = text.replace(sign, "\\" + sign)
    text = _ENTITY.sub(r"\\&", text)
    text = _NUMBERED.sub(r"\1\\\2", _BEGINS_BLOCK.sub(r"\\\1", text))
    return _OUTSIDE_WORDS.sub(lambda found: "\\_" * len(found[0]), text)


def code_span(text: str) -> str:
    """Write a text as Markdown's code, in one line, fit for the cell of a table.

    It stands between more backticks than it has in a row.
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


def to_markdown(sheet: TableModel) -> str:
    """Write a table as Markdown; what is best or better is bold."""
    heads = [escape_markdown(" ".join(head)) for head in sheet.heads]
    lines = [[escape_markdown(sheet.corner), *heads], ["---", *_sides(sheet)]]
    for group in sheet.groups:
        if group.title:
            lines.append([f"**{escape_markdown(group.title)}**", *[""] * len(heads)])
        for label, cells in group.rows:
            name = escape_markdown(label) if sheet.codes is None else code_span(label)
            lines.append([name, *map(_markdown_cell, cells)])
    return "".join(f"| {' | '.join(texts)} |\n" for texts in lines)


def _sides(sheet: TableModel) -> list[str]:
    """Tell where each column is flush: numbers right, what is read as a text left."""
    if sheet.kind == "headline":
        return ["---"] * len(sheet.heads)
    sides = ["---:"] * len(sheet.heads)
    if sheet.kind == "texts":
        rows = [cells for group in sheet.groups for _, cells in group.rows]
        for at in range(len(sides)):
            texts = [cells[at].text for cells in rows if cells[at].text]
            if not texts or not all(map(_NUMBER.fullmatch, texts)):
                sides[at] = "---"
    return sides


def _markdown_cell(cell: Cell) -> str:
    words = escape_markdown(cell.line().replace(BEST, ""), "[")
    words = f"**{words}**" if cell.look == "better" or "best" in cell.look.split() else words
    return f"{words} ({escape_markdown(cell.small)})" if cell.small else words


def print_model(sheet: TableModel, console: Console) -> None:
    """Print a table, in as many parts as the width asks for; no number is cut or wrapped.

    Before it is parted its numbers are set tighter, if that is enough. Where the output cannot hold
    ``±`` and ``×``, plain letters stand for them.
    """
    plain = ascii_substitutes(console)
    sheet = _printable(sheet)
    rows = [row for group in sheet.groups for row in group.rows]
    indent = "  " * any(group.title for group in sheet.groups)
    first = max(len(sheet.corner), *(len(indent + label) for label, _ in rows))
    columns = [[cells[at] for _, cells in rows] for at in range(len(sheet.heads))]
    room = terminal_width(console) - first
    texts, cuts = _laid_out(sheet.heads, columns, room, plain, " ")
    closer = _laid_out(sheet.heads, columns, room, plain, "")
    if len(closer[1]) < len(cuts):
        texts, cuts = closer

    def show(label: str, cells: Sequence[Text]) -> None:
        line = Text(label.ljust(first).translate(plain))
        for cell in cells:
            line.append(" " * _GAP).append_text(cell)
        line.rstrip()
        console.print(line, soft_wrap=True)

    for begin, end in pairwise(cuts):
        if begin:
            console.print()
        heads = sheet.heads[begin:end]
        for at in range(max(map(len, heads))):
            words = [head[at] if at < len(head) else "" for head in heads]
            shown = zip(words, texts[begin:end], strict=True)
            bold = [Text(w.rjust(len(column[0])).translate(plain), "bold") for w, column in shown]
            show("" if at else sheet.corner, bold)
        row = 0
        for group in sheet.groups:
            if group.title:
                console.print(Text(group.title.translate(plain), style="bold"), soft_wrap=True)
            for label, _ in group.rows:
                show(indent + label, [column[row] for column in texts[begin:end]])
                row += 1


def _printable(sheet: TableModel) -> TableModel:
    """Return a table of which no text moves the cursor or fills lines."""
    groups = [
        Group(
            in_short(group.title),
            tuple(
                (in_short(row), tuple(replace(one, text=single_line(one.text)) for one in cells))
                for row, cells in group.rows
            ),
        )
        for group in sheet.groups
    ]
    heads = tuple(tuple(map(in_short, head)) for head in sheet.heads)
    return replace(sheet, heads=heads, groups=tuple(groups), corner=in_short(sheet.corner))


def _laid_out(
    heads: Sequence[Sequence[str]],
    columns: Sequence[Sequence[Cell]],
    room: int,
    plain: Mapping[int, str],
    blank: str,
) -> tuple[list[list[Text]], list[int]]:
    """Give the texts of each column, all as wide as the column, and where to cut the table.

    Numbers end, and what stands beside them begins, below each other; without a `blank` between
    them they are only flush right.
    """
    texts, cuts, used = [], [0], 0
    for at, (head, column) in enumerate(zip(heads, columns, strict=True)):
        means = [cell.text.translate(plain) for cell in column]
        rests = [(blank * bool(c.rest) + c.rest + c.mark).translate(plain) for c in column]
        rests = [rest.ljust(max(map(len, rests)) if blank else 0) for rest in rests]
        width = max(map(len, [*head, *(m + rest for m, rest in zip(means, rests, strict=True))]))
        both = zip(column, means, rests, strict=True)
        texts.append([_styled(cell, m.rjust(width - len(rest)), rest) for cell, m, rest in both])
        if used and used + width + _GAP > room:
            cuts.append(at)
            used = 0
        used += width + _GAP
    return texts, [*cuts, len(texts)]


def _styled(cell: Cell, text: str, rest: str) -> Text:
    styled = Text(text + rest)
    if cell.look:
        styled.stylize(_STYLES[cell.look])
    else:
        styled.stylize("dim", len(text))
    return styled
