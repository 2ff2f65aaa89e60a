"""The plots of a search through parameters: the front, every setting as a line, what mattered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweep.report.plots import layout
from sweep.report.section import Plot
from sweep.search.section_builder import Row
from sweep.stats.metric_format import format_value, is_fraction, style

Figure = dict[str, Any]

COLOURS = 100
"""Of the plots' traces: numbers that are no policy's, whose box would hide them."""

BEST_SHARE = 10
"""One in so many settings is drawn as good."""

MOST_TICKS = 5
"""Values of an axis that are all written beside it."""


def plots(
    rows: Sequence[Row], shares: Sequence[Row], goal: Mapping[str, Any], where: str
) -> list[Plot]:
    """Draw one search: its settings, the default first, and its parameters' importance."""
    rows = [row for row in rows if all(math.isfinite(one["mean"]) for one in row["metrics"])]
    metrics = [one["metric"] for one in rows[0]["metrics"]]
    names = [one["parameter"] for one in rows[0]["values"]]
    logs = {key.partition(".")[2] for key, of in goal["space"].items() if _is_log(of)}
    levels = [[_level(row, at, rows[0]) for row in rows] for at in range(len(metrics))]
    words = [f"{style(name).label}, {style(name).unit}".rstrip(", ") for name in metrics]
    as_if = "as it would be on all seeds; those of few seeds are less sure"
    drawn = []
    if len(metrics) > 1:
        drawn.append(Plot(f"{where}: the front", _scatter(rows, levels[:2], words[:2]), as_if))
    values = [row["numbers"][0] for row in rows]
    if len(names) == len(metrics) == 1 and all(map(math.isfinite, values)):
        figure = _scatter(rows, [values, *levels], [names[0], *words], names[0] in logs)
        return [Plot(f"{where}: settings tried", figure, as_if)]
    note = f"a line a setting; the best one in {BEST_SHARE} stand out; metrics are best at the top"
    axes = [
        _axis(name, [row["values"][at]["value"] for row in rows], is_log=name in logs)
        for at, name in enumerate(names)
    ] + [
        _axis(style(name).label, level, is_down=style(name).better == "lower")
        for name, level in zip(metrics, levels, strict=True)
    ]
    drawn.append(Plot(f"{where}: settings tried", _parallel(rows, axes), note))
    if shares and len(names) > 1:
        note = "share of the variance that each parameter makes (fANOVA)"
        drawn.append(Plot(f"{where}: what mattered", _importance(shares), note))
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
    if is_fraction(one["metric"]):
        level = base["mean"] + one["gain"]
    else:
        level = base["mean"] * one["gain"] ** (1 if look.better == "higher" else -1)
    return float(f"{(100.0 if look.kind == 'percent' else 1.0) * level:.6g}")


def _trace(name: str, number: int, texts: Iterable[str | None], **look: Any) -> Figure:
    return {
        "type": "scatter",
        "name": name,
        "meta": COLOURS + number,
        "text": list(texts),
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {},
        **look,
    }


def _scatter(
    rows: Sequence[Row],
    columns: Sequence[Sequence[float]],
    words: Sequence[str],
    is_log: bool = False,
) -> Figure:
    """Draw one number of each setting against another; which settings are best."""
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
        look: Figure = {"mode": "lines+markers", "marker": {"size": 10, "symbol": symbol}}
        if name == "tried":
            look = {"mode": "markers", "marker": {"size": 6}, "opacity": 0.5}
        line = {"width": 1.5, "dash": "dot"}
        data.append(_trace(name, number, texts, x=x, y=y, line=line, **look))
    x_axis = {"title": {"text": words[0]}, "type": "log" if is_log else "linear"}
    axes = layout(x_axis, {"title": {"text": words[1]}, "type": "linear"})
    return {"data": data, "layout": axes | {"showlegend": True}}


@dataclass(frozen=True)
class _Axis:
    """An upright axis: where each setting stands on it, and what is written beside it."""

    name: str
    heights: list[float]
    ticks: dict[str, float]


def _axis(
    name: str, values: Sequence[Any], *, is_log: bool = False, is_down: bool = False
) -> _Axis:
    """Place values: by size, if all are numbers, else in alphabetical order."""
    known, most = sorted(set(values)), MOST_TICKS
    try:
        sizes = {value: math.log(float(value)) if is_log else float(value) for value in known}
    except ValueError:
        sizes, most = {value: float(at) for at, value in enumerate(known)}, len(known)
    low, high = min(sizes.values()), max(sizes.values())
    heights = {v: (size - low) / (high - low) if high > low else 0.5 for v, size in sizes.items()}
    if is_down:
        heights = {value: 1.0 - height for value, height in heights.items()}
    ticks = {_short(value): height for value, height in heights.items()}
    if len(known) > most:
        middle = math.exp((low + high) / 2) if is_log else (low + high) / 2
        ticks = {label: at for label, at in ticks.items() if at in (0.0, 1.0)}
        ticks |= {_short(float(f"{middle:.3g}")): 0.5}
    return _Axis(name, [round(heights[value], 4) for value in values], ticks)


def _short(value: Any) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _parallel(rows: Sequence[Row], axes: Sequence[_Axis]) -> Figure:
    """Draw each setting as a line through its values, each parameter an upright axis."""
    n_best = max(1, len(rows) // BEST_SHARE)
    good = {row["number"] for row in sorted(rows, key=order)[:n_best]}
    kinds: dict[str, list[int]] = {"others": [], "the best": [], "default": []}
    for at, row in enumerate(rows):
        is_good = row["number"] in good or row["role"] in ("best", "front")
        name = "the best" if is_good else "others"
        kinds["default" if row["role"] == "default" else name].append(at)
    places = [*map(float, range(len(axes))), None]  # between two lines there is a gap
    data = []
    for number, (name, members) in enumerate(kinds.items()):
        lines = [[*(axis.heights[at] for axis in axes), None] for at in members]
        words = [f"{values_of(rows[at])}: {_means(rows[at])}" for at in members]
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
        {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "line": stroke} for at in places[:-1]
    ]
    beside = {"showarrow": False, "xanchor": "left", "font": {"size": 11}}
    drawn["annotations"] = [
        {"x": at, "y": height, "text": label, **beside}
        for at, axis in zip(places, axes, strict=False)
        for label, height in axis.ticks.items()
    ]
    return {"data": data, "layout": drawn | {"showlegend": True}}


def _importance(shares: Sequence[Row]) -> Figure:
    """Draw how much each parameter matters for each metric."""
    data = []
    for number, metric in enumerate(dict.fromkeys(share["metric"] for share in shares)):
        mine = [share for share in shares if share["metric"] == metric]
        mine.sort(key=lambda share: share["importance"])
        x = [round(100 * share["importance"], 1) for share in mine]
        name = style(metric).label
        look = {"orientation": "h", "hovertemplate": "%{y}: %{x:.0f}%<extra></extra>"}
        trace = _trace(name, number, (), x=x, y=[share["parameter"] for share in mine], **look)
        data.append(trace | {"type": "bar"})
    axes = layout({"ticksuffix": "%", "rangemode": "tozero"}, {"type": "category"})
    return {"data": data, "layout": axes | {"showlegend": len(data) > 1, "bargap": 0.5}}


def _means(row: Row) -> str:
    return ", ".join(
        f"{one['metric']} {format_value(one['metric'], one['mean'])[0]}" for one in row["metrics"]
    )
