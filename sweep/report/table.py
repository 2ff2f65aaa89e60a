"""The tables of a sweep: their rows as text, and all of them as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sweep.stats import MIN_PAIRS
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
        entries = []
        for column in columns:
            where = (capacity, column, at)
            mean, half = format_value(metric, float(block.mean[where]), float(block.half[where]))
            planned, failed = block.n_planned[capacity, column], block.n_failed[capacity, column]
            if not mean:
                mean = FAILED if failed and failed == planned else ABSENT
            is_fewer = 0 < block.n[where] < planned
            entries.append(Entry(mean, half, bool(block.best[where]), bool(is_fewer)))
        rows.append(Row(metric, style(metric), tuple(entries)))
    return rows


def headline(summary: Summary) -> list[str]:
    """Say what is compared, in one to three lines: the grid, the cells, the failures."""
    policies = ", ".join(column.label for column in summary.columns)
    traces = dict.fromkeys(block.trace for block in summary.blocks)
    seeds = len(summary.seeds)
    lines = [
        f"{policies} on {', '.join(traces)}",
        f"capacity {', '.join(text(c) for c in summary.capacities)}"
        f" · {seeds} seed{'s' * (seeds != 1)}{_same(summary)}"
        f" · {summary.n_cells} cell{'s' * (summary.n_cells != 1)}"
        + (f" · baseline {summary.baseline}" if summary.baseline else ""),
    ]
    if summary.failures:
        lines.append(f"{len(summary.failures)} of {summary.n_cells} cells failed")
    return lines


def _same(summary: Summary) -> str:
    """Say where seeds change nothing."""
    if len(summary.seeds) > 1:
        return ", all of which gave the same: one is enough" if summary.is_same else ""
    return ", as no seed changes anything" if summary.is_fixed else ""


def legend(summary: Summary, best: str = BEST, is_whole: bool = True) -> list[str]:
    """Say what the marks in the tables mean, those that can occur; of all metrics, what lacks."""
    if not summary.metrics:
        return []
    seeds = len(summary.seeds)
    words = []
    if seeds > 1 and not summary.is_same:
        words.append(f"mean ± half-width of the 95% confidence interval over {seeds} seeds")
    tables = ((block, at) for block in summary.blocks for at in range(len(block.capacities)))
    rows = (row for block, at in tables for row in rows_of(summary, block, at))
    if any(entry.is_best for row in rows for entry in row.entries):
        tells = ", and what no test tells from it" if seeds >= MIN_PAIRS else ", not tested"
        is_exact = summary.is_same or (seeds == 1 and summary.is_fixed)
        words.append(f"{best}: the best" + ("" if is_exact else f" mean{tells}"))
    if summary.failures and seeds > 1:
        words.append(f"{FEWER}: fewer seeds, some failed")
    lines = ["; ".join(words)] if words else []
    if summary.unavailable and is_whole:
        lines.append(f"not available in this sweep: {', '.join(summary.unavailable)}")
    return lines


def column_lines(column: Column) -> list[str]:
    """Heading of a column: the policy, what tells its variants apart, `BASELINE`."""
    return [*column.words, *([BASELINE] if column.is_baseline else [])]


def size(block: Block, capacity: int) -> str:
    """Write the block's capacity number `capacity`, and how large that is if it is known."""
    machines = block.machines[capacity]
    return shortest(block.capacities[capacity]) + (f" ({machines})" if machines else "")


def piped(texts: Sequence[str]) -> str:
    """Write a row of a Markdown table; its cells are `escaped`."""
    return f"| {' | '.join(texts)} |"


def escaped(text: str, *more: str) -> str:
    """Take the meaning in Markdown from a text's signs, and from some `more`."""
    for sign in ("\\", "|", "*", "_", "<", "`", *more):
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split())


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the same tables as Markdown, a block's heading at `level`."""
    lines = [escaped(line) + "  " for line in headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {escaped(block.title)}"]
        columns = columns_of(summary, block)
        heads = [" ".join(column_lines(summary.columns[at])) for at in columns]
        for number in range(len(block.capacities)):
            lines += ["", f"{'#' * (level + 1)} Capacity {size(block, number)}", ""]
            lines.append(piped(["metric", *map(escaped, heads)]))
            lines.append(piped(["---", *(["---:"] * len(columns))]))
            lines += [
                piped([f"`{row.metric}`", *map(_markdown_entry, row.entries)])
                for row in rows_of(summary, block, number)
            ]
    below = [escaped(line) + "  " for line in legend(summary, best="bold")]
    return "\n".join([*lines, "", *below]).rstrip() + "\n"


def _markdown_entry(entry: Entry) -> str:
    text = escaped(entry.text().replace(BEST, ""))
    return f"**{text}**" if entry.is_best else text
