"""The table a sweep ends with, on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from sweep.report import table_view
from sweep.report.table_view import Entry, escaped, piped
from sweep.stats.arrange import text as shortest
from sweep.stats.summary import Block, Summary

_PLAIN = str.maketrans({"±": "+/-", "×": "x", "–": "-", "·": "|", "†": "#", "∞": "inf"})
_GAP = 2  # blanks between columns


def print_table(summary: Summary, console: Console | None = None) -> None:
    """Print every metric, a row each, for every policy, a column each, capacity by capacity.

    On a terminal the policies that do not fit beside each other go into further tables, so that
    no number is cut or wrapped; written to a file or a pipe every table has its full width. Where
    the output cannot hold ``±`` and ``×``, plain letters stand for them.
    """
    console = console or Console()

    def say(line: str, style: str = "") -> None:
        text = Text(line.translate(signs(console)), style=style)
        console.print(text, soft_wrap=True)

    for number, line in enumerate(table_view.headline(summary)):
        say(line, style="bold" if number == 0 else "")
    for block in summary.blocks if summary.metrics else ():
        say("")
        if len(summary.blocks) > 1:
            say(block.title, style="bold underline")
        _print_block(summary, block, console)
    legend = table_view.legend(summary)
    if legend:
        say("")
    for line in legend:
        say(line, style="dim")


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the same tables as Markdown, a block's heading at `level`."""
    lines = [escaped(line) + "  " for line in table_view.headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {escaped(block.title)}"]
        columns = table_view.columns_of(summary, block)
        heads = [" ".join(table_view.column_lines(summary.columns[at])) for at in columns]
        for number, capacity in enumerate(block.capacities):
            lines += ["", f"{'#' * (level + 1)} Capacity {shortest(capacity)}", ""]
            lines.append(piped(["metric", *map(escaped, heads)]))
            lines.append(piped(["---", *(["---:"] * len(columns))]))
            lines += [
                piped([f"`{row.metric}`", *map(_markdown_entry, row.entries)])
                for row in table_view.rows_of(summary, block, number)
            ]
    legend = [escaped(line) + "  " for line in table_view.legend(summary, best="bold")]
    return "\n".join([*lines, "", *legend]).rstrip() + "\n"


def signs(console: Console) -> Mapping[int, str]:
    """Give what stands for the signs that the output cannot hold (see `str.translate`)."""
    return {} if console.encoding.lower().startswith("utf") else _PLAIN


def _print_block(summary: Summary, block: Block, console: Console) -> None:
    """Print a block, its capacities below each other, in as many tables as its width needs.

    On a terminal, columns that do not fit beside each other go into further tables, after an
    attempt with the numbers set tighter; elsewhere there is one table, however wide.
    """
    columns = table_view.columns_of(summary, block)
    heads = [table_view.column_lines(summary.columns[at]) for at in columns]
    sections = [table_view.rows_of(summary, block, at) for at in range(len(block.capacities))]
    entries = [[row.entries[at] for rows in sections for row in rows] for at in range(len(heads))]
    names = [[row.metric for row in rows] for rows in sections]
    first = max(len(text) for text in (*summary.metrics, *map(_title, block.capacities)))

    texts = [_aligned(column, signs(console)) for column in entries]
    cuts = [0, len(heads)]
    if console.is_terminal:
        cuts = _cuts(_widths(heads, texts), console.width - first)
        tight = [_tight(column, signs(console)) for column in entries]
        tight_cuts = _cuts(_widths(heads, tight), console.width - first)
        if len(tight_cuts) < len(cuts):
            texts, cuts = tight, tight_cuts
    texts = [
        [_padded(text, width) for text in column]
        for column, width in zip(texts, _widths(heads, texts), strict=True)
    ]
    full = first + sum(_widths(heads, texts)) + _GAP * len(heads)
    for begin, end in pairwise(cuts):
        if begin:
            console.print()
        table = _table(block, names, heads[begin:end], texts[begin:end])
        lines = console.render(table, console.options.update(width=full))
        console.print(Segments(lines), soft_wrap=True)


def _table(
    block: Block,
    names: Sequence[Sequence[str]],
    heads: Sequence[Sequence[str]],
    texts: Sequence[Sequence[Text]],
) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    for head in heads:
        title = Text("\n".join(head), style="bold", justify="right")
        if head[-1] == table_view.BASELINE:
            title.stylize("not bold cyan", len(title) - len(table_view.BASELINE))
        table.add_column(title, no_wrap=True)
    at = 0
    for capacity, metrics in zip(block.capacities, names, strict=True):
        table.add_row(Text(_title(capacity), style="bold"))
        for metric in metrics:
            table.add_row(Text(metric), *(column[at] for column in texts))
            at += 1
        table.add_section()
    return table


def _aligned(entries: Sequence[Entry], signs: Mapping[int, str]) -> list[Text]:
    """Texts of a column, of one width: means end, and half-widths begin, below each other."""
    means = [entry.mean.translate(signs) for entry in entries]
    rests = [
        (f" {entry.spread}" * bool(entry.spread) + entry.marks).translate(signs)
        for entry in entries
    ]
    left = max(map(len, means), default=0)
    right = max(map(len, rests), default=0)
    return [
        _coloured(entry, mean.rjust(left), rest.ljust(right))
        for entry, mean, rest in zip(entries, means, rests, strict=True)
    ]


def _tight(entries: Sequence[Entry], signs: Mapping[int, str]) -> list[Text]:
    """Texts of a column, of one width, without a blank inside."""
    width = max((len(entry.text("").translate(signs)) for entry in entries), default=0)
    texts = []
    for entry in entries:
        mean, rest = entry.mean.translate(signs), (entry.spread + entry.marks).translate(signs)
        texts.append(_coloured(entry, mean.rjust(width - len(rest)), rest))
    return texts


def _coloured(entry: Entry, mean: str, rest: str) -> Text:
    text = Text(mean + rest)
    if entry.mean == table_view.FAILED:
        text.stylize("red")
    elif entry.is_best:
        text.stylize("bold green")
    else:
        text.stylize("dim", len(mean))
    return text


def _padded(text: Text, width: int) -> Text:
    text.pad_left(width - len(text))
    return text


def _widths(heads: Sequence[Sequence[str]], texts: Sequence[Sequence[Text]]) -> list[int]:
    return [
        max([*map(len, head), *map(len, column)]) for head, column in zip(heads, texts, strict=True)
    ]


def _cuts(widths: Sequence[int], room: int) -> list[int]:
    """Where to cut a row of columns so that each part fits: positions 0 … n, ascending."""
    cuts, used = [0], 0
    for at, width in enumerate(widths):
        if used and used + width + _GAP > room:
            cuts.append(at)
            used = 0
        used += width + _GAP
    return [*cuts, len(widths)]


def _title(capacity: float) -> str:
    return f"capacity {shortest(capacity)}"


def _markdown_entry(entry: Entry) -> str:
    text = escaped(entry.text().replace(table_view.BEST, ""))
    return f"**{text}**" if entry.is_best else text
