"""What a sweep ends with on a terminal or in a pipe: the verdict, then a table of what matters.

On a terminal metrics are rows and policies columns, in as many tables as the width asks for; in a
pipe, where the next program reads lines, policies are rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich import box
from rich.console import Console
from rich.segment import Segments
from rich.table import Table
from rich.text import Text

from sweep.report import matter
from sweep.report.console import say, signs, width_of
from sweep.report.table import (
    BASELINE,
    FAILED,
    Entry,
    Row,
    column_lines,
    columns_of,
    headline,
    legend,
    rows_of,
    size,
)
from sweep.stats.summary import Block, Summary

MOST_SENTENCES = 12
_GAP = 2  # blanks between columns


def print_verdict(sentences: Sequence[str], console: Console) -> None:
    """Print what a sweep's verdicts say, a paragraph each."""
    for sentence in sentences[:MOST_SENTENCES]:
        say(console, sentence, "bold")
    if len(sentences) > MOST_SENTENCES:
        say(console, f"and {len(sentences) - MOST_SENTENCES} more, in verdict.json and the report")
    if sentences:
        say(console, "")


def print_table(
    summary: Summary, console: Console | None = None, shown: Sequence[str] | None = None
) -> None:
    """Print metrics for every policy, capacity by capacity; all of them if none are `shown`.

    No number is cut or wrapped: what does not fit beside each other goes into further tables. Where
    the output cannot hold ``±`` and ``×``, plain letters stand for them.
    """
    console = console or Console()
    metrics = summary.metrics if shown is None else shown
    for line in headline(summary):
        say(console, line, "dim")
    for block in summary.blocks if summary.metrics else ():
        say(console, "")
        if len(summary.blocks) > 1:
            say(console, block.title, "bold underline")
        sections = [
            [row for row in rows_of(summary, block, at) if row.metric in metrics]
            for at in range(len(block.capacities))
        ]
        heads = [column_lines(summary.columns[at]) for at in columns_of(summary, block)]
        if console.is_terminal:
            _print_metrics(block, heads, sections, console)
        else:
            _print_policies(block, heads, sections, console)
    notes = legend(summary, is_whole=shown is None)
    if shown is not None:
        notes += matter.folded(summary, shown)
    if notes:
        say(console, "")
    for line in notes:
        say(console, line, "dim")


def _print_policies(
    block: Block,
    heads: Sequence[Sequence[str]],
    sections: Sequence[Sequence[Row]],
    console: Console,
) -> None:
    """Print policies below each other and metrics beside each other, as many as fit."""
    titles = [f"capacity {size(block, at)}" for at in range(len(sections))]
    labels = [" ".join(head) for head in heads]
    first = max(len(text) + 2 for text in (*labels, *titles))
    columns = [
        [row.entries[at].text().translate(signs(console)) for rows in sections
         for row in rows if row.metric == metric for at in range(len(heads))]
        for metric in (row.metric for row in sections[0])
    ]  # fmt: skip
    names = [row.metric for row in sections[0]]
    widths = [max(map(len, (name, *texts))) for name, texts in zip(names, columns, strict=True)]
    for begin, end in pairwise(_cuts(widths, width_of(console) - first)):
        if begin:
            console.print()
        shown = range(begin, end)
        row = "".join(" " * _GAP + names[at].rjust(widths[at]) for at in shown)
        console.print(Text(" " * first + row), soft_wrap=True)
        for section, title in enumerate(titles):
            console.print(Text(title), soft_wrap=True)
            for place, label in enumerate(labels):
                cell = section * len(labels) + place
                texts = (columns[at][cell].rjust(widths[at]) for at in shown)
                line = f"  {label}".ljust(first) + "".join(" " * _GAP + text for text in texts)
                console.print(Text(line), soft_wrap=True)


def _print_metrics(
    block: Block,
    heads: Sequence[Sequence[str]],
    sections: Sequence[Sequence[Row]],
    console: Console,
) -> None:
    """Print metrics below each other, in as many tables as the width asks for.

    Before a table is cut its numbers are set tighter, if that is enough.
    """
    entries = [[row.entries[at] for rows in sections for row in rows] for at in range(len(heads))]
    names = [[row.metric for row in rows] for rows in sections]
    titles = [f"capacity {size(block, at)}" for at in range(len(sections))]
    first = max(map(len, (*titles, *(name for of in names for name in of))))

    texts = [_aligned(column, signs(console)) for column in entries]
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
        table = _table(titles, names, heads[begin:end], texts[begin:end])
        lines = console.render(table, console.options.update(width=full))
        console.print(Segments(lines), soft_wrap=True)


def _table(
    titles: Sequence[str],
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
    for section, metrics in zip(titles, names, strict=True):
        table.add_row(Text(section, style="bold"))
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
