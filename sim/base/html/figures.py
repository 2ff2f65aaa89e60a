"""Line plots as plain data for plotly, with numbered colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.base.html import N_COLOURS, symbol
from sim.base.html.alt_text import alt_text

_MAX_MARKERS = 60  # a line of more points is drawn without markers


@dataclass(frozen=True)
class Figure:
    """One plot: its section, caption, and plotly's ``data`` and ``layout``."""

    section: str
    caption: str
    plot: dict[str, Any]


def section_plots(figures: Sequence[Figure], section: str) -> list[dict[str, str]]:
    """Return id, caption and text of each figure of a section, for ``figure.html.j2``."""
    return [
        {
            "id": f"plot-{number}",
            "caption": figure.caption,
            "alt": alt_text(figure.plot),
            "code": "",
            "note": "",
        }
        for number, figure in enumerate(figures)
        if figure.section == section
    ]


def line(number: int, name: str, x: Sequence[Any], y: Sequence[Any]) -> dict[str, Any]:
    """Return a line of a numbered colour; points that are not finite leave gaps."""
    return {
        "type": "scatter", "name": name, "meta": number, "x": [_finite(value) for value in x],
        "y": [_finite(value) for value in y],
        "mode": "lines+markers" if len(x) <= _MAX_MARKERS else "lines",
        "line": {"width": 2, "dash": "solid" if number < N_COLOURS else "dot"},
        "marker": {"size": 6, "symbol": symbol(number)},
    }  # fmt: skip


def plot(
    data: list[dict[str, Any]],
    x: str,
    y: str,
    *,
    x_log: bool = False,
    y_log: bool = False,
    legend: bool = False,
    hover: str = "closest",
) -> dict[str, Any]:
    """Return a plot of lines, bars or boxes with titled axes."""

    def axis(name: str, title: str, is_log: bool) -> dict[str, Any]:
        scale: dict[str, Any] = {"type": "log", "exponentformat": "power"} if is_log else {}
        values = [v for trace in data for v in trace.get(name) or () if is_log and v and v > 0]
        if values and max(values) > 20 * min(values):  # else too few powers of ten
            scale["dtick"] = 1
        return {"title": {"text": title}, "zeroline": False, **scale}

    layout = {
        "xaxis": axis("x", x, x_log),
        "yaxis": axis("y", y, y_log) | ({} if y_log else {"type": "linear", "rangemode": "tozero"}),
        "hovermode": hover,
        "showlegend": legend,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 16, "t": 56 if legend else 30, "b": 48},
    }
    return {"data": data, "layout": layout}


def _finite(value: Any) -> Any:
    return value if value is not None and math.isfinite(value) else None
