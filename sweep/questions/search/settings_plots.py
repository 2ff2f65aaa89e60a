"""Plots of a parameter search: Pareto front, parallel coordinates, parameter importance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweep.questions.search.section_builder import Row
from sweep.report.plots import layout
from sweep.report.section import Plot
from sweep.stats.metric_format import format_value, is_fraction, style

Figure = dict[str, Any]

COLOUR_OFFSET = 100
"""Offset of the traces' colour numbers: a policy's number would tie them to its checkbox."""

BEST_SHARE = 10
"""One in this many settings is highlighted."""

MAX_TICKS = 5
"""Largest number of values of an axis that are all labelled."""


def plots(
    rows: Sequence[Row], shares: Sequence[Row], goal: Mapping[str, Any], where: str
) -> list[Plot]:
    """Draw one search: its settings, the default first, and its parameters' importance."""
    rows = [
        row
        for row in rows
        if all(math.isfinite(metric_row["mean"]) for metric_row in row["metrics"])
    ]
    metrics = [metric_row["metric"] for metric_row in rows[0]["metrics"]]
    names = [metric_row["parameter"] for metric_row in rows[0]["values"]]
    logs = {key.partition(".")[2] for key, span in goal["space"].items() if _is_log(span)}
    levels = [[_level(row, index, rows[0]) for row in rows] for index in range(len(metrics))]
    words = [f"{style(name).label}, {style(name).unit}".rstrip(", ") for name in metrics]
    note_seeds = "estimated for all seeds; less certain for settings run on few"
    drawn = []
    if len(metrics) > 1:
        drawn.append(
            Plot(f"{where}: Pareto front", _scatter(rows, levels[:2], words[:2]), note_seeds)
        )
    values = [row["numbers"][0] for row in rows]
    if len(names) == len(metrics) == 1 and all(map(math.isfinite, values)):
        figure = _scatter(rows, [values, *levels], [names[0], *words], names[0] in logs)
        return [Plot(f"{where}: settings tried", figure, note_seeds)]
    note = f"a line a setting; the best 1 in {BEST_SHARE} highlighted; metrics are best at the top"
    axes = [
        _axis(name, [row["values"][index]["value"] for row in rows], is_log=name in logs)
        for index, name in enumerate(names)
    ] + [
        _axis(style(name).label, level, is_down=style(name).better == "lower")
        for name, level in zip(metrics, levels, strict=True)
    ]
    drawn.append(Plot(f"{where}: settings tried", _parallel(rows, axes), note))
    if shares and len(names) > 1:
        note = "share of the variance due to each parameter (fANOVA)"
        drawn.append(Plot(f"{where}: importance of parameters", _importance(shares), note))
    return drawn


def order(row: Row) -> tuple[float, float]:
    """Return the sort key of a setting: those run on most seeds first, then the best."""
    first = row["metrics"][0]
    sign = 1.0 if style(first["metric"]).better == "lower" else -1.0
    mean = sign * first["mean"]
    return -row["seeds"], mean if math.isfinite(mean) else math.inf


def values_of(row: Row) -> str:
    """Write a setting, such as ``m=0.2 rp=0.8``."""
    return " ".join(
        f"{metric_row['parameter']}={metric_row['value'] or 'null'}" for metric_row in row["values"]
    )


def _is_log(span: Any) -> bool:
    return isinstance(span, Mapping) and bool(span.get("is_log"))


def _level(row: Row, index: int, default: Row) -> float:
    """Estimate a metric on all seeds: the default's value, times or plus the gain."""
    metric_row, default_row = row["metrics"][index], default["metrics"][index]
    metric_style = style(metric_row["metric"])
    if is_fraction(metric_row["metric"]):
        level = default_row["mean"] + metric_row["gain"]
    else:
        level = default_row["mean"] * metric_row["gain"] ** (
            1 if metric_style.better == "higher" else -1
        )
    return float(f"{(100.0 if metric_style.kind == 'percent' else 1.0) * level:.6g}")


def _trace(name: str, number: int, texts: Iterable[str | None], **fields: Any) -> Figure:
    return {
        "type": "scatter",
        "name": name,
        "meta": COLOUR_OFFSET + number,
        "text": list(texts),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {},
        **fields,
    }


def _scatter(
    rows: Sequence[Row],
    columns: Sequence[Sequence[float]],
    words: Sequence[str],
    is_log: bool = False,
) -> Figure:
    """Draw two values of each setting as a scatter plot; mark the best settings."""
    kinds = {"tried": ("",), "best": ("best", "front"), "default": ("default",)}
    data = []
    for number, (name, roles) in enumerate(kinds.items()):
        chosen = sorted(
            (*point, f"{values_of(row)} ({row['seeds']} seeds): {_means(row)}")
            for row, *point in zip(rows, *columns, strict=True)
            if row["role"] in roles
        )
        x, y, texts = zip(*chosen, strict=True) if chosen else ((), (), ())
        symbol = ("circle", "diamond", "square")[number]
        fields: Figure = {"mode": "lines+markers", "marker": {"size": 10, "symbol": symbol}}
        if name == "tried":
            fields = {"mode": "markers", "marker": {"size": 6}, "opacity": 0.5}
        line = {"width": 1.5, "dash": "dot"}
        data.append(_trace(name, number, texts, x=x, y=y, line=line, **fields))
    x_axis = {"title": {"text": words[0]}, "type": "log" if is_log else "linear"}
    axes = layout(x_axis, {"title": {"text": words[1]}, "type": "linear"})
    return {"data": data, "layout": axes | {"showlegend": True}}


@dataclass(frozen=True)
class _Axis:
    """A vertical axis: the height of each setting on it, and its tick labels."""

    name: str
    heights: list[float]
    ticks: dict[str, float]


def _axis(
    name: str, values: Sequence[Any], *, is_log: bool = False, is_down: bool = False
) -> _Axis:
    """Build an axis: values by size if all are numbers, else in alphabetical order."""
    distinct, n_max = sorted(set(values)), MAX_TICKS
    try:
        sizes = {value: math.log(float(value)) if is_log else float(value) for value in distinct}
    except ValueError:
        sizes, n_max = (
            {value: float(position) for position, value in enumerate(distinct)},
            len(distinct),
        )
    low, high = min(sizes.values()), max(sizes.values())
    heights = {v: (size - low) / (high - low) if high > low else 0.5 for v, size in sizes.items()}
    if is_down:
        heights = {value: 1.0 - height for value, height in heights.items()}
    ticks = {_short(value): height for value, height in heights.items()}
    if len(distinct) > n_max:
        middle = math.exp((low + high) / 2) if is_log else (low + high) / 2
        ticks = {label: position for label, position in ticks.items() if position in (0.0, 1.0)}
        ticks |= {_short(float(f"{middle:.3g}")): 0.5}
    return _Axis(name, [round(heights[value], 4) for value in values], ticks)


def _short(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _parallel(rows: Sequence[Row], axes: Sequence[_Axis]) -> Figure:
    """Draw parallel coordinates: a line a setting, a vertical axis a parameter."""
    n_best = max(1, len(rows) // BEST_SHARE)
    best_numbers = {row["number"] for row in sorted(rows, key=order)[:n_best]}
    kinds: dict[str, list[int]] = {"others": [], "the best": [], "default": []}
    for index, row in enumerate(rows):
        is_good = row["number"] in best_numbers or row["role"] in ("best", "front")
        name = "the best" if is_good else "others"
        kinds["default" if row["role"] == "default" else name].append(index)
    places = [*map(float, range(len(axes))), None]  # None: a gap between two lines
    data = []
    for number, (name, members) in enumerate(kinds.items()):
        lines = [[*(axis.heights[index] for axis in axes), None] for index in members]
        words = [f"{values_of(rows[index])}: {_means(rows[index])}" for index in members]
        width = 1.0 if name == "others" else 2.5
        data.append(
            _trace(
                name,
                number,
                [word for word in words for _ in places],
                mode="lines",
                x=places * len(members),
                y=[height for line in lines for height in line],
                opacity=0.35 if name == "others" else 1.0,
                line={"width": width, "dash": "dash" if name == "default" else "solid"},
            )
        )
    drawn = layout(
        {
            "tickvals": places[:-1],
            "ticktext": [axis.name for axis in axes],
            "range": [-0.15, len(axes) - 0.45],
            "ticklabeloverflow": "allow",
            "side": "top",
            "showline": False,
        },
        {"visible": False, "range": [-0.06, 1.06], "type": "linear"},
    )
    stroke = {"width": 1, "color": "gray"}
    drawn["shapes"] = [
        {"type": "line", "x0": index, "x1": index, "y0": 0, "y1": 1, "line": stroke}
        for index in places[:-1]
    ]
    beside = {"showarrow": False, "xanchor": "left", "font": {"size": 11}}
    drawn["annotations"] = [
        {"x": index, "y": height, "text": label, **beside}
        for index, axis in zip(places, axes, strict=False)
        for label, height in axis.ticks.items()
    ]
    return {"data": data, "layout": drawn | {"showlegend": True}}


def _importance(shares: Sequence[Row]) -> Figure:
    """Draw the importance of each parameter for each metric."""
    data = []
    for number, metric in enumerate(dict.fromkeys(share["metric"] for share in shares)):
        metric_shares = [share for share in shares if share["metric"] == metric]
        metric_shares.sort(key=lambda share: share["importance"])
        x = [round(100 * share["importance"], 1) for share in metric_shares]
        name = style(metric).label
        fields = {"orientation": "h", "hovertemplate": "%{y}: %{x:.0f}%<extra></extra>"}
        trace = _trace(
            name, number, (), x=x, y=[share["parameter"] for share in metric_shares], **fields
        )
        data.append(trace | {"type": "bar"})
    axes = layout({"ticksuffix": "%", "rangemode": "tozero"}, {"type": "category"})
    return {"data": data, "layout": axes | {"showlegend": len(data) > 1, "bargap": 0.5}}


def _means(row: Row) -> str:
    return ", ".join(
        f"{metric_row['metric']} {format_value(metric_row['metric'], metric_row['mean'])[0]}"
        for metric_row in row["metrics"]
    )
