"""The headline table: each policy against the baseline, for terminal, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from rich.console import Console

from sweep.report.console import say
from sweep.report.sheet import Cell, Group, Sheet, escaped, print_sheet
from sweep.report.sheet import to_markdown as written
from sweep.stats import ALPHA, MIN_PAIRS
from sweep.stats.arrange import text
from sweep.stats.contrasts import ALL_TRACES
from sweep.stats.inference import EXACT, FEW, STUDENT
from sweep.stats.metric_format import format_contrast, style

NOT_SIGNIFICANT = "n.s."
ABSENT = "–"


@dataclass(frozen=True)
class Entry:
    """One comparison as text.

    ``side`` is ``better`` or ``worse`` where the difference is significant (or exact), else
    empty; ``mark`` says why not.
    """

    estimate: str
    interval: str
    mark: str
    p: str
    side: str

    def text(self) -> str:
        """Write it on one line, such as ``1.02× [0.97, 1.08] n.s.``."""
        return " ".join(filter(None, (self.estimate, self.interval, self.mark)))


@dataclass(frozen=True)
class Line:
    """A policy at a capacity, an entry a contrast."""

    capacity: float
    policy: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Headline:
    """The table of one trace and settings; ``heads`` are the contrasts in words."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]


def headlines(contrasts: pa.Table | None) -> list[Headline]:
    """Word the comparisons of `contrasts.compare`, a table for each trace and settings."""
    rows = [] if contrasts is None else contrasts.to_pylist()
    return [
        _headline(trace, settings, list(group))
        for (trace, settings), group in groupby(rows, key=lambda r: (r["trace"], r["settings"]))
    ]


def _headline(trace: str, settings: str, rows: Sequence[Mapping[str, Any]]) -> Headline:
    contrasts = list(dict.fromkeys((row["metric"], row["statistic"]) for row in rows))
    most = max(row["n_pairs"] for row in rows)
    all_few = most < MIN_PAIRS and all(row["test"] == FEW for row in rows)
    lines = []
    for (capacity, policy), group in groupby(rows, key=lambda r: (r["capacity"], r["policy"])):
        by_contrast = {
            (row["metric"], row["statistic"]): _entry(row, most, all_few) for row in group
        }
        nothing = Entry(ABSENT, "", "", "", "")
        entries = tuple(by_contrast.get(contrast, nothing) for contrast in contrasts)
        lines.append(Line(capacity, policy, entries))
    title = ", ".join(filter(None, (trace or "all traces together", settings)))
    heads = tuple(_head(*contrast) for contrast in contrasts)
    return Headline(title, heads, tuple(lines), _notes(rows, lines, most, all_few))


def _head(metric: str, statistic: str) -> str:
    label = style(metric).label
    if metric.startswith("jct_speedup"):
        return label
    return f"{label}, {'times better' if statistic == 'ratio' else 'change'}"


def _entry(row: Mapping[str, Any], most: int, all_few: bool) -> Entry:
    metric, statistic, test = row["metric"], row["statistic"], row["test"]
    ends = (row["estimate"], row["low"], row["high"])
    estimate, interval = format_contrast(metric, statistic, *ends)
    p = row["p_holm"]
    marks = []
    if test == EXACT:
        interval = ""
        marks.append(EXACT)
    elif test == FEW:
        marks += [] if all_few else [FEW]
    elif p > ALPHA:
        marks.append(NOT_SIGNIFICANT)
    if row["n_pairs"] < most:
        marks.append(f"n={row['n_pairs']}")
    tells = test == EXACT or (not math.isnan(p) and p <= ALPHA)
    side = _side(metric, statistic, row["estimate"]) if tells else ""
    return Entry(estimate, interval, " ".join(marks), "" if math.isnan(p) else _p(p), side)


def _side(metric: str, statistic: str, estimate: float) -> str:
    better = style(metric).better
    gain = estimate - 1.0 if statistic == "ratio" else estimate
    if statistic != "ratio" and better == "lower":
        gain = -gain
    if gain == 0 or better is None:
        return ""
    return "better" if gain > 0 else "worse"


def _p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _notes(
    rows: Sequence[Mapping[str, Any]], lines: Sequence[Line], most: int, all_few: bool
) -> tuple[str, ...]:
    """Say what the numbers and marks mean; only what occurs."""
    pairs = "(trace, seed) pairs" if rows[0]["trace"] == ALL_TRACES else "seeds"
    if most == 1:
        pairs = pairs.removesuffix("s")
    kinds = {"ratio": "geometric mean of the ratios", "difference": "mean difference"}
    statistics = " or ".join(dict.fromkeys(kinds[row["statistic"]] for row in rows))
    tests = {row["test"] for row in rows}
    notes = [f"{statistics} over {most} {pairs}, paired"]
    if any(entry.interval for line in lines for entry in line.entries):
        notes[0] += " [95% interval]"
    if STUDENT in tests:
        n_tested = sum(not math.isnan(row["p"]) for row in rows)
        notes.append(
            f"{NOT_SIGNIFICANT}: no significant difference at 5% (Student's test, "
            f"Holm's correction over {n_tested} comparison{'s' * (n_tested != 1)})"
        )
    if all_few:
        notes.append(
            f"{most} {pairs}: too few for intervals and tests; {MIN_PAIRS} or more give them"
        )
    elif any(FEW in entry.mark for line in lines for entry in line.entries):
        notes.append(f"{FEW}: fewer than {MIN_PAIRS} pairs, as cells failed")
    if EXACT in tests:
        why = "every seed gave the same difference" if most > 1 else "no seed changes anything"
        notes.append(f"{EXACT}: {why}; there is nothing to test")
    return tuple(notes)


def sheet(headline: Headline, baseline: str) -> Sheet:
    """Make a table: policies below each other, a column a contrast."""
    groups = [
        Group(
            f"capacity {text(capacity)}",
            tuple((line.policy, tuple(map(_cell, line.entries))) for line in lines),
        )
        for capacity, lines in groupby(headline.lines, key=lambda line: line.capacity)
    ]
    heads = tuple((head,) for head in headline.heads)
    return Sheet(heads, tuple(groups), f"against {baseline}", headline.title, "headline")


def _cell(entry: Entry) -> Cell:
    mark = f" {entry.mark}" if entry.mark else ""
    return Cell(entry.estimate, entry.interval, mark, entry.side or "unsure", entry.p)


def print_headlines(headlines: Sequence[Headline], baseline: str, console: Console) -> None:
    """Print each table, and what its marks mean."""
    for number, headline in enumerate(headlines):
        say(console, "")
        if len(headlines) > 1:
            say(console, headline.title, "bold underline")
        print_sheet(sheet(headline, baseline), console)
        if number == len(headlines) - 1 or headlines[number + 1].notes != headline.notes:
            for note in headline.notes:
                say(console, note, "dim")


def to_markdown(headlines: Sequence[Headline], baseline: str, level: int = 2) -> str:
    """Write the same tables as Markdown, with p-values; empty without any."""
    parts = []
    for headline in headlines:
        title = f"Against {baseline}" + (f": {headline.title}" if len(headlines) > 1 else "")
        lines = [f"{'#' * level} {escaped(title)}", "", written(sheet(headline, baseline))]
        lines += [escaped(note, "[") + "  " for note in headline.notes]
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)
