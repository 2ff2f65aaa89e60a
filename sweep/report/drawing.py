"""Drawing of a chart: for a notebook (plotly), for a paper (SVG, PDF, PNG)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base import files
from sim.base.errors import InputError
from sim.base.extras import importing
from sim.base.text import printable
from sweep.stats.cell_columns import text

if TYPE_CHECKING:
    import plotly.graph_objects as go

KINDS = (".svg", ".pdf", ".png", ".html")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#f0e442")
"""Colours that people with any colour vision tell apart (Okabe and Ito, 2008)."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P"}
_LINES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_PANEL_SIZE = (4.6, 3.2)  # inches
_FONT, _SMALL_FONT, _NARROW = 9.0, 7.5, 2.6
"""Size of the letters in points; of those in panels that are narrower than so many inches."""
_LETTER, _HANDLE, _LINE = 0.6, 4.0, 1.2
"""Width of a letter, of the line beside a name in the legend, and height of a line, in sizes of
letters."""
_AXIS = 0.7
"""Part of a panel's width between its first and its last tick."""


@dataclass(frozen=True)
class Panel:
    """One plot of a chart: its title, traces as plotly's plain data, and ticks of the x axis."""

    title: str
    traces: Sequence[dict[str, Any]]
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """Panels side by side, and how they are drawn.

    ``size`` is (width, height) of the whole in inches; None: 4.6 × 3.2 a panel.
    """

    panels: Sequence[Panel]
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    share_y: bool = False
    size: tuple[float, float] | None = None


def _painted(trace: dict[str, Any]) -> dict[str, Any]:
    """Give a trace the colour of its number ("meta"); a ninth begins again with another dash."""
    number = trace["meta"]
    colour = COLOURS[number % len(COLOURS)]
    painted = {**trace, "marker": {**trace.get("marker", {}), "color": colour}}
    if "line" in trace:
        again = number // len(COLOURS)
        dash = _DASHES[again % len(_DASHES)] if again else trace["line"].get("dash", "solid")
        painted["line"] = {**trace["line"], "color": colour, "dash": dash}
    return painted


def plotly_figure(chart: Chart) -> go.Figure:
    """Draw a chart as a figure that shows itself in a notebook."""
    # takes a second to import
    with importing("plots"):
        from plotly.subplots import make_subplots

    titles = [_no_html(panel.title) for panel in chart.panels]
    n = len(chart.panels)
    figure = make_subplots(1, n, shared_yaxes=chart.share_y, subplot_titles=titles)
    named: set[str] = set()
    for number, panel in enumerate(chart.panels, start=1):
        for trace in panel.traces:
            name = _no_html(trace["name"])
            fields = {"legendgroup": name, "showlegend": name not in named, "name": name}
            named.add(name)
            positions = [_no_html(x) for x in trace.get("customdata", trace["x"])]
            figure.add_trace({**_painted(trace), **fields, "x": positions}, row=1, col=number)
        if panel.ticks:
            ticks = {"tickvals": panel.ticks, "ticktext": [text(tick) for tick in panel.ticks]}
            figure.update_xaxes(**ticks, row=1, col=number)
        if chart.x_title and panel.traces and panel.traces[0]["type"] != "bar":
            figure.update_xaxes(title=_no_html(chart.x_title), row=1, col=number)
    figure.update_xaxes(type="log" if chart.log_x else None)
    figure.update_yaxes(**({"type": "log"} if chart.log_y else {"rangemode": "tozero"}))
    figure.update_yaxes(title=_no_html(chart.y_title), row=1, col=1)
    figure.update_layout(template="plotly_white", margin={"l": 64, "r": 16, "t": 40, "b": 48})
    if chart.size:
        width, height = chart.size
        figure.update_layout(width=96 * width, height=96 * height)
    return figure


def _no_html(text: Any) -> Any:
    """Escape HTML in a name: plotly interprets some of it."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;") if type(text) is str else text


def _no_maths(text: Any) -> Any:
    """Escape ``$`` in a name: matplotlib begins a formula with it."""
    return printable(text).replace("$", r"\$") if type(text) is str else text


def write(chart: Chart, path: Path) -> None:
    """Write a chart as SVG, PDF, PNG or a self-contained page, by the file's extension.

    A PDF embeds its fonts as TrueType (conferences reject Type 3); the text of an SVG stays text.
    The same numbers give the same bytes with the same versions of the packages.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"{path}: a figure's file name must end in {', '.join(KINDS)}", rule="unknown format"
        )
    if kind == ".html":
        files.write_text(path, plotly_figure(chart).to_html(div_id="figure"))
        return
    with importing("plots"):
        import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "sweep", "svg.fonttype": "none", "pdf.fonttype": 42}):
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with files.atomic_write(path) as out:
            drawn = paper_figure(chart)
            drawn.savefig(out, format=kind[1:], metadata=dated.get(kind), dpi=200)


def paper_figure(chart: Chart) -> Any:
    """Draw a chart with matplotlib, for `write`; return its figure.

    Not plotly: its SVG and PDF need a browser. Not pyplot: it has global state.
    """
    with importing("plots"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    n = len(chart.panels)
    width, height = chart.size or (n * _PANEL_SIZE[0], _PANEL_SIZE[1])
    font = _SMALL_FONT if width / n < _NARROW else _FONT
    with mpl.rc_context({"font.size": font}):
        figure = Figure(figsize=(width, height), layout="constrained")
        row = figure.subplots(1, n, sharey=chart.share_y, squeeze=False)[0]
        for axes, panel in zip(row, chart.panels, strict=True):
            _draw_panel(axes, panel, chart, font, width / n)
        row[0].set_ylabel(_no_maths(chart.y_title))
        if chart.x_title and any(p.traces and p.traces[0]["type"] != "bar" for p in chart.panels):
            figure.supxlabel(_no_maths(chart.x_title), fontsize=font)
        _draw_legend(figure, row, font, width)
    return figure


def _draw_legend(figure: Any, row: Sequence[Any], font: float, width: float) -> None:
    """Draw one legend of all panels above them, where it covers nothing."""
    handles: dict[str, Any] = {}
    for axes in row:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        longest = (max(map(len, handles)) * _LETTER + _HANDLE) * font / 72  # inches
        columns = max(1, min(len(handles), int(width / longest)))
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", ncols=columns,
            frameon=False,
        )  # fmt: skip


def _draw_panel(axes: Any, panel: Panel, chart: Chart, font: float, width: float) -> None:
    """Draw a panel that is so many inches wide; names of bars that do not fit are slanted."""
    axes.set_title(_no_maths(panel.title), fontsize=font)
    for trace in panel.traces:
        _draw(axes, _painted(trace))
    names = [str(x) for trace in panel.traces if trace["type"] == "bar" for x in trace["x"]]
    if sum(len(name) + 1 for name in names) * _LETTER * font / 72 > 0.75 * width:
        axes.tick_params("x", rotation=45)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    if chart.log_x:
        axes.set_xscale("log")
    if panel.ticks:
        labels, angle = tick_labels(panel.ticks, font, width, log=chart.log_x)
        axes.set_xticks(panel.ticks, labels)
        axes.tick_params("x", rotation=angle)
    if chart.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def tick_labels(
    ticks: Sequence[float], font: float, width: float, *, log: bool = False
) -> tuple[list[str], int]:
    """Return a label for each tick of a panel that is so many inches wide, and their angle.

    Labels that would overlap stand upright; where even these would, one that is too near the one
    before is empty, and its tick remains. The first and the last have theirs.

    >>> tick_labels((0.7, 0.9, 1.0), 9.0, 4.6)
    (['0.7', '0.9', '1'], 0)
    >>> tick_labels((0.7, 0.9, 2.0), 9.0, 2.0)
    (['0.7', '0.9', '2'], 90)
    >>> tick_labels((0.7, 0.71, 2.0), 9.0, 2.0)
    (['0.7', '', '2'], 90)
    """
    labels = [text(tick) for tick in ticks]
    if len(ticks) < 2:
        return labels, 0
    places = [math.log(tick) if log else tick for tick in ticks]
    span = max(places) - min(places) or 1.0
    inches = [(place - min(places)) / span * _AXIS * width for place in places]
    letter = font / 72
    needs = [(len(label) + 1) * _LETTER * letter for label in labels]
    gaps = [after - before for before, after in itertools.pairwise(inches)]
    wide = [(left + right) / 2 for left, right in itertools.pairwise(needs)]
    if all(gap >= need for gap, need in zip(gaps, wide, strict=True)):
        return labels, 0
    line, last = _LINE * letter, len(labels) - 1
    labelled = [0]
    for k in range(1, last):
        if inches[k] - inches[labelled[-1]] >= line and inches[last] - inches[k] >= line:
            labelled.append(k)
    return [label if k in (*labelled, last) else "" for k, label in enumerate(labels)], 90


def _draw(axes: Any, trace: dict[str, Any]) -> None:
    """Draw a trace: a bar, a line with error bars, or a step function."""
    values = [y if y is not None else float("nan") for y in trace["y"]]
    bars = trace.get("error_y")
    sides = ("arrayminus" if bars and "arrayminus" in bars else "array", "array")
    half = bars and [[h or 0.0 for h in bars[side]] for side in sides]
    colour = trace["marker"]["color"]
    if trace["type"] == "bar":
        axes.bar([_no_maths(x) for x in trace["x"]], values, yerr=half, color=colour)
        return
    style = {"label": _no_maths(trace["name"]), "color": colour}
    style["linestyle"] = _LINES[trace["line"]["dash"]]
    if trace["mode"] == "lines":
        axes.step(trace["x"], values, where="post", **style)
        return
    mark = _MARKS.get(trace["marker"]["symbol"], "x")
    axes.errorbar(
        trace["x"], values, half, marker=mark, markersize=4, elinewidth=0.8, capsize=2, **style
    )
