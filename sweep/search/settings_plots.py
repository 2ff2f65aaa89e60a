"""The plots of a search through parameters: the front, every setting as a line, what mattered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sweep.report.plots import layout
from sweep.report.section import Plot
from sweep.search.scores import is_ratio
from sweep.stats.metric_format import format_value, style

Row = Mapping[str, Any]
Figure = dict[str, Any]

COLOURS = 100
"""Of the plots' traces: numbers that are no policy's, whose box would hide them."""

BEST_SHARE = 10
"""One in so many settings is drawn as good."""

_LEGEND = {"showlegend": True, "legend": {"orientation": "h", "y": 1.15}}


def plots(
    rows: Sequence[Row], shares: Sequence[Row], goal: Mapping[str, Any], where: str
) -> list[Plot]:
    """Draw one search: its settings, the default first, and its parameters' importance."""
    known = [row for row in rows if all(math.isfinite(one["mean"]) for one in row["metrics"])]
    tail = f", {where}" if where else ""
    policy, metrics = rows[0]["policy"], [one["metric"] for one in rows[0]["metrics"]]
    drawn = []
    if len(metrics) > 1:
        note = "as it would be on all seeds; those of few seeds are less sure"
        drawn.append(Plot(f"{policy}: the front{tail}", _front(known, metrics), note))
    note = f"a line a setting; the best one in {BEST_SHARE} stand out"
    logs = {key.partition(".")[2] for key, of in goal["space"].items() if _is_log(of)}
    drawn.append(Plot(f"{policy}: settings tried{tail}", _parallel(known, metrics, logs), note))
    if shares:
        note = "share of the variance that each parameter makes (fANOVA)"
        drawn.append(Plot(f"{policy}: what mattered{tail}", _importance(shares), note))
    return drawn


def order(row: Row) -> tuple[float, float]:
    """Sort settings: those that met most seeds, the best of them first."""
    first = row["metrics"][0]
    sign = 1.0 if style(first["metric"]).better == "lower" else -1.0
    mean = sign * first["mean"]
    return -row["seeds"], mean if math.isfinite(mean) else math.inf


def values_of(row: Row) -> str:
    """Write a setting, such as ``m=0.2 rp=0.8``."""
    return " ".join(f"{one['parameter']}={one['value'] or 'null'}" for one in row["values"])


def _is_log(span: Any) -> bool:
    return isinstance(span, Mapping) and bool(span.get("is_log"))


def _level(row: Row, at: int, default: Row) -> float:
    """Return a metric as it would be on all seeds: the default's, times or plus what was gained."""
    one, base = row["metrics"][at], default["metrics"][at]
    look = style(one["metric"])
    if not is_ratio(one["metric"]):
        level = base["mean"] + one["gain"]
    elif look.better == "higher":
        level = base["mean"] * one["gain"]
    else:
        level = base["mean"] / one["gain"]
    return float(f"{(100.0 if look.kind == 'percent' else 1.0) * level:.6g}")


def _front(rows: Sequence[Row], metrics: Sequence[str]) -> Figure:
    """Draw one metric against the other; which settings are on the front."""
    kinds = {"tried": "", "front": "front", "default": "default"}
    data = []
    for number, (name, role) in enumerate(kinds.items()):
        chosen = [row for row in rows if row["role"] == role]
        chosen.sort(key=lambda row: _level(row, 0, rows[0]))
        is_small = role == ""
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if role == "front" else "markers",
                "name": name,
                "meta": COLOURS + number,
                "x": [_level(row, 0, rows[0]) for row in chosen],
                "y": [_level(row, 1, rows[0]) for row in chosen],
                "text": [f"{values_of(row)} ({row['seeds']} seeds)" for row in chosen],
                "marker": {"size": 5 if is_small else 9, "opacity": 0.5 if is_small else 1.0},
                "line": {"width": 1.5, "dash": "dot"},
                "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>",
            }
        )
    x, y = (f"{style(name).label}, {style(name).unit}".rstrip(", ") for name in metrics[:2])
    axes = layout({"title": {"text": x}}, {"title": {"text": y}, "type": "linear"})
    return {"data": data, "layout": axes | _LEGEND}


def _parallel(rows: Sequence[Row], metrics: Sequence[str], logs: set[str]) -> Figure:
    """Draw each setting as a line through its values, each parameter an upright axis."""
    names = [one["parameter"] for one in rows[0]["values"]]
    points = {
        row["number"]: [
            *(one["value"] for one in row["values"]),
            *(_level(row, at, rows[0]) for at in range(len(metrics))),
        ]
        for row in rows
    }
    upright = [
        [values[at] for values in points.values()] for at in range(len(names) + len(metrics))
    ]
    axes = [_axis(v, name in logs) for name, v in zip([*names, *metrics], upright, strict=True)]
    n_best = max(1, len(rows) // BEST_SHARE)
    good = {row["number"] for row in sorted(rows, key=order)[:n_best]}
    good |= {row["number"] for row in rows if row["role"] in ("best", "front")}
    others = [row for row in rows if row["role"] != "default"]
    groups = {
        "others": [row for row in others if row["number"] not in good],
        "the best": [row for row in others if row["number"] in good],
        "default": [row for row in rows if row["role"] == "default"],
    }
    data = []
    for number, (name, members) in enumerate(groups.items()):
        x: list[float | None] = []
        y: list[float | None] = []
        texts: list[str | None] = []
        for row in members:
            at = points[row["number"]]
            x += [*map(float, range(len(at))), None]
            y += [*(round(axis[v], 4) for axis, v in zip(axes, at, strict=True)), None]
            texts += [*([f"{values_of(row)}: {_means(row)}"] * len(at)), None]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "meta": COLOURS + number,
                "x": x,
                "y": y,
                "text": texts,
                "hovertemplate": "%{text}<extra></extra>",
                "opacity": 0.35 if name == "others" else 1.0,
                "line": {"width": 1 if name == "others" else 2.2},
                "marker": {},
            }
        )
    labels = [*names, *(style(name).label for name in metrics)]
    x_axis = {
        "tickvals": list(range(len(labels))),
        "ticktext": [f"{name}<br>{_ends(a)}" for name, a in zip(labels, axes, strict=True)],
        "range": [-0.3, len(labels) - 0.7],
    }
    drawn = layout(x_axis, {"visible": False, "range": [-0.05, 1.05], "type": "linear"})
    stroke = {"width": 1, "color": "gray"}
    drawn["shapes"] = [
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": stroke}
        for at in range(len(labels))
    ]
    return {"data": data, "layout": drawn | _LEGEND}


def _importance(shares: Sequence[Row]) -> Figure:
    """Draw how much each parameter matters for each metric."""
    data = []
    metrics = dict.fromkeys(share["metric"] for share in shares)
    for number, metric in enumerate(metrics):
        of_metric = [share for share in shares if share["metric"] == metric]
        of_metric.sort(key=lambda share: share["importance"])
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": style(metric).label,
                "meta": COLOURS + number,
                "x": [round(100 * share["importance"], 1) for share in of_metric],
                "y": [share["parameter"] for share in of_metric],
                "hovertemplate": "%{y}: %{x:.0f}%<extra></extra>",
                "marker": {},
            }
        )
    axes = layout({"ticksuffix": "%", "rangemode": "tozero"}, {"type": "category"})
    return {"data": data, "layout": axes | (_LEGEND if len(metrics) > 1 else {})}


def _axis(values: Sequence[Any], is_log: bool) -> dict[Any, float]:
    """Give each value its height: by size, if all are numbers, else in alphabetical order."""
    try:
        sizes = {value: float(value) for value in values}
    except ValueError:
        known = sorted(set(values))
        return {value: at / max(1, len(known) - 1) for at, value in enumerate(known)}
    if is_log:
        sizes = {value: math.log(size) for value, size in sizes.items()}
    low, high = min(sizes.values()), max(sizes.values())
    return {v: (size - low) / (high - low) if high > low else 0.5 for v, size in sizes.items()}


def _ends(axis: Mapping[Any, float]) -> str:
    """Say what stands at the foot and at the head of an axis."""
    low, high = min(axis, key=lambda v: axis[v]), max(axis, key=lambda v: axis[v])
    return " to ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in (low, high))


def _means(row: Row) -> str:
    means = (
        f"{one['metric']} {format_value(one['metric'], one['mean'])[0]}" for one in row["metrics"]
    )
    return ", ".join(means)
