"""Plots of what-ifs: a metric today and under each change, with the machines that restore it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sweep.questions.search.group_waits import ALL
from sweep.questions.search.section_builder import Row
from sweep.questions.search.waits_section import PLACE
from sweep.report.plots import error_bars, layout
from sweep.report.section import Plot
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import interval_of, style, value_text

TODAY = "today"
WAIT = "wait_mean_s"


def draw(rows: Sequence[Row], groups: Sequence[Row]) -> tuple[Plot, ...]:
    """Draw a bar a change and policy, for each trace and capacity.

    Parameters
    ----------
    rows, groups : sequence of mapping
        Rows of ``what_if.parquet`` and ``what_if_groups.parquet``.
    """
    worlds = groupby(rows, key=lambda row: (row["trace"], row["capacity"]))
    drawn = [(world, list(members)) for world, members in worlds]
    n_traces = len({trace for (trace, _), _ in drawn})
    n_capacities = len({capacity for (_, capacity), _ in drawn})
    plots = []
    for (trace, capacity), members in drawn:
        metric = members[0]["metric"] or WAIT
        places = [trace] * (n_traces > 1) + [f"capacity {text(capacity)}"] * (n_capacities > 1)
        caption = ", ".join([style(metric).label, *places])
        plots.append(Plot(caption, _figure(members, groups, metric)))
    return tuple(plots)


def _figure(rows: Sequence[Row], groups: Sequence[Row], metric: str) -> dict[str, Any]:
    metric_style = style(metric)
    scale = 100.0 if metric_style.kind == "percent" else 1.0
    by_policy: dict[str, list[Row]] = {}
    for row in rows:
        label = " ".join(filter(None, (row["policy"], row["settings"])))
        by_policy.setdefault(label, []).append(row)
    data = []
    for number, (label, members) in enumerate(by_policy.items()):
        values = [row["value"] if row["metric"] else row[metric] for row in members]
        ends = [_ends(row, groups, metric) for row in members]
        data.append(
            {
                "type": "bar",
                "name": label,
                "meta": number,
                "orientation": "h",
                "y": [row["what_if"] or TODAY for row in members],
                "x": [None if value is None else scale * value for value in values],
                "error_x": error_bars(values, ends, scale),
                "text": [
                    "" if value is None else _label(metric, value, row)
                    for value, row in zip(values, members, strict=True)
                ],
                "textposition": "auto",
                "hovertemplate": "%{y}: %{text}",
            }
        )
    suffix = " s" if metric_style.unit == "s" else metric_style.unit
    changes = {"type": "category", "autorange": "reversed", "automargin": True}
    axes = layout({"ticksuffix": suffix, "rangemode": "tozero"}, changes)
    axes["showlegend"] = len(data) > 1
    return {"data": data, "layout": axes}


def _ends(row: Row, groups: Sequence[Row], metric: str) -> tuple[float, float] | None:
    """Return the ends of the 95 % interval of a row's metric; None if it has none."""
    if row["metric"]:
        is_known = row["value"] is not None and row["half"]
        return interval_of(metric, row["value"], row["half"]) if is_known else None
    own = (
        group
        for group in groups
        if group["by"] == ALL
        and group["what_if"] == row["what_if"]
        and all(group[key] == row[key] for key in PLACE)
    )
    group = next(own, None)
    if group is None or group["high"] is None or metric != WAIT:
        return None
    return group["low"], group["high"]


def _label(metric: str, value: float, row: Row) -> str:
    label = value_text(metric, value)
    if row["restored_by"] is None:
        return label
    return f"{label}; {text(round(row['restored_by'], 4))} {row['unit']} restore today's"
