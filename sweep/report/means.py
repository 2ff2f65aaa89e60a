"""Flat table of the means over seeds: for pandas, for a spreadsheet, for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sim.base.errors import InputError, unknown
from sweep.report.table import columns_present
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_mean, style
from sweep.stats.summary import Block, Summary

_USUAL = (
    "jct_mean_s",
    "jct_p99_s",
    "jct_speedup_mean",
    "gap_lb_p50",
    "deadlines_missed",
    "utility",
    "value_attained",
)
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "%_&#${}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}

Entry = tuple[Block, int, int]
"""A block, and the indices of a capacity and a column."""


def choose_metrics(summary: Summary, metrics: Sequence[str]) -> list[str]:
    """Return the metrics to show: the given ones, else those of `_USUAL` that exist."""
    for name in metrics:
        if name not in summary.metrics:
            raise InputError(unknown("metric of these cells", name, summary.metrics))
    usual = [name for name in _USUAL if name in summary.metrics]
    return list(metrics) or usual or list(summary.metrics[:5])


def _entries(summary: Summary, policies: Mapping[str, str] | None = None) -> Iterator[Entry]:
    """Yield the places of the table, with policies in their order if it is given."""
    for block in summary.blocks:
        columns = columns_present(summary, block)
        if policies is not None:
            order = [*policies]
            columns = [c for c in columns if summary.columns[c].label in policies]
            columns.sort(key=lambda column: order.index(summary.columns[column].label))
        for capacity in range(len(block.capacities)):
            yield from ((block, capacity, column) for column in columns)


def _labels(summary: Summary, entry: Entry) -> dict[str, Any]:
    block, capacity, column = entry
    return {
        "trace": block.trace,
        **dict(block.settings),
        "capacity": block.capacities[capacity],
        "policy": summary.columns[column].label,
    }


def rows(summary: Summary, metrics: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each trace, capacity and policy: means, half intervals, cells done."""
    table = []
    for entry in _entries(summary):
        row = _labels(summary, entry)
        for name in metrics:
            index = (*entry[1:], summary.metrics.index(name))
            row[name] = float(entry[0].mean[index])
            row[f"{name}_half"] = float(entry[0].half[index])
        row["n_seeds"] = int((entry[0].n_planned - entry[0].n_failed)[entry[1:]])
        table.append(row)
    return table


def to_latex(summary: Summary, metrics: Sequence[str], policies: Mapping[str, str]) -> str:
    """Write the means as a LaTeX table (package booktabs), a rule between capacities.

    Bold entries are the best mean and those that no test tells from it, oracles aside. `policies`
    maps labels of policies, in order, to the names in the table.
    """
    entries = list(_entries(summary, policies))
    labels = list(dict.fromkeys(key for entry in entries for key in _labels(summary, entry)))
    heads = [
        f"{metric_style.label} ({metric_style.unit})"
        if metric_style.unit == "s"
        else metric_style.label
        for metric_style in map(style, metrics)
    ]
    lines = [
        rf"\begin{{tabular}}{{{'l' * len(labels)}{'r' * len(metrics)}}}",
        r"\toprule",
        _line([_escaped(head) for head in (*labels, *heads)]),
    ]
    before: object = None
    for entry in entries:
        row, group = _labels(summary, entry), (id(entry[0]), entry[1])
        row["policy"] = policies[row["policy"]]
        if group != before:
            lines.append(r"\midrule")
            before = group
        named = [_escaped(text(row.get(key))) for key in labels]
        lines.append(_line([*named, *(_entry(summary, entry, name) for name in metrics)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _entry(summary: Summary, entry: Entry, metric: str) -> str:
    block, capacity, column = entry
    index = (capacity, column, summary.metrics.index(metric))
    mean, spread = format_mean(metric, float(block.mean[index]), float(block.half[index]))
    shown = _escaped(" ".join(filter(None, (mean, spread.replace("±", "± ")))) or "–")
    return rf"\textbf{{{shown}}}" if block.best[index] else shown


def _escaped(value: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in value)


def _line(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\"
