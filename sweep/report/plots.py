"""Plots of the report as plotly figures in plain data: metrics by capacity, jobs of cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base import html
from sim.base.arrays import F8
from sweep.report.job_samples import CapacitySample, Jobs
from sweep.report.table import columns_present
from sweep.stats.arrange import Column
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_mean, format_value, interval_of, style
from sweep.stats.summary import Block, Summary

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TICKS = 8
_BEST_SIZE = 13
"""Diameter of the mark of a best policy, px."""

Figure = dict[str, Any]


def figure(
    summary: Summary,
    block: Block,
    metric: str,
    half: F8 | None = None,
    best: Mapping[float, Collection[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Draw a metric against capacity, one line a policy, with 95 % intervals.

    With a baseline the intervals are those of the difference from it, paired by seed; without one
    those of the means, of which `half` are the half-widths, if given. At a capacity, policies are
    drawn side by side, so that none hides another's interval. With one capacity there is no line:
    each policy is a bar.
    Gaps to the lower bound have a log scale. `best` names the policies at each capacity whose
    marks are large.
    """
    index = summary.metrics.index(metric)
    metric_style = style(metric)
    scale = 100.0 if metric_style.kind == "percent" else 1.0
    is_line = len(block.capacities) > 1
    data = []
    is_of_means = half is not None or _are_of_means(block)
    columns = columns_present(summary, block)
    for position, column in enumerate(columns):
        means = [float(v) for v in block.mean[:, column, index]]
        halves = [
            float(v) for v in (half_intervals(block) if half is None else half)[:, column, index]
        ]
        shown = [
            _shown(metric, m, h, is_of_means=is_of_means)
            for m, h in zip(means, halves, strict=True)
        ]
        label = summary.columns[column].label
        trace: dict[str, Any] = {
            "type": "scatter" if is_line else "bar",
            "name": label,
            "meta": column,
            "x": _beside(block, position, len(columns)) if is_line else [label],
            "y": [_finite(mean * scale) for mean in means],
            "text": shown,
            "hovertemplate": f"{'capacity %{customdata}: ' * is_line}%{{text}}",
        }
        if is_line:
            trace["customdata"] = list(block.capacities)
        if any(half > 0 for half in halves):
            pairs = zip(means, halves, strict=True)
            ends = [_ends_shown(metric, m, h, is_of_means=is_of_means) for m, h in pairs]
            trace["error_y"] = error_bars(means, ends, scale)
        if is_line:
            trace |= line(column, summary.columns[column].is_baseline)
            is_best = [label in best.get(capacity, ()) for capacity in block.capacities]
            if any(is_best):
                trace["marker"] |= {"size": [_BEST_SIZE if large else 7 for large in is_best]}
        else:
            trace["textposition"] = "none"
        data.append(trace)
    figure: Figure = {"data": data, "layout": _layout(block, metric_style.unit, is_line)}
    drawn = block.mean[:, columns, index]
    if is_log(metric) and (drawn > 0).any():
        figure["layout"]["yaxis"] |= {"type": "log", "dtick": 1}
    return figure


def is_log(metric: str) -> bool:
    """Tell whether a metric is drawn on a log scale, which cannot show 0."""
    return metric.startswith("gap_")


def half_intervals(block: Block) -> F8:
    """Return half the intervals shown in plots: of differences from a baseline, else of means."""
    return block.half if _are_of_means(block) else block.paired


def _are_of_means(block: Block) -> bool:
    return bool(np.isnan(block.paired).all())


def _shown(metric: str, mean: float, half: float, *, is_of_means: bool) -> str:
    if is_of_means:
        return " ".join(filter(None, format_mean(metric, mean, half)))
    shown, spread = format_value(metric, mean, half)
    return f"{shown} ±{spread}" if spread else shown


def error_bars(
    means: Sequence[float | None],
    ends: Sequence[tuple[float, float] | None],
    scale: float = 1.0,
) -> dict[str, Any]:
    """Return Plotly's error bars for the ends of intervals; None for no interval."""
    above, below = [], []
    for mean, interval in zip(means, ends, strict=True):
        low, high = (math.nan, math.nan) if mean is None or interval is None else interval
        above.append(_finite((high - (mean or 0.0)) * scale))
        below.append(_finite(((mean or 0.0) - low) * scale))
    bars: dict[str, Any] = {"type": "data", "array": above, "thickness": 1, "width": 3}
    return bars if above == below else bars | {"symmetric": False, "arrayminus": below}


def _ends_shown(
    metric: str, mean: float, half: float, *, is_of_means: bool
) -> tuple[float, float] | None:
    """Return the ends of the interval of a mean, or of a difference beside it."""
    if math.isnan(half):
        return None
    return interval_of(metric, mean, half) if is_of_means else (mean - half, mean + half)


def front(summary: Summary, block: Block, capacity: int, front: Sequence[int]) -> Figure:
    """Draw the mean JCT against the 99th percentile, a point a policy, with the Pareto front."""
    x, y = (summary.metrics.index(name) for name in ("jct_mean_s", "jct_p99_s"))
    halves = half_intervals(block)[capacity]
    data: list[Figure] = []
    columns = columns_present(summary, block)
    named = [c for c in columns if c in front or summary.columns[c].is_baseline]
    points = {c: (float(block.mean[capacity, c, x]), float(block.mean[capacity, c, y]))
              for c in columns if np.isfinite(block.mean[capacity, c, [x, y]]).all()}  # fmt: skip
    sides = _sides({c: summary.columns[c].label for c in named if c in points}, points)
    for column, (mean, tail) in points.items():
        label = summary.columns[column].label
        is_base = summary.columns[column].is_baseline
        point = line(column, is_base)["marker"]
        shown = [format_value(m, v)[0] for m, v in (("jct_mean_s", mean), ("jct_p99_s", tail))]
        mark = ", on the front" if column in front else ""
        trace: Figure = {
            "type": "scatter",
            "mode": "markers+text" if column in sides else "markers",
            "name": label,
            "meta": column,
            "x": [mean],
            "y": [tail],
            "text": [label],
            "textposition": sides.get(column, "top right"),
            "cliponaxis": False,
            "hovertemplate": f"%{{text}}: mean {shown[0]} s, p99 {shown[1]} s{mark}<extra></extra>",
            "marker": {**point, "size": 12 if column in front else 8},
        }
        for axis, index in (("error_x", x), ("error_y", y)):
            if halves[column, index] > 0:
                name, half = summary.metrics[index], float(halves[column, index])
                (value,), is_of_means = trace[axis[-1]], _are_of_means(block)
                ends = _ends_shown(name, value, half, is_of_means=is_of_means)
                trace[axis] = error_bars([value], [ends])
        data.append(trace)
    axes = layout({"title": {"text": "mean JCT, s"}}, {"title": {"text": "p99 JCT, s"}})
    axes["yaxis"]["type"] = "linear"
    return {"data": data, "layout": axes}


_AREA, _LETTER = (320.0, 190.0), (7.5, 15.0)  # of a plot and of a letter on a page, px


def _sides(labels: Mapping[int, str], points: Mapping[int, tuple[float, float]]) -> dict[int, str]:
    """Place each name beside its point so that no names overlap; leave out those without room."""
    ends = [(min(axis), max(axis)) for axis in zip(*points.values(), strict=True)]
    pixels = {
        c: [size * (v - low) / (high - low or 1.0)
            for v, (low, high), size in zip(point, ends, _AREA, strict=True)]
        for c, point in points.items()
    }  # fmt: skip
    boxes = {c: (px - 6, py - 6, px + 6, py + 6) for c, (px, py) in pixels.items()}
    sides: dict[int, str] = {}
    for c, label in labels.items():
        (px, py), wide = pixels[c], _LETTER[0] * len(label)
        for side, left in (("right", 0.0), ("left", -wide), ("center", -wide / 2)):
            for level, low in (("top", 6.0), ("bottom", -6.0 - _LETTER[1])):
                box = (px + left, py + low, px + left + wide, py + low + _LETTER[1])
                is_free = not any(
                    box[0] < o[2] and o[0] < box[2] and box[1] < o[3] and o[1] < box[3]
                    for other, o in boxes.items()
                    if other != c
                )
                if c not in sides and is_free and box[0] >= -8 and box[2] <= _AREA[0] + 40:
                    sides[c] = f"{level} {side}"
                    boxes[-1 - c] = box
    return sides


_SPREAD = 0.012
"""Distance between policies drawn at one capacity, as a fraction of the axis."""


def _beside(block: Block, position: int, n: int) -> list[float]:
    """Return a policy's x positions: next to the other policies, centred on each capacity."""
    capacities = block.capacities
    gap = min(b - a for a, b in pairwise(capacities))
    step = min(_SPREAD * (capacities[-1] - capacities[0]), 0.6 * gap / n)
    return [_short(capacity + step * (position - (n - 1) / 2)) for capacity in capacities]


def curves(findings: pa.Table, n_columns: int) -> dict[str, dict[str, Any]]:
    """Draw the curves of a study's findings: a plotly figure for each figure name."""
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
    """Return the layout of a plot: its axes, and no legend, as the page has one."""
    return {
        "xaxis": {"zeroline": False, **x_axis},
        "yaxis": dict(y_axis),
        "hovermode": hovermode,
        "showlegend": False,
        "margin": {"l": 64, "r": 16, "t": 30, "b": 44},
    }


def line(column: int, is_baseline: bool) -> dict[str, Any]:
    """Return a policy's dash and marker; the page sets colours."""
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
        if len(block.capacities) <= MAX_TICKS:
            x["tickvals"] = list(block.capacities)
            x["ticktext"] = [
                "<br>".join(filter(None, (text(capacity), machines)))
                for capacity, machines in zip(block.capacities, block.machines, strict=True)
            ]
    y = {"ticksuffix": unit if unit != "s" else " s", "rangemode": "tozero"}
    axes = layout(x, y)
    if "ticktext" in x:  # half of the last text is right of the plot, and must be on the page
        last = max(map(len, x["ticktext"][-1].split("<br>")))
        axes["margin"]["r"] = max(axes["margin"]["r"], round(_LETTER[0] * last / 2))
    return axes


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


N_POINTS = 100
"""Largest number of points of a curve."""


@dataclass(frozen=True)
class _Kind:
    """A distribution: its caption, its axis, and the values of a policy's jobs."""

    caption: str
    note: str
    axis: str
    values: Callable[[Jobs], Sequence[F8]]
    is_log: bool
    is_against_baseline: bool = False


_KINDS = (
    _Kind("JCT of jobs", "share of jobs done within", "JCT, s", lambda j: j.jct_s, True),
    _Kind(
        "Speed-up of jobs",
        "job by job against the baseline; right of 1 is faster",
        "speed-up",
        lambda j: j.speedup,
        True,
        is_against_baseline=True,
    ),
    _Kind(
        "Distance to the lower bound",
        "1 is the shortest that any schedule allows",
        "JCT over lower bound",
        lambda j: [1.0 + gap for gap in j.gap],
        True,
    ),
    _Kind(
        "Errors of predictions",
        "of job sizes by the policy's estimator",
        "|estimate - size| / size",
        lambda j: j.error,
        False,
    ),
)


def figures(sample: CapacitySample, columns: Sequence[Column]) -> Iterator[tuple[str, str, Figure]]:
    """Draw the distributions over jobs at one capacity: caption, note and plotly figure.

    Curves are of all seeds' jobs together, thinned to `N_POINTS` quantiles, which are values that
    occur. A distribution without values is left out.
    """
    for distribution in _KINDS:
        data = []
        for column, jobs in sample.jobs_by_column.items():
            if distribution.is_against_baseline and columns[column].is_baseline:
                continue
            parts = distribution.values(jobs)
            values = np.sort(np.concatenate(parts)) if parts else np.empty(0)
            if len(values):
                x, y = _cdf(values)
                data.append(
                    _trace(column, columns[column], x, y)
                    | {"line": _line_style(column, columns[column], "hv")}
                )
        if data:
            x_axis: dict[str, Any] = {"type": "log"}
            if not (distribution.is_log and _is_positive(data)):
                x_axis = {"range": [0, 1.05 * max(map(_nearly_all, data))]}
            axes = _titled(distribution.axis, "share of jobs", x_axis)
            axes["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
            yield distribution.caption, distribution.note, {"data": data, "layout": axes}
    yield from _utilization(sample, columns)
    yield from _value(sample, columns)


def _cdf(values: F8) -> tuple[list[float], list[float]]:
    """Return quantiles of sorted values, and the share of values up to each."""
    n = len(values)
    positions = np.unique(np.linspace(0, n - 1, min(n, N_POINTS)).astype(np.int64))
    return [_short(values[i]) for i in positions], [_short((i + 1) / n) for i in positions]


def _utilization(
    sample: CapacitySample, columns: Sequence[Column]
) -> Iterator[tuple[str, str, Figure]]:
    data, resources = [], []
    for column, jobs in sample.jobs_by_column.items():
        utilization = jobs.utilization
        if utilization is not None:
            edges = np.linspace(
                utilization["begin_s"], utilization["end_s"], len(utilization["used"]) + 1
            )
            middles = (edges[:-1] + edges[1:]) / 2
            data.append(_over_time(column, columns[column], middles, utilization["used"], "hvh"))
            resources.append(utilization["resource"])
    if data:
        axes = _titled("time, h", f"% of {', '.join(dict.fromkeys(resources))} in use", {})
        axes["yaxis"] |= {"rangemode": "tozero"}
        figure = {"data": data, "layout": axes}
        yield "Utilisation over time", "of the bottleneck, first seed", figure


def _value(sample: CapacitySample, columns: Sequence[Column]) -> Iterator[tuple[str, str, Figure]]:
    data = []
    for column, jobs in sample.jobs_by_column.items():
        value = jobs.value
        if value is not None:
            times = np.linspace(value["begin_s"], value["end_s"], len(value["attained"]))
            data.append(_over_time(column, columns[column], times, value["attained"], "linear"))
    if data:
        axes = _titled("time, h", "% of the downloads so far", {})
        note = "downloads after their job was done, first seed"
        yield "Value attained over time", note, {"data": data, "layout": axes}


def _over_time(
    index: int, column: Column, times: F8, shares: Sequence[float], shape: str
) -> Figure:
    """Draw shares, in percent, against times in hours."""
    x, y = [_short(time / 3600) for time in times], [_short(100 * share) for share in shares]
    return _trace(index, column, x, y) | {"line": _line_style(index, column, shape)}


def _trace(index: int, column: Column, x: list[float], y: list[float]) -> dict[str, Any]:
    name = {"name": column.label, "meta": index}
    return {"type": "scatter", "mode": "lines", **name, "x": x, "y": y, "marker": {}}


def _line_style(index: int, column: Column, shape: str) -> dict[str, Any]:
    dash = line(index, column.is_baseline)["line"]["dash"]
    return {"width": 1.6, "dash": dash, "shape": shape}


def _nearly_all(trace: Figure) -> float:
    """Return the 99 % quantile of a curve: the few values beyond it would squeeze the others."""
    return float(next(x for x, y in zip(trace["x"], trace["y"], strict=True) if y >= 0.99))


def _is_positive(data: Sequence[Figure]) -> bool:
    return all(trace["x"][0] > 0 for trace in data)


def _titled(x: str, y: str, x_axis: dict[str, Any]) -> dict[str, Any]:
    return layout({"title": {"text": x}, **x_axis}, {"title": {"text": y}, "type": "linear"})


def _short(value: float) -> float:
    return float(f"{value:.5g}")
