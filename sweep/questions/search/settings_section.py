"""Report section of a parameter search: sentences, tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweep.questions.search import settings_plots
from sweep.questions.search.section_builder import Row, SectionPart, build_section
from sweep.questions.search.settings_plots import order, values_of
from sweep.report.section import Section
from sweep.stats.inference import ALPHA, ROUNDING
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style

N_SHOWN = 8
"""Number of settings in the table, more only if the front has more."""


def build(settings: pa.Table, importance: pa.Table | None, config: Mapping[str, Any]) -> Section:
    """Build the section of ``settings.parquet`` and ``importance.parquet``."""
    goal, rows = config["goal"], settings.to_pylist()
    metrics, shares = list(goal["metrics"]), [] if importance is None else importance.to_pylist()
    group_keys = ["policy", "trace", "settings", "capacity"]

    def build_part(members: list[Row], where: str) -> SectionPart:
        group_shares = [
            metric_row
            for metric_row in shares
            if all(metric_row[k] == members[0][k] for k in group_keys)
        ]
        header = ["setting", "seeds"]
        for name in metrics:
            header += [name, "gain in the search", "gain on test seeds"]
        picked = [row for row in members if row["role"]]
        unmarked = sorted((row for row in members if not row["role"]), key=order)
        shown = [*picked, *unmarked[: max(0, N_SHOWN - len(picked))]]
        plots = settings_plots.plots(members, group_shares, goal, where)
        return SectionPart(_sentences(members, metrics), header, map(_entries, shown), plots)

    note = (
        f"{len(rows)} settings tried; half of each batch is dropped after a quarter of "
        f"{goal['seeds']} seeds, half of the rest after half of them. Tested on "
        f"{goal['test_seeds']} other seeds."
    )
    title = f"Best parameters for {' and '.join(metrics)}"
    question = "Which settings of {policies} do best for {jobs}?"
    template = Section("settings", title, (), notes=(note,), is_answer=True, question=question)
    return build_section(template, rows, group_keys, build_part, n_always=1)


def _sentences(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    default = f"the default ({values_of(rows[0])})"
    tested = [row for row in rows if row["role"] in ("best", "front") and _is_tested(row)]
    if not tested:
        n = len(rows) - 1
        if all(metric_row["gain"] == _no_gain(metric_row["metric"]) for metric_row in _gains(rows)):
            return [f"{n} settings were tried, and make no difference here."]
        return [f"none of the {n} settings tried is better than {default}."]
    compared = f"compared with {default} on {tested[0]['metrics'][0]['pairs']} seeds that the "
    compared += "search did not use"
    if tested[0]["role"] == "front":
        n = sum(row["role"] == "front" for row in rows)
        has = "has 1 setting" if n == 1 else f"has {n} settings"
        first = f"the Pareto front of {' and '.join(metrics)} {has}; {compared}:"
        return [first, *(f"{values_of(row)}: {_metrics_text(row)}." for row in tested)]
    (best,) = tested
    name, result = values_of(best), f"{_metrics_text(best)}, {compared}"
    changes = [_change(metric_row) for metric_row in best["metrics"]]
    if "better" in changes:
        return [f"{name} is best: {result}."]
    claim = "is better for sure" if any(changes) else "makes a difference"
    return [f"no setting tried {claim}: the first of the search, {name}, has {result}."]


def _gains(rows: Sequence[Row]) -> list[Row]:
    """Return the metrics of all settings, without those of failed settings."""
    return [
        metric_row
        for row in rows
        for metric_row in row["metrics"]
        if math.isfinite(metric_row["mean"])
    ]


def _metrics_text(row: Row) -> str:
    return ", ".join(map(_tested, row["metrics"]))


def _tested(metric_row: Row) -> str:
    """Write the result of a tested setting, such as ``1.12× [1.05, 1.20] better in mean JCT``."""
    label, change = style(metric_row["metric"]).label, _change(metric_row)
    if not change:
        return f"equal {label}"
    words = _contrast(metric_row, metric_row["estimate"], metric_row["low"], metric_row["high"])
    if change == CHANCE:
        return f"{words} in {label}, which may be chance"
    return f"{words} {change} in {label}"


CHANCE = "chance"


def _change(metric_row: Row) -> str:
    """Judge a tested metric: ``better``, ``worse``, `CHANCE`, or empty where nothing differs."""
    gain = metric_row["estimate"] - _no_gain(metric_row["metric"])
    if abs(gain) <= ROUNDING:
        return ""
    is_exact = metric_row["low"] == metric_row["high"]
    if math.isnan(metric_row["low"]) or not (is_exact or metric_row["p_holm"] <= ALPHA):
        return CHANCE
    is_down = is_fraction(metric_row["metric"]) and style(metric_row["metric"]).better == "lower"
    return "better" if (gain > 0) != is_down else "worse"


def _no_gain(metric: str) -> float:
    """Return the gain of a setting that is as good as the default."""
    return 0.0 if is_fraction(metric) else 1.0


def _contrast(metric_row: Row, *estimate: float) -> str:
    """Write an estimate and its ends, such as ``1.12× [1.05, 1.20]``."""
    statistic = "difference" if is_fraction(metric_row["metric"]) else "ratio"
    return " ".join(filter(None, format_contrast(metric_row["metric"], statistic, *estimate)))


def _entries(row: Row) -> tuple[str, ...]:
    role = f" ({row['role']})" if row["role"] else ""
    entries = [f"{values_of(row)}{role}", f"{row['seeds']}"]
    for metric_row in row["metrics"]:
        race = _contrast(metric_row, metric_row["gain"], math.nan, math.nan)
        fresh = _contrast(metric_row, metric_row["estimate"], metric_row["low"], metric_row["high"])
        entries += [format_value(metric_row["metric"], metric_row["mean"])[0], race, fresh]
    return tuple(entries)


def _is_tested(row: Row) -> bool:
    return any(metric_row["pairs"] for metric_row in row["metrics"])
