"""The plots of the report that look into cells: distributions over jobs, use of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.report.cells import Jobs, Sample
from sweep.report.plots import layout, line
from sweep.stats.arrange import Column

Figure = dict[str, Any]

N_POINTS = 200
"""At most so many of a curve."""


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
        "1 is the least that any schedule could take",
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


def figures(sample: Sample, columns: Sequence[Column]) -> Iterator[tuple[str, str, Figure]]:
    """Draw what is known of the jobs at one capacity: caption, note and plotly figure.

    Curves are of all seeds' jobs together, thinned to `N_POINTS` quantiles, which are values that
    occur. What no job has is not drawn.
    """
    for kind in _KINDS:
        data = []
        for at, jobs in sample.of.items():
            if kind.is_against_baseline and columns[at].is_baseline:
                continue
            parts = kind.values(jobs)
            values = np.sort(np.concatenate(parts)) if parts else np.empty(0)
            if len(values):
                x, y = _cdf(values)
                data.append(_trace(at, columns[at], x, y) | {"line": _look(at, columns[at], "hv")})
        if data:
            x_axis: dict[str, Any] = {"type": "log"}
            if not (kind.is_log and _is_positive(data)):
                x_axis = {"range": [0, 1.05 * max(map(_nearly_all, data))]}
            axes = _layout(kind.axis, "share of jobs", x_axis)
            axes["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
            yield kind.caption, kind.note, {"data": data, "layout": axes}
    yield from _utilization(sample, columns)
    yield from _value(sample, columns)


def _cdf(values: F8) -> tuple[list[float], list[float]]:
    """Quantiles of sorted values, and the share of values up to each."""
    n = len(values)
    at = np.unique(np.linspace(0, n - 1, min(n, N_POINTS)).astype(np.int64))
    return [_short(values[i]) for i in at], [_short((i + 1) / n) for i in at]


def _utilization(sample: Sample, columns: Sequence[Column]) -> Iterator[tuple[str, str, Figure]]:
    data, resources = [], []
    for at, jobs in sample.of.items():
        use = jobs.utilization
        if use is not None:
            edges = np.linspace(use["begin_s"], use["end_s"], len(use["used"]) + 1)
            middles = (edges[:-1] + edges[1:]) / 2
            data.append(_over_time(at, columns[at], middles, use["used"], "hvh"))
            resources.append(use["resource"])
    if data:
        axes = _layout("time, h", f"% of {', '.join(dict.fromkeys(resources))} in use", {})
        axes["yaxis"] |= {"rangemode": "tozero"}
        figure = {"data": data, "layout": axes}
        yield "Utilisation over time", "of the bottleneck, first seed", figure


def _value(sample: Sample, columns: Sequence[Column]) -> Iterator[tuple[str, str, Figure]]:
    data = []
    for at, jobs in sample.of.items():
        value = jobs.value
        if value is not None:
            times = np.linspace(value["begin_s"], value["end_s"], len(value["attained"]))
            data.append(_over_time(at, columns[at], times, value["attained"], "linear"))
    if data:
        axes = _layout("time, h", "% of the downloads so far", {})
        note = "downloads that found their job done, first seed"
        yield "Value attained over time", note, {"data": data, "layout": axes}


def _over_time(at: int, column: Column, times: F8, shares: Sequence[float], shape: str) -> Figure:
    """Draw shares, in percent, against times in hours."""
    x, y = [_short(time / 3600) for time in times], [_short(100 * share) for share in shares]
    return _trace(at, column, x, y) | {"line": _look(at, column, shape)}


def _trace(at: int, column: Column, x: list[float], y: list[float]) -> dict[str, Any]:
    name = {"name": column.label, "meta": at}
    return {"type": "scatter", "mode": "lines", **name, "x": x, "y": y, "marker": {}}


def _look(at: int, column: Column, shape: str) -> dict[str, Any]:
    dash = line(at, column.is_baseline)["line"]["dash"]
    return {"width": 1.6, "dash": dash, "shape": shape}


def _nearly_all(trace: Figure) -> float:
    """Up to where 99 % of a curve's values lie: the few beyond would squeeze them."""
    return float(next(x for x, y in zip(trace["x"], trace["y"], strict=True) if y >= 0.99))


def _is_positive(data: Sequence[Figure]) -> bool:
    return all(trace["x"][0] > 0 for trace in data)


def _layout(x: str, y: str, x_axis: dict[str, Any]) -> dict[str, Any]:
    return layout({"title": {"text": x}, **x_axis}, {"title": {"text": y}, "type": "linear"})


def _short(value: float) -> float:
    return float(f"{value:.5g}")
