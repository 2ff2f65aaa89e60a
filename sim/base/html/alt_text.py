"""Alternative texts of plots: what is drawn, in words, with the numbers that matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sim.base.text import printable

MAX_SERIES = 8
"""Series that a text describes; it counts the others."""
MAX_POINTS = 3
"""Points of a series of few points that a text names one by one."""

MANY_POINTS = 20
"""Points from which on the ends of a series do not matter."""

Trace = Mapping[str, Any]


def alt_text(figure: Mapping[str, Any]) -> str:
    """Describe a plot in plain data (plotly's ``data`` and ``layout``) in a few sentences."""
    traces, layout = figure["data"], figure["layout"]
    if not traces:
        return "An empty plot."
    if any("base" in trace for trace in traces):
        return _gantt(traces)
    y, x = (_title(layout, axis) for axis in ("yaxis", "xaxis"))
    is_share = "share" in y
    axes = f"{f' of {y}' if y else ''}{f' by {x}' if x else ''}"
    kinds = {"bar": "Bars", "box": "Boxes", "pie": "Pie", "heatmap": "Heat map"}
    kind = kinds.get(traces[0].get("type", ""), "Curves")
    series = [_series(trace, is_share=is_share) for trace in traces[:MAX_SERIES]]
    left = len(traces) - MAX_SERIES
    series += [f"{left} more series"] if left > 0 else []
    return printable(f"{kind}{axes}. {'; '.join(filter(None, series))}.")


def _title(layout: Mapping[str, Any], axis: str) -> str:
    title = layout.get(axis, {}).get("title")
    return str(title.get("text", "")) if isinstance(title, Mapping) else str(title or "")


def _series(trace: Trace, *, is_share: bool) -> str:
    """Describe one series: its points, if few, else its ends and range, or its quantiles."""
    name = str(trace.get("name") or "values")
    if trace.get("type") == "box":
        return _box(name, trace)
    x, y = (list(trace.get(axis) or ()) for axis in "xy")
    # drawn beside its place, a point keeps that as customdata
    places = list((trace.get("text") and trace.get("customdata")) or x)
    if not _numbers(y):
        return name
    if is_share and _numbers(x + y) == x + y and y == sorted(y) and len(x) > 1:
        return f"{name}: {_quantiles(x, y)}"
    texts = trace.get("text")
    n = len(y)
    if isinstance(texts, list | tuple) and len(texts) == n > 0 and "customdata" in trace:
        values = [str(text) for text in texts]
    elif isinstance(texts, list | tuple) and len(texts) == n and trace.get("type") == "bar":
        return f"{name} {', '.join(map(str, texts))}"
    else:
        values = [_number(value) for value in y]
    if n == 1:
        return f"{name} {values[0]} at {_number(places[0])}" if places else f"{name} {values[0]}"
    chosen = range(n) if n <= MAX_POINTS else (0, n - 1)
    points = [f"{values[i]} at {_number(places[i])}" for i in chosen if y[i] is not None]
    if n <= MAX_POINTS:
        return f"{name} {', '.join(points)}"
    low, high = min(_numbers(y)), max(_numbers(y))
    if n > MANY_POINTS:
        middle = sorted(_numbers(y))[len(_numbers(y)) // 2]
        return f"{name} between {_number(low)} and {_number(high)}, median {_number(middle)}"
    return f"{name} from {' to '.join(points)}, between {_number(low)} and {_number(high)}"


def _quantiles(x: Sequence[float], y: Sequence[float]) -> str:
    """Name the places at which a cumulative curve reaches a half and nine tenths."""
    scale = 100.0 if max(_numbers(y)) > 1.5 else 1.0
    words = []
    points = [(a, b / scale) for a, b in zip(x, y, strict=False) if b is not None]
    for share, label in ((0.5, "half"), (0.9, "90 %")):
        place = next((a for a, b in points if b >= share), None)
        words += [] if place is None else [f"{label} within {_number(place)}"]
    return ", ".join(words)


def _box(name: str, trace: Trace) -> str:
    medians = trace.get("median")
    if medians:
        values = _numbers(list(medians))
        return f"{name}: medians from {_number(min(values))} to {_number(max(values))}"
    values = sorted(_numbers(list(trace.get("y") or trace.get("x") or ())))
    return f"{name}: median {_number(values[len(values) // 2])}" if values else name


def _gantt(traces: Sequence[Trace]) -> str:
    bars = [(b, b + n, y) for t in traces if "base" in t
            for b, n, y in zip(t["base"], t["x"], t["y"], strict=False)]  # fmt: skip
    if not bars:
        return "Gantt chart without bars."
    begin, end = min(bar[0] for bar in bars), max(bar[1] for bar in bars)
    n_lines = len({bar[2] for bar in bars})
    span = f"from {_number(begin)} to {_number(end)}"
    return f"Gantt chart of {len(bars)} bars on {n_lines} lines, {span}."


def _numbers(values: Sequence[Any]) -> list[float]:
    return [v for v in values if isinstance(v, int | float) and math.isfinite(v)]


def _number(value: Any) -> str:
    """Write a number with three digits; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
