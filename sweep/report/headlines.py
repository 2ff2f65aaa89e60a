"""Headline tables: each policy against the baseline, for terminal, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
from rich.console import Console

from sweep.report.console import print_line
from sweep.report.table_model import Cell, Group, TableModel, escape_markdown, print_model
from sweep.report.table_model import to_markdown as table_to_markdown
from sweep.stats import ALPHA, MIN_PAIRS
from sweep.stats.cell_columns import text
from sweep.stats.contrasts import ALL_TRACES
from sweep.stats.inference import BOOTSTRAP, EXACT, FEW, STUDENT
from sweep.stats.metric_format import format_contrast, p_text, style

NOT_SIGNIFICANT = "n.s."
OTHER_JOBS = "‡"
"""Mark of a comparison whose two numbers are not of the same jobs."""
ABSENT = Cell("–", style="unsure")


@dataclass(frozen=True)
class Headline:
    """Table of one trace and settings, a column a contrast, and the notes on its marks."""

    table: TableModel
    notes: tuple[str, ...]


def headlines(contrasts: pa.Table | None, baseline: str | None = "baseline") -> list[Headline]:
    """Format the comparisons of `contrasts.compare`: a table for each trace and settings."""
    rows = [] if contrasts is None else contrasts.to_pylist()
    return [
        _headline(", ".join(filter(None, (trace or _ALL_TRACES, settings))), list(group), baseline)
        for (trace, settings), group in groupby(rows, key=lambda r: (r["trace"], r["settings"]))
    ]


_ALL_TRACES = "all traces together"


def _headline(title: str, rows: Sequence[Mapping[str, Any]], baseline: str | None) -> Headline:
    contrasts = list(dict.fromkeys((row["metric"], row["statistic"]) for row in rows))
    n_pairs_max = max(row["n_pairs"] for row in rows)
    all_few = n_pairs_max < MIN_PAIRS and all(row["test"] == FEW for row in rows)
    groups = []
    for capacity, at_capacity in groupby(rows, key=lambda row: row["capacity"]):
        lines = []
        for policy, group in groupby(at_capacity, key=lambda row: row["policy"]):
            cells = {(r["metric"], r["statistic"]): _cell(r, n_pairs_max, all_few) for r in group}
            lines.append((policy, tuple(cells.get(contrast, ABSENT) for contrast in contrasts)))
        groups.append(Group(f"capacity {text(capacity)}", tuple(lines)))
    heads = tuple((_head(*contrast),) for contrast in contrasts)
    table = TableModel(heads, tuple(groups), f"against {baseline}", title, "headline")
    return Headline(table, _notes(rows, table, n_pairs_max, all_few))


def _head(metric: str, statistic: str) -> str:
    label = style(metric).label
    if metric.startswith("jct_speedup"):
        return label
    return f"{label}, {'times better' if statistic == 'ratio' else 'change'}"


def _cell(row: Mapping[str, Any], n_pairs_max: int, all_few: bool) -> Cell:
    """Write a comparison; ``better`` or ``worse`` where the difference is significant, or exact."""
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
    if not row.get("same_jobs", True):
        marks.append(OTHER_JOBS)
    if row["n_pairs"] < n_pairs_max:
        marks.append(f"n={row['n_pairs']}")
    tells = row.get("same_jobs", True) and (test == EXACT or (not math.isnan(p) and p <= ALPHA))
    side = _side(metric, statistic, row["estimate"]) if tells else ""
    mark = "".join(f" {mark}" for mark in marks)
    return Cell(estimate, interval, mark, side or "unsure", "" if math.isnan(p) else p_text(p))


def _side(metric: str, statistic: str, estimate: float) -> str:
    better = style(metric).better
    gain = estimate - 1.0 if statistic == "ratio" else estimate
    if statistic != "ratio" and better == "lower":
        gain = -gain
    if gain == 0 or better is None:
        return ""
    return "better" if gain > 0 else "worse"


def _notes(
    rows: Sequence[Mapping[str, Any]], table: TableModel, n_pairs_max: int, all_few: bool
) -> tuple[str, ...]:
    """Explain the numbers and marks that occur."""
    pairs = "(trace, seed) pairs" if rows[0]["trace"] == ALL_TRACES else "seeds"
    if any(row["test"] == BOOTSTRAP for row in rows):
        pairs = pairs.replace("seed", "draw")
    if n_pairs_max == 1:
        pairs = pairs.removesuffix("s")
    kinds = {"ratio": "geometric mean of the ratios", "difference": "mean difference"}
    statistics = " or ".join(dict.fromkeys(kinds[row["statistic"]] for row in rows))
    tests = {row["test"] for row in rows}
    notes = [f"{statistics} over {n_pairs_max} {pairs}, paired"]
    cells = [cell for group in table.groups for _, row_cells in group.rows for cell in row_cells]
    if any(cell.rest for cell in cells):
        notes[0] += " [95% interval]"
    if {STUDENT, BOOTSTRAP} & tests:
        n_tested = sum(not math.isnan(row["p"]) for row in rows)
        notes.append(
            f"{NOT_SIGNIFICANT}: no significant difference at 5% (Student's test, "
            f"Holm's correction over {n_tested} comparison{'s' * (n_tested != 1)})"
        )
    if any(row["p"] <= ALPHA < row["p_holm"] for row in rows):
        notes.append(
            f"{NOT_SIGNIFICANT} beside an interval without 1× or 0: an interval is of its "
            f"comparison alone, which may be chance where there are {n_tested}; a verdict corrects "
            "over the policies at its capacity, and may tell two apart that this table does not"
        )
    if all_few:
        notes.append(
            f"{n_pairs_max} {pairs}: too few for intervals and tests; {MIN_PAIRS} or more give them"
        )
    elif any(FEW in cell.mark for cell in cells):
        notes.append(f"{FEW}: fewer than {MIN_PAIRS} pairs, as cells failed")
    if any(OTHER_JOBS in cell.mark for cell in cells):
        notes.append(f"{OTHER_JOBS}: jobs failed, and each number is of the jobs done")
    if EXACT in tests:
        reason = (
            "every seed gave the same difference" if n_pairs_max > 1 else "no seed changes anything"
        )
        notes.append(f"{EXACT}: {reason}; there is nothing to test")
    return tuple(notes)


def print_headlines(headlines: Sequence[Headline], console: Console) -> None:
    """Print each table and its notes."""
    for number, headline in enumerate(headlines):
        print_line(console, "")
        if len(headlines) > 1:
            print_line(console, headline.table.title, "bold underline")
        print_model(headline.table, console)
        if number == len(headlines) - 1 or headlines[number + 1].notes != headline.notes:
            for note in headline.notes:
                print_line(console, note, "dim")


def to_markdown(headlines: Sequence[Headline], level: int = 2) -> str:
    """Write the same tables as Markdown, with p-values; empty without any."""
    parts = []
    for headline in headlines:
        table = headline.table
        title = table.corner.capitalize() + (f": {table.title}" if len(headlines) > 1 else "")
        lines = [f"{'#' * level} {escape_markdown(title)}", "", table_to_markdown(table)]
        lines += [escape_markdown(note, "[") + "  " for note in headline.notes]
        parts.append("\n".join(lines).rstrip() + "\n")
    return "\n".join(parts)
