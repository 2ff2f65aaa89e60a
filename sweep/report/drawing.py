"""A metric against capacity as one figure: for a notebook (plotly), for a paper (SVG, PDF)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base import files
from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sweep.report.table import columns_of
from sweep.stats.arrange import text
from sweep.stats.metric_format import format_value, style
from sweep.stats.summary import Block, Summary

if TYPE_CHECKING:
    import plotly.graph_objects as go

KINDS = (".svg", ".pdf", ".png", ".html")
COLOURS = ("#0072b2", "#c8500a", "#00805d", "#a8418a", "#6a4fb3", "#8a6d00", "#0d7c93", "#b2182b")
_MARKS = (("circle", "o"), ("square", "s"), ("diamond", "D"), ("triangle-up", "^"), ("x", "x"))


@dataclass(frozen=True)
class Line:
    """A policy in a panel: where it is drawn, half its intervals, what stands beside a point."""

    number: int
    label: str
    is_baseline: bool
    x: list[Any]  # capacities; with one capacity only: the policy itself
    y: F8
    half: F8  # 0 where there is no interval
    words: list[str]


def check(summary: Summary, metric: str) -> None:
    """Refuse a metric that no cell has."""
    if metric not in summary.metrics:
        raise InputError(unknown("metric of these cells", metric, summary.metrics))


def _panels(summary: Summary, metric: str) -> Iterator[tuple[Block, list[Line]]]:
    at = summary.metrics.index(metric)
    scale = 100.0 if style(metric).kind == "percent" else 1.0
    for block in summary.blocks:
        lines = []
        for column in columns_of(summary, block):
            about = summary.columns[column]
            mean, half = block.mean[:, column, at], block.half[:, column, at]
            shown = [
                format_value(metric, float(m), float(h)) for m, h in zip(mean, half, strict=True)
            ]
            lines.append(
                Line(
                    column,
                    about.label,
                    about.is_baseline,
                    list(block.capacities) if len(block.capacities) > 1 else [about.label],
                    mean * scale,
                    np.nan_to_num(half * scale),
                    [f"{m} ±{h}" if h else m for m, h in shown],
                )
            )
        yield block, lines


def _axis(metric: str) -> str:
    look = style(metric)
    return f"{look.label} ({look.unit})" if look.unit else look.label


def plotly_figure(summary: Summary, metric: str) -> go.Figure:
    """Draw a metric against capacity, a panel a trace, a line a policy, 95 % intervals as bars."""
    # a second to import: only where something is drawn
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    check(summary, metric)
    panels = list(_panels(summary, metric))
    titles = [block.title for block, _ in panels]
    figure = make_subplots(1, len(panels), shared_yaxes=True, subplot_titles=titles)
    for place, (block, lines) in enumerate(panels, start=1):
        for line in lines:
            colour = COLOURS[line.number % len(COLOURS)]
            about: dict[str, Any] = {
                "name": line.label,
                "legendgroup": line.label,
                "showlegend": place == 1,
                "x": line.x,
                "y": line.y,
                "text": line.words,
                "hovertemplate": "%{text}",
                "error_y": {"type": "data", "array": line.half, "thickness": 1, "width": 3},
            }
            if len(line.x) > 1:
                dash = "dash" if line.is_baseline else "solid"
                symbol = _MARKS[line.number % len(_MARKS)][0]
                drawn = go.Scatter(
                    **about,
                    mode="lines+markers",
                    line={"width": 2, "dash": dash, "color": colour},
                    marker={"size": 7, "symbol": symbol},
                )
            else:
                drawn = go.Bar(**about, textposition="none", marker={"color": colour})
            figure.add_trace(drawn, row=1, col=place)
        if len(block.capacities) > 1:
            ticks = {"tickvals": block.capacities, "ticktext": [text(c) for c in block.capacities]}
            figure.update_xaxes(title="capacity", **ticks, row=1, col=place)
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title=_axis(metric), row=1, col=1)
    figure.update_layout(template="plotly_white", margin={"l": 64, "r": 16, "t": 40, "b": 48})
    return figure


def write(summary: Summary, metric: str, path: Path) -> None:
    """Write the figure as SVG, PDF, PNG or a page that loads nothing, by the file's ending.

    The same numbers give the same bytes with the same versions of the packages.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError(f"{path}: a figure ends in {', '.join(KINDS)}", rule="unknown format")
    check(summary, metric)
    if kind == ".html":
        files.write_text(path, plotly_figure(summary, metric).to_html(div_id="figure"))
        return
    # not plotly: its SVG and PDF want a browser; and no pyplot, which has a state of its own
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels = list(_panels(summary, metric))
    with mpl.rc_context({"svg.hashsalt": "sweep", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.6 * len(panels), 3.2), layout="constrained")
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (block, lines) in zip(row, panels, strict=True):
            axes.set_title(block.title, fontsize=9)
            _draw(axes, block, lines)
        row[0].set_ylabel(_axis(metric))
        row[0].set_ylim(bottom=0)
        if len(panels[0][0].capacities) > 1:
            row[-1].legend(frameon=False)
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with files.replacing(path) as out:
            figure.savefig(out, format=kind[1:], metadata=dated.get(kind), dpi=200)


def _draw(axes: Any, block: Block, lines: list[Line]) -> None:
    """Draw a panel: lines over capacities, bars where there is one capacity.

    Intervals stand beside each other, a little off their capacity.
    """
    span = max(block.capacities) - min(block.capacities)
    gap = min(0.01 * span, 0.1 * span / len(lines))
    for at, line in enumerate(lines):
        colour = COLOURS[line.number % len(COLOURS)]
        if len(line.x) > 1:
            aside = gap * (at - (len(lines) - 1) / 2)
            axes.errorbar(
                [x + aside for x in line.x],
                line.y,
                line.half,
                label=line.label,
                color=colour,
                marker=_MARKS[line.number % len(_MARKS)][1],
                markersize=4,
                linestyle="--" if line.is_baseline else "-",
                elinewidth=0.8,
                capsize=2,
            )
        else:
            axes.bar(line.x, line.y, yerr=line.half, color=colour)
    if len(block.capacities) > 1:
        axes.set_xlabel("capacity")
        axes.set_xticks(block.capacities, [text(c) for c in block.capacities])
    axes.spines[["top", "right"]].set_visible(False)
