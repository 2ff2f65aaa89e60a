"""The tables of a sweep's means, and what is said above and below them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sweep.report.table_model import BEST, Cell, Group, TableModel, escape_markdown
from sweep.report.table_model import to_markdown as written
from sweep.stats import MIN_PAIRS
from sweep.stats.arrange import Column
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_value, style
from sweep.stats.summary import Block, Summary

ABSENT, FAILED, FEWER = "–", "failed", "†"
BASELINE = "baseline"


def columns_present(summary: Summary, block: Block) -> list[int]:
    """Columns (positions in ``summary.columns``) that have at least one cell in the block."""
    return [int(at) for at in np.flatnonzero(block.n_planned.sum(axis=0))]


def build_table(
    summary: Summary, block: Block, metrics: Sequence[str] | None = None, *, by_policy: bool = False
) -> TableModel:
    """Make the table of a block: metrics below each other, or policies if `by_policy`."""
    chosen = summary.metrics if metrics is None else metrics
    columns = columns_present(summary, block)
    heads = [tuple(column_lines(summary.columns[at])) for at in columns]
    groups = []
    for capacity in range(len(block.capacities)):
        cells = [[_cell(summary, block, capacity, at, name) for at in columns] for name in chosen]
        if by_policy:
            labels, cells = [" ".join(head) for head in heads], [list(row) for row in zip(*cells)]  # noqa: B905
        else:
            labels = list(chosen)
        rows = tuple((label, tuple(row)) for label, row in zip(labels, cells, strict=True))
        groups.append(Group(f"capacity {capacity_text(block, capacity)}", rows))
    if by_policy:
        return TableModel(tuple((name,) for name in chosen), tuple(groups), title=block.title)
    codes = {name: style(name).meaning or style(name).label for name in chosen}
    return TableModel(tuple(heads), tuple(groups), "metric", block.title, codes=codes)


def _cell(summary: Summary, block: Block, capacity: int, column: int, metric: str) -> Cell:
    where = (capacity, column, summary.metrics.index(metric))
    mean, half = format_value(metric, float(block.mean[where]), float(block.half[where]))
    planned, failed = block.n_planned[capacity, column], block.n_failed[capacity, column]
    if not mean:
        is_failed = bool(failed and failed == planned)
        return Cell(FAILED if is_failed else ABSENT, look="failed" * is_failed)
    is_best, is_fewer = bool(block.best[where]), bool(0 < block.n[where] < planned)
    mark = BEST * is_best + FEWER * is_fewer
    return Cell(mean, f"±{half}" if half else "", mark, "best" * is_best)


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
        lines.append(f"{summary.n_failed} of {summary.n_cells} cells failed")
    return lines


def _same(summary: Summary) -> str:
    """Say where seeds change nothing."""
    if len(summary.seeds) > 1:
        return ", all of which gave the same: one is enough" if summary.is_same else ""
    return ", as no seed changes anything" if summary.is_fixed else ""


def legend(summary: Summary, best: str = BEST, shown: Sequence[str] | None = None) -> list[str]:
    """Say what the marks in the tables mean, those that can occur; of all metrics, what lacks."""
    if not summary.metrics:
        return []
    seeds = len(summary.seeds)
    words = []
    if seeds > 1 and not summary.is_same:
        words.append(f"mean ± half-width of the 95% confidence interval over {seeds} seeds")
    if any(block.best.any() for block in summary.blocks):
        tells = ", and what no test tells from it" if seeds >= MIN_PAIRS else ", not tested"
        is_exact = summary.is_same or (seeds == 1 and summary.is_fixed)
        words.append(f"{best}: the best" + ("" if is_exact else f" mean{tells}"))
    if summary.failures and seeds > 1:
        words.append(f"{FEWER}: fewer seeds, some failed")
    lines = ["; ".join(words)] if words else []
    ratios = [name for name in (shown or summary.metrics) if name.startswith("jct_speedup")]
    if ratios and summary.baseline and seeds > 1 and not summary.is_same:
        lines.append(
            f"{', '.join(ratios)}: the arithmetic mean of the seeds' ratios; the verdict's × is "
            "their geometric mean"
        )
    if summary.unavailable and shown is None:
        lines.append(f"not available in this sweep: {', '.join(summary.unavailable)}")
    return lines


def column_lines(column: Column) -> list[str]:
    """Heading of a column: the policy, what tells its variants apart, `BASELINE`."""
    return [*column.name_parts, *([BASELINE] if column.is_baseline else [])]


def capacity_text(block: Block, capacity: int) -> str:
    """Write the block's capacity number `capacity`, and how large that is if it is known."""
    machines = block.machines[capacity]
    return text(block.capacities[capacity]) + (f" ({machines})" if machines else "")


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the same tables as Markdown, a block's heading at `level`."""
    lines = [escape_markdown(line) + "  " for line in headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {escape_markdown(block.title)}"]
        lines += ["", written(build_table(summary, block)).rstrip()]
    below = [escape_markdown(line) + "  " for line in legend(summary, best="bold")]
    return "\n".join([*lines, "", *below]).rstrip() + "\n"
