"""The plots of the report, as plotly figures in plain data: a metric against capacity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sim.base import html
from sweep.report.table_view import columns_of
from sweep.stats.arrange import text
from sweep.stats.metric_format import format_value, style
from sweep.stats.summary import Block, Summary

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TICKS = 8


def figure(summary: Summary, block: Block, metric: str) -> dict[str, Any]:
    """Draw a metric against capacity, one line a policy, with 95 % intervals.

    With one capacity there is nothing to draw a line through: each policy is a bar.
    """
    at = summary.metrics.index(metric)
    look = style(metric)
    scale = 100.0 if look.kind == "percent" else 1.0
    is_line = len(block.capacities) > 1
    data = []
    for column in columns_of(summary, block):
        means = [float(v) for v in block.mean[:, column, at]]
        halves = [float(v) for v in block.half[:, column, at]]
        shown = [format_value(metric, m, h) for m, h in zip(means, halves, strict=True)]
        label = summary.columns[column].label
        trace: dict[str, Any] = {
            "type": "scatter" if is_line else "bar",
            "name": label,
            "meta": column,
            "x": list(block.capacities) if is_line else [label],
            "y": [_finite(mean * scale) for mean in means],
            "text": [mean + (f" ±{half}" if half else "") for mean, half in shown],
            "hovertemplate": f"%{{text}}{'' if is_line else '<extra></extra>'}",
        }
        if any(half > 0 for half in halves):
            array = [_finite(half * scale) for half in halves]
            trace["error_y"] = {"type": "data", "array": array, "thickness": 1, "width": 3}
        if is_line:
            trace |= line(column, summary.columns[column].is_baseline)
        else:
            trace["textposition"] = "none"
        data.append(trace)
    return {"data": data, "layout": _layout(block, look.unit, is_line)}


def curves(findings: pa.Table, n_columns: int) -> dict[str, dict[str, Any]]:
    """Draw the curves that a study found, a plotly figure for each of its figures, by name."""
    drawn: dict[str, dict[str, Any]] = {}
    traces: dict[tuple[str, str], dict[str, Any]] = {}
    for row in findings.to_pylist():
        name, curve = row["figure"], row["curve"]
        if not curve:
            continue
        axes = layout({"title": {"text": row["along"]}}, {"rangemode": "tozero"}, "x unified")
        axes |= {"showlegend": True, "legend": {"orientation": "h", "y": 1.12}}
        data = drawn.setdefault(name, {"data": [], "layout": axes})["data"]
        if (name, curve) not in traces:
            number = n_columns + len(data)
            trace = {"type": "scatter", "mode": "lines", "name": curve, "meta": number}
            dash = ("solid", "dash", "dot", "dashdot")[len(data) % 4]
            trace |= {"line": {"width": 2, "dash": dash}, "marker": {}, "x": [], "y": []}
            traces[name, curve] = trace
            data.append(trace)
        traces[name, curve]["x"].append(row["at"])
        traces[name, curve]["y"].append(_finite(row["ours"]))
    return drawn


def layout(
    x_axis: Mapping[str, Any], y_axis: Mapping[str, Any], hovermode: str = "closest"
) -> dict[str, Any]:
    """Give what every plot has around its data: its axes, and no legend, as the page has one."""
    return {
        "xaxis": {"zeroline": False, **x_axis},
        "yaxis": dict(y_axis),
        "hovermode": hovermode,
        "showlegend": False,
        "margin": {"l": 64, "r": 16, "t": 30, "b": 44},
    }


def line(column: int, is_baseline: bool) -> dict[str, Any]:
    """How a policy is drawn: its dash and its marker; colours are left to the page."""
    dash = "dash" if is_baseline else "solid" if column < html.N_COLOURS else "dot"
    return {
        "mode": "lines+markers",
        "line": {"width": 2, "dash": dash},
        "marker": {"size": 7, "symbol": html.symbol(column)},
    }


def _layout(block: Block, unit: str, is_line: bool) -> dict[str, Any]:
    x: dict[str, Any] = {}
    if is_line:
        x["title"] = {"text": "capacity"}
        x["unifiedhovertitle"] = {"text": "capacity %{x}"}
        if len(block.capacities) <= MAX_TICKS:
            x["tickvals"] = list(block.capacities)
            x["ticktext"] = [text(capacity) for capacity in block.capacities]
    y = {"ticksuffix": unit if unit != "s" else " s", "rangemode": "tozero"}
    return layout(x, y, "x unified" if is_line else "closest")


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
