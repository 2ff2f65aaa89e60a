"""Figure of a metric against capacity: for a notebook (plotly), for a paper (SVG, PDF).

Both use the data of the report's plots (`sweep.report.plots.figure`); error bars are of the means.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base import files
from sim.base.errors import InputError, unknown
from sim.base.extras import importing
from sim.base.text import printable
from sweep.report import plots
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import style
from sweep.stats.summary import Block, Summary

if TYPE_CHECKING:
    import plotly.graph_objects as go

KINDS = (".svg", ".pdf", ".png", ".html")
COLOURS = ("#0072b2", "#c8500a", "#00805d", "#a8418a", "#6a4fb3", "#8a6d00", "#0d7c93", "#b2182b")
_MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P"}


def _panels(summary: Summary, metric: str) -> list[tuple[Block, Sequence[dict[str, Any]]]]:
    """Return the coloured plotly traces of each block, one trace a policy."""
    if metric not in summary.metrics:
        raise InputError(unknown("metric of these cells", metric, summary.metrics))
    panels = []
    for block in summary.blocks:
        traces = plots.figure(summary, block, metric, block.half)["data"]
        for trace in traces:
            colour = COLOURS[trace["meta"] % len(COLOURS)]
            trace["marker"] = {**trace.get("marker", {}), "color": colour}
            if "line" in trace:
                trace["line"] = {**trace["line"], "color": colour}
        panels.append((block, traces))
    return panels


def _axis(metric: str) -> str:
    metric_style = style(metric)
    return (
        f"{metric_style.label} ({metric_style.unit})" if metric_style.unit else metric_style.label
    )


def plotly_figure(summary: Summary, metric: str) -> go.Figure:
    """Draw a metric against capacity, a panel a trace, a line a policy, 95 % intervals as bars."""
    # takes a second to import
    with importing("plots"):
        from plotly.subplots import make_subplots

    panels = _panels(summary, metric)
    titles = [_no_html(block.title) for block, _ in panels]
    figure = make_subplots(1, len(panels), shared_yaxes=True, subplot_titles=titles)
    for panel, (block, traces) in enumerate(panels, start=1):
        for trace in traces:
            name = _no_html(trace["name"])
            fields = {"legendgroup": name, "showlegend": panel == 1, "name": name}
            positions = [_no_html(x) for x in _positions(trace)]
            figure.add_trace({**trace, **fields, "x": positions}, row=1, col=panel)
        if len(block.capacities) > 1:
            ticks = {"tickvals": block.capacities, "ticktext": [text(c) for c in block.capacities]}
            figure.update_xaxes(title="capacity", **ticks, row=1, col=panel)
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title=_no_html(_axis(metric)), row=1, col=1)
    figure.update_layout(template="plotly_white", margin={"l": 64, "r": 16, "t": 40, "b": 48})
    return figure


def _positions(trace: dict[str, Any]) -> list[Any]:
    """Return a policy's x positions: the capacities; with one capacity only, its name."""
    return list(trace.get("customdata", trace["x"]))


def _no_html(text: Any) -> Any:
    """Escape HTML in a name: plotly interprets some of it."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;") if type(text) is str else text


def _no_maths(text: Any) -> Any:
    """Escape ``$`` in a name: matplotlib begins a formula with it."""
    return printable(text).replace("$", r"\$") if type(text) is str else text


def write(summary: Summary, metric: str, path: Path) -> None:
    """Write the figure as SVG, PDF, PNG or a self-contained page, by the file's extension.

    The same numbers give the same bytes with the same versions of the packages.
    """
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise InputError(
            f"{path}: a figure's file name must end in {', '.join(KINDS)}", rule="unknown format"
        )
    panels = _panels(summary, metric)
    if kind == ".html":
        files.write_text(path, plotly_figure(summary, metric).to_html(div_id="figure"))
        return
    # not plotly: its SVG and PDF need a browser; not pyplot: it has global state
    with importing("plots"):
        import matplotlib as mpl
        from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "sweep", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(4.6 * len(panels), 3.2), layout="constrained")
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (block, traces) in zip(row, panels, strict=True):
            axes.set_title(_no_maths(block.title), fontsize=9)
            for trace in traces:
                _draw(axes, trace)
            if len(block.capacities) > 1:
                axes.set_xlabel("capacity")
                axes.set_xticks(block.capacities, [text(c) for c in block.capacities])
            axes.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(_no_maths(_axis(metric)))
        row[0].set_ylim(bottom=0)
        if len(panels[0][0].capacities) > 1:
            row[-1].legend(frameon=False)
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with files.atomic_write(path) as out:
            figure.savefig(out, format=kind[1:], metadata=dated.get(kind), dpi=200)


def _draw(axes: Any, trace: dict[str, Any]) -> None:
    """Draw a policy: a line over capacities, or a bar if there is only one."""
    values = [y if y is not None else float("nan") for y in trace["y"]]
    half = [h or 0.0 for h in trace.get("error_y", {}).get("array", ())] or None
    colour = trace["marker"]["color"]
    if trace["type"] == "bar":
        axes.bar([_no_maths(x) for x in trace["x"]], values, yerr=half, color=colour)
        return
    axes.errorbar(
        trace["x"],
        values,
        half,
        label=_no_maths(trace["name"]),
        color=colour,
        marker=_MARKS.get(trace["marker"]["symbol"], "x"),
        markersize=4,
        linestyle="--" if trace["line"]["dash"] == "dash" else "-",
        elinewidth=0.8,
        capsize=2,
    )
