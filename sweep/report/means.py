"""Means over seeds as one flat table: for pandas, for a spreadsheet, for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.report.table import columns_present
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_value, style
from sweep.stats.summary import Block, Summary

_USUAL = (
    "jct_mean_s",
    "jct_p99_s",
    "jct_speedup_mean",
    "gap_lb_p50",
    "deadlines_missed",
    "value_attained",
)
_SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "%_&#${}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}

Place = tuple[Block, int, int]
"""A block, and which of its capacities and columns."""


def choose_metrics(summary: Summary, metrics: Sequence[str]) -> list[str]:
    """Return the metrics to show: those named, else the usual ones that there are."""
    for name in metrics:
        if name not in summary.metrics:
            raise InputError(unknown("metric of these cells", name, summary.metrics))
    usual = [name for name in _USUAL if name in summary.metrics]
    return list(metrics) or usual or list(summary.metrics[:5])


def _places(summary: Summary) -> Iterator[Place]:
    for block in summary.blocks:
        for capacity in range(len(block.capacities)):
            yield from ((block, capacity, column) for column in columns_present(summary, block))


def _labels(summary: Summary, place: Place) -> dict[str, Any]:
    block, capacity, column = place
    return {
        "trace": block.trace,
        **dict(block.settings),
        "capacity": block.capacities[capacity],
        "policy": summary.columns[column].label,
    }


def rows(summary: Summary, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Give a row a trace, capacity and policy: each mean, half its interval, the cells done."""
    found = []
    for place in _places(summary):
        row = _labels(summary, place)
        for name in metrics:
            where = (*place[1:], summary.metrics.index(name))
            row[name] = float(place[0].mean[where])
            row[f"{name}_half"] = float(place[0].half[where])
        row["n_seeds"] = int((place[0].n_planned - place[0].n_failed)[place[1:]])
        found.append(row)
    return found


def to_latex(summary: Summary, metrics: Sequence[str]) -> str:
    """Write the means as a table for LaTeX (package booktabs), a rule between capacities."""
    labels = list(
        dict.fromkeys(key for place in _places(summary) for key in _labels(summary, place))
    )
    heads = [
        f"{look.label} ({look.unit})" if look.unit == "s" else look.label
        for look in map(style, metrics)
    ]
    lines = [
        rf"\begin{{tabular}}{{{'l' * len(labels)}{'r' * len(metrics)}}}",
        r"\toprule",
        _line([*labels, *heads]),
    ]
    before: object = None
    for place in _places(summary):
        row, world = _labels(summary, place), (id(place[0]), place[1])
        if world != before:
            lines.append(r"\midrule")
            before = world
        shown = [_entry(summary, place, name) for name in metrics]
        lines.append(_line([*(text(row.get(key)) for key in labels), *shown]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _entry(summary: Summary, place: Place, metric: str) -> str:
    block, capacity, column = place
    where = (capacity, column, summary.metrics.index(metric))
    mean, half = format_value(metric, float(block.mean[where]), float(block.half[where]))
    return f"{mean} ± {half}" if half else mean or "–"


def _line(texts: Sequence[str]) -> str:
    return " & ".join("".join(_SIGNS.get(sign, sign) for sign in each) for each in texts) + r" \\"
