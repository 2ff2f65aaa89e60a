"""The table a sweep ends with, on a terminal and as Markdown; its rows as text, for HTML too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from rich import box
from rich.console import Console
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from sim.base.arrays import F8, Mask
from sweep.stats.arrange import Column, text
from sweep.stats.arrange import text as shortest
from sweep.stats.metric_format import Style, format_value, style
from sweep.stats.summary import Block, Summary

ABSENT = "–"
FAILED = "failed"
FEWER = "†"
BEST = "*"
BASELINE = "baseline"


@dataclass(frozen=True)
class Entry:
    """One number of a table: its mean, the half-width of its interval, what to mark."""

    mean: str
    half: str
    is_best: bool
    is_fewer: bool

    @property
    def spread(self) -> str:
        """The half-width with its sign, or nothing."""
        return f"±{self.half}" if self.half else ""

    @property
    def marks(self) -> str:
        """Signs after the number; `legend` says what they mean."""
        return BEST * self.is_best + FEWER * self.is_fewer

    def text(self, blank: str = " ") -> str:
        """Write it on one line, such as ``1,234 ±56*``."""
        return self.mean + blank * bool(self.half) + self.spread + self.marks


@dataclass(frozen=True)
class Row:
    """One metric at one capacity, an entry a column."""

    metric: str
    style: Style
    entries: tuple[Entry, ...]


def columns_of(summary: Summary, block: Block) -> list[int]:
    """Columns (positions in ``summary.columns``) that have at least one cell in the block."""
    return [int(at) for at in np.flatnonzero(block.n_planned.sum(axis=0))]


def rows_of(summary: Summary, block: Block, capacity: int) -> list[Row]:
    """Rows of the table at the block's capacity number `capacity`, for `columns_of` the block."""
    columns = columns_of(summary, block)
    rows = []
    for at, metric in enumerate(summary.metrics):
        best = _best(block.mean[capacity, columns, at], metric)
        entries = []
        for place, column in enumerate(columns):
            where = (capacity, column, at)
            mean, half = format_value(metric, float(block.mean[where]), float(block.half[where]))
            planned, failed = block.n_planned[capacity, column], block.n_failed[capacity, column]
            if not mean:
                mean = FAILED if failed and failed == planned else ABSENT
            is_fewer = 0 < block.n[where] < planned
            entries.append(Entry(mean, half, bool(best[place]), bool(is_fewer)))
        rows.append(Row(metric, style(metric), tuple(entries)))
    return rows


def _best(means: F8, metric: str) -> Mask:
    """Where the best mean stands, as shown; nowhere if all look the same or neither is better."""
    better = style(metric).better
    known = ~np.isnan(means)
    none = np.zeros(means.shape, dtype=bool)
    if better is None or known.sum() < 2:
        return none
    target = means[known].min() if better == "lower" else means[known].max()
    shown = [format_value(metric, float(mean))[0] for mean in means]
    best = np.array([mean == format_value(metric, float(target))[0] for mean in shown])
    return none if best[known].all() else best & known


def headline(summary: Summary) -> list[str]:
    """Say what is compared, in one to three lines: the grid, the cells, the failures."""
    policies = ", ".join(column.label for column in summary.columns)
    traces = dict.fromkeys(block.trace for block in summary.blocks)
    seeds = len(summary.seeds)
    lines = [
        f"{policies} on {', '.join(traces)}",
        f"capacity {', '.join(text(c) for c in summary.capacities)}"
        f" · {seeds} seed{'s' * (seeds != 1)}"
        f" · {summary.n_cells} cell{'s' * (summary.n_cells != 1)}"
        + (f" · baseline {summary.baseline}" if summary.baseline else ""),
    ]
    if summary.failures:
        lines.append(f"{len(summary.failures)} of {summary.n_cells} cells failed")
    return lines


def legend(summary: Summary, best: str = BEST) -> list[str]:
    """Say what the marks in the tables mean; only those that can occur."""
    if not summary.metrics:
        return []
    seeds = len(summary.seeds)
    words = []
    if seeds > 1:
        words.append(f"mean ± half-width of the 95% confidence interval over {seeds} seeds")
    tables = ((block, at) for block in summary.blocks for at in range(len(block.capacities)))
    rows = (row for block, at in tables for row in rows_of(summary, block, at))
    if any(entry.is_best for row in rows for entry in row.entries):
        words.append(f"{best}: best mean of the row")
    if summary.failures and seeds > 1:
        words.append(f"{FEWER}: fewer seeds, some failed")
    lines = ["; ".join(words)] if words else []
    if summary.unavailable:
        lines.append(f"not available in this sweep: {', '.join(summary.unavailable)}")
    return lines


def column_lines(column: Column) -> list[str]:
    """Heading of a column: the policy, what tells its variants apart, `BASELINE`."""
    return [*column.words, *([BASELINE] if column.is_baseline else [])]


def piped(texts: Sequence[str]) -> str:
    """Write a row of a Markdown table; its cells are `escaped`."""
    return f"| {' | '.join(texts)} |"


def escaped(text: str, *more: str) -> str:
    """Take the meaning in Markdown from a text's signs, and from some `more`."""
    for sign in ("\\", "|", "*", "_", "<", "`", *more):
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())


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

    for number, line in enumerate(headline(summary)):
        say(line, style="bold" if number == 0 else "")
    for block in summary.blocks if summary.metrics else ():
        say("")
        if len(summary.blocks) > 1:
            say(block.title, style="bold underline")
        _print_block(summary, block, console)
    signs_used = legend(summary)
    if signs_used:
        say("")
    for line in signs_used:
        say(line, style="dim")


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the same tables as Markdown, a block's heading at `level`."""
    lines = [escaped(line) + "  " for line in headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {escaped(block.title)}"]
        columns = columns_of(summary, block)
        heads = [" ".join(column_lines(summary.columns[at])) for at in columns]
        for number, capacity in enumerate(block.capacities):
            lines += ["", f"{'#' * (level + 1)} Capacity {shortest(capacity)}", ""]
            lines.append(piped(["metric", *map(escaped, heads)]))
            lines.append(piped(["---", *(["---:"] * len(columns))]))
            lines += [
                piped([f"`{row.metric}`", *map(_markdown_entry, row.entries)])
                for row in rows_of(summary, block, number)
            ]
    below = [escaped(line) + "  " for line in legend(summary, best="bold")]
    return "\n".join([*lines, "", *below]).rstrip() + "\n"


def signs(console: Console) -> Mapping[int, str]:
    """Give what stands for the signs that the output cannot hold (see `str.translate`)."""
    return {} if console.encoding.lower().startswith("utf") else _PLAIN


def _print_block(summary: Summary, block: Block, console: Console) -> None:
    """Print a block, its capacities below each other, in as many tables as its width needs.

    On a terminal, columns that do not fit beside each other go into further tables, after an
    attempt with the numbers set tighter; elsewhere there is one table, however wide.
    """
    columns = columns_of(summary, block)
    heads = [column_lines(summary.columns[at]) for at in columns]
    sections = [rows_of(summary, block, at) for at in range(len(block.capacities))]
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
        if head[-1] == BASELINE:
            title.stylize("not bold cyan", len(title) - len(BASELINE))
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
    if entry.mean == FAILED:
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
    text = escaped(entry.text().replace(BEST, ""))
    return f"**{text}**" if entry.is_best else text
