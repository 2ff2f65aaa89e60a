"""What a search through parameters found, in words, tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweep.report.section import Section
from sweep.search import settings_plots
from sweep.search.section_builder import Row, SectionPart, build_section
from sweep.search.settings_plots import order, values_of
from sweep.stats.inference import ALPHA
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style

N_SHOWN = 8
"""Settings in the table, if no more are on the front."""


def build(found: pa.Table, importance: pa.Table | None, config: Mapping[str, Any]) -> Section:
    """Word ``settings.parquet`` and ``importance.parquet``."""
    goal, rows = config["goal"], found.to_pylist()
    metrics, shares = list(goal["metrics"]), [] if importance is None else importance.to_pylist()
    worlds = ["policy", "trace", "settings", "capacity"]

    def say(members: list[Row], where: str) -> SectionPart:
        mattered = [one for one in shares if all(one[k] == members[0][k] for k in worlds)]
        header = ["setting", "seeds"]
        for name in metrics:
            header += [name, "in the race", "on fresh seeds"]
        picked = [row for row in members if row["role"]]
        rest = sorted((row for row in members if not row["role"]), key=order)
        shown = [*picked, *rest[: max(0, N_SHOWN - len(picked))]]
        drawn = settings_plots.plots(members, mattered, goal, where)
        return SectionPart(_sentences(members, metrics), header, map(_entries, shown), drawn)

    note = (
        f"{len(rows)} settings tried; half of each batch is dropped after a quarter of "
        f"{goal['seeds']} seeds, half of the rest after half of them. Tested on "
        f"{goal['test_seeds']} other seeds."
    )
    title = f"Parameters that do best in {' and '.join(metrics)}"
    about = Section("settings", title, (), notes=(note,), is_answer=True)
    return build_section(about, rows, worlds, say, always=1)


def _sentences(rows: Sequence[Row], metrics: Sequence[str]) -> list[str]:
    default = f"the default ({values_of(rows[0])})"
    tested = [row for row in rows if row["role"] in ("best", "front") and _is_tested(row)]
    if not tested:
        n = len(rows) - 1
        if all(one["gain"] == _nothing(one["metric"]) for one in _gains(rows)):
            return [f"{n} settings were tried, and make no difference here."]
        return [f"none of {n} settings does better than {default}."]
    fresh = f"on {tested[0]['metrics'][0]['pairs']} seeds that the search has not seen"
    if tested[0]["role"] == "front":
        n = sum(row["role"] == "front" for row in rows)
        has = "has 1 setting" if n == 1 else f"has {n} settings"
        first = f"the front of {' and '.join(metrics)} {has}; against {default}, {fresh}:"
        return [first, *(f"{values_of(row)}: {_and(row)}." for row in tested)]
    (best,) = tested
    return [f"{values_of(best)} does best: {_and(best)}, against {default}, {fresh}."]


def _gains(rows: Sequence[Row]) -> list[Row]:
    """Return all that settings gained in the race; nothing of those that failed."""
    return [one for row in rows for one in row["metrics"] if math.isfinite(one["mean"])]


def _and(row: Row) -> str:
    return ", ".join(map(_tested, row["metrics"]))


def _tested(one: Row) -> str:
    """Say how a tested setting compares, such as ``1.12× [1.05, 1.20] better in mean JCT``."""
    label, by = style(one["metric"]).label, one["estimate"] - _nothing(one["metric"])
    if by == 0:
        return f"as good in {label}"
    words = _contrast(one, one["estimate"], one["low"], one["high"])
    if one["p_holm"] > ALPHA or math.isnan(one["low"]):
        return f"{words} in {label}, which may be chance"
    is_down = is_fraction(one["metric"]) and style(one["metric"]).better == "lower"
    return f"{words} {'better' if (by > 0) != is_down else 'worse'} in {label}"


def _nothing(metric: str) -> float:
    """Return what a setting gains that is as good as the default."""
    return 0.0 if is_fraction(metric) else 1.0


def _contrast(one: Row, *estimate: float) -> str:
    """Write an estimate and its ends, such as ``1.12× [1.05, 1.20]``."""
    statistic = "difference" if is_fraction(one["metric"]) else "ratio"
    return " ".join(filter(None, format_contrast(one["metric"], statistic, *estimate)))


def _entries(row: Row) -> tuple[str, ...]:
    role = f" ({row['role']})" if row["role"] else ""
    entries = [f"{values_of(row)}{role}", f"{row['seeds']}"]
    for one in row["metrics"]:
        race = _contrast(one, one["gain"], math.nan, math.nan)
        fresh = _contrast(one, one["estimate"], one["low"], one["high"])
        entries += [format_value(one["metric"], one["mean"])[0], race, fresh]
    return tuple(entries)


def _is_tested(row: Row) -> bool:
    return any(one["pairs"] for one in row["metrics"])
