"""Tables of a sweep's means, with the heading above and the legend below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sweep.report.table_model import BEST, Cell, Group, TableModel, escape_markdown
from sweep.report.table_model import to_markdown as table_to_markdown
from sweep.stats import MIN_PAIRS
from sweep.stats.arrange import Column
from sweep.stats.cell_columns import text
from sweep.stats.done_jobs import FAILED as FAILED_JOBS
from sweep.stats.metric_format import format_mean, style
from sweep.stats.summary import Block, Summary

ABSENT, FAILED, FEWER = "–", "failed", "†"
BASELINE, ORACLE = "baseline", "oracle"


def columns_present(summary: Summary, block: Block) -> list[int]:
    """Return the columns (positions in ``summary.columns``) with at least one cell in the block."""
    return [int(column) for column in np.flatnonzero(block.n_planned.sum(axis=0))]


def build_table(
    summary: Summary, block: Block, metrics: Sequence[str] | None = None, *, by_policy: bool = False
) -> TableModel:
    """Build the table of a block: a row a metric, or a row a policy if `by_policy`."""
    chosen = summary.metrics if metrics is None else metrics
    columns = columns_present(summary, block)
    heads = [tuple(column_lines(summary.columns[column])) for column in columns]
    groups = []
    for capacity in range(len(block.capacities)):
        cells = [
            [_cell(summary, block, capacity, column, name) for column in columns] for name in chosen
        ]
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
    index = (capacity, column, summary.metrics.index(metric))
    mean, spread = format_mean(metric, float(block.mean[index]), float(block.half[index]))
    planned, failed = block.n_planned[capacity, column], block.n_failed[capacity, column]
    if not mean:
        is_failed = bool(failed and failed == planned)
        return Cell(FAILED if is_failed else ABSENT, style="failed" * is_failed)
    is_best, is_fewer = bool(block.best[index]), bool(0 < block.n[index] < planned)
    mark = BEST * is_best + FEWER * is_fewer
    return Cell(mean, spread, mark, "best" * is_best)


def headline(summary: Summary, *, with_failures: bool = True, is_short: bool = False) -> list[str]:
    """Describe the sweep in two or three lines: the grid, the cells, the failures.

    In short without what the tables below name.
    """
    policies = ", ".join(column.label for column in summary.columns)
    traces = dict.fromkeys(block.trace for block in summary.blocks)
    counts = (
        f"{_seeds(summary)}{_same(summary)}"
        f" · {summary.n_cells} cell{'s' * (summary.n_cells != 1)}"
        + (f" · baseline {summary.baseline}" if summary.baseline else "")
    )
    lines = [
        f"{policies} on {', '.join(traces)}",
        f"capacity {', '.join(text(c) for c in summary.capacities)} · {counts}",
    ]
    if is_short:
        lines = [counts if len(summary.blocks) > 1 else f"{', '.join(traces)} · {counts}"]
    if summary.failures and with_failures:
        lines.append(f"{summary.n_failed} of {summary.n_cells} cells failed")
    return lines


def _seeds(summary: Summary) -> str:
    """Write the number of seeds, or of a bootstrap's draws."""
    n, noun = len(summary.seeds), "draw" if summary.is_bootstrap else "seed"
    suffix = " of the log (bootstrap)" if summary.is_bootstrap else ""
    return f"{n} {noun}{'s' * (n != 1)}{suffix}"


def _same(summary: Summary) -> str:
    """Remark that seeds change nothing, if so."""
    if len(summary.seeds) > 1:
        return " (all gave the same results: one is enough)" if summary.is_same else ""
    return " (no seed changes anything)" if summary.is_fixed else ""


def legend(
    summary: Summary,
    best: str = BEST,
    shown: Sequence[str] | None = None,
    *,
    is_short: bool = False,
) -> list[str]:
    """Explain the marks that can occur in the tables; without `shown`, list missing metrics.

    In short without the knowledge of policies, the meaning of `ORACLE` and of means of ratios.
    """
    if not summary.metrics:
        return []
    seeds = len(summary.seeds)
    words = []
    if seeds > 1 and not summary.is_same:
        source = f"over {seeds} seeds"
        if summary.is_bootstrap:
            source = f"of another log of this length, by {seeds} draws"
        kind = "95% interval" if is_short else "the 95% confidence interval"
        spread = "±, [ends]:" if is_short else "mean ± half-width, or [ends], of"
        words.append(f"{spread} {kind} {source}")
    if any(block.best.any() for block in summary.blocks):
        is_tested = seeds >= MIN_PAIRS
        test = " and all not significantly different from it" if is_tested else " (not tested)"
        test = " or not told from it" if is_tested and is_short else test
        is_exact = summary.is_same or (seeds == 1 and summary.is_fixed)
        words.append(f"{best}: the best" + ("" if is_exact else f" mean{test}"))
    if summary.failures and seeds > 1:
        words.append(f"{FEWER}: fewer seeds, as some cells failed")
    lines = ["; ".join(words)] if words else []
    if _jobs_fail(summary):
        lines.append(
            "times, waits and gaps are of the jobs done under each policy, which are not the same "
            "where jobs fail: none is marked as best; the verdict is over the jobs done under all"
        )
    if is_short:
        return lines
    lines += knowledge(summary.columns)
    ratios = [name for name in (shown or summary.metrics) if name.startswith("jct_speedup")]
    if ratios and summary.baseline and seeds > 1 and not summary.is_same:
        lines.append(
            f"{', '.join(ratios)}: arithmetic mean of the seeds' ratios; the verdict has their "
            "geometric mean"
        )
    if summary.unavailable and shown is None:
        lines.append(f"not available in this sweep: {', '.join(summary.unavailable)}")
    return lines


def _jobs_fail(summary: Summary) -> bool:
    if FAILED_JOBS not in summary.metrics:
        return False
    index = summary.metrics.index(FAILED_JOBS)
    return any(bool((block.mean[..., index] > 0).any()) for block in summary.blocks)


def knowledge(columns: Sequence[Column]) -> list[str]:
    """Say what each policy knows of durations, and what an oracle is."""
    sources: dict[str, set[str]] = {}  # of each policy, over its variants
    for column in columns:
        sources.setdefault(column.policy, set()).add(column.knows)
    words = []
    for source in ("true", "undeclared", "declared", "learnt", "nothing"):
        names = [
            column.policy if len(sources[column.policy]) == 1 else column.label
            for column in columns
            if column.knows == source
        ]
        words += [f"{source} ({', '.join(dict.fromkeys(names))})"] if names else []
    uses = {column.knows for column in columns} - {"", "nothing"}
    lines = [f"knowledge of durations: {', '.join(words)}"] if uses else []
    if any(column.is_oracle for column in columns):
        lines.append(
            f"{ORACLE}: knows a truth that nobody knows beforehand; it can't be run, and is never "
            "the best"
        )
    return lines


def column_lines(column: Column) -> list[str]:
    """Return the heading of a column: policy, distinguishing parameters, `BASELINE`, `ORACLE`."""
    marks = [BASELINE] * column.is_baseline + [ORACLE] * column.is_oracle
    return [*column.name_parts, *marks]


def capacity_text(block: Block, capacity: int) -> str:
    """Write a capacity of the block, and the cluster's size if it is known."""
    machines = block.machines[capacity]
    return text(block.capacities[capacity]) + (f" ({machines})" if machines else "")


def to_markdown(summary: Summary, level: int = 2) -> str:
    """Write the tables as Markdown, a block's heading at `level`."""
    lines = [escape_markdown(line) + "  " for line in headline(summary)]
    for block in summary.blocks if summary.metrics else ():
        if len(summary.blocks) > 1:
            lines += ["", f"{'#' * level} {escape_markdown(block.title)}"]
        lines += ["", table_to_markdown(build_table(summary, block)).rstrip()]
    below = [escape_markdown(line) + "  " for line in legend(summary, best="bold")]
    return "\n".join([*lines, "", *below]).rstrip() + "\n"
