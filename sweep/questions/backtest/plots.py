"""Plots of a backtest: waits over time, by tasks and job by job, and the queue's length."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import html
from sim.base.arrays import F8, I8
from sweep.report.plots import layout
from sweep.report.section import Plot

RECORDED = -1
"""Colour number of recorded values: that of text (`sim/base/html/page.js`)."""
N_WINDOWS, N_QUEUE_WINDOWS = 48, 240
"""Windows of time of the plots of waits and of the queue's length."""
MAX_JOBS, MAX_SCATTERS = 600, 4
"""Jobs drawn one by one, and policies for which they are."""
MAX_RATIO = 4.0
"""Ratio of the means of a policy and the log from which on the scale is logarithmic."""
N_DECADES = 4
"""Length of a logarithmic axis."""
_UNITS = ((2 * 86400.0, 86400.0, "days"), (2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"))

Figure = dict[str, Any]


@dataclass(frozen=True)
class PolicyJobs:
    """Simulated starts of the log's N jobs under one policy, s."""

    label: str
    start_s: F8  # median over the runs
    low_s: F8  # 95 % of the runs lie between low and high
    high_s: F8
    first_s: F8  # of the first run


@dataclass(frozen=True)
class BacktestJobs:
    """Jobs of a log, and the simulated starts of each policy."""

    submit_s: F8
    start_s: F8
    tasks: I8
    policies: tuple[PolicyJobs, ...]

    @property
    def wait_s(self) -> F8:
        """Recorded waits, s."""
        wait: F8 = self.start_s - self.submit_s
        return wait

    @classmethod
    def from_table(cls, table: pa.Table) -> BacktestJobs:
        """Read ``backtest_jobs.parquet``: the jobs of one policy after those of another."""
        encoded = table["policy"].combine_chunks().dictionary_encode()
        codes, labels = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
        rows = {label: np.flatnonzero(codes == code) for code, label in enumerate(labels)}
        values = {name: table[name].to_numpy() for name in table.column_names if name != "policy"}
        first = next(iter(rows.values()), np.zeros(0, np.int64))
        names = ("start_s", "low_start_s", "high_start_s", "first_start_s")
        return cls(
            values["submit_s"][first],
            values["recorded_start_s"][first],
            values["tasks"][first],
            tuple(
                PolicyJobs(label, *(values[name][index] for name in names))
                for label, index in rows.items()
            ),
        )


def draw_plots(jobs: BacktestJobs, nearest: str, resolution_s: float) -> tuple[Plot, ...]:
    """Draw the plots of a backtest.

    Parameters
    ----------
    jobs : BacktestJobs
        Jobs in the order of submission.
    nearest : str
        Label of the policy whose jobs are drawn first.
    resolution_s : float
        Resolution of the log, s: the shortest wait on a logarithmic scale.
    """
    if not len(jobs.submit_s):
        return ()
    median = "of each job the median over the runs"
    return (
        Plot("Mean wait over time", _over_time(jobs), f"by submission; {median}"),
        Plot("Queue length over time", _queue_length(jobs), "jobs that wait; one run a policy"),
        Plot(
            "Mean wait by tasks of a job", _by_tasks(jobs), f"number of jobs in brackets; {median}"
        ),
        *_job_by_job(jobs, nearest, resolution_s),
    )


def _over_time(jobs: BacktestJobs) -> Figure:
    begin_s, end_s = float(jobs.submit_s[0]), float(jobs.submit_s[-1])
    edges = np.linspace(begin_s, end_s or 1.0, N_WINDOWS + 1)
    window = np.clip(np.searchsorted(edges, jobs.submit_s, "right") - 1, 0, N_WINDOWS - 1)
    count = np.bincount(window, minlength=N_WINDOWS)
    is_used = count > 0
    middle = ((edges[:-1] + edges[1:]) / 2)[is_used]

    def mean(start_s: F8) -> F8:
        total = np.bincount(window, weights=start_s - jobs.submit_s, minlength=N_WINDOWS)
        means: F8 = total[is_used] / count[is_used]
        return means

    return _lines(jobs, middle, mean(jobs.start_s), [mean(p.start_s) for p in jobs.policies])


def _queue_length(jobs: BacktestJobs) -> Figure:
    end_s = max(float(starts.max()) for starts in (jobs.start_s, *_firsts(jobs)))
    edges = np.linspace(float(jobs.submit_s[0]), end_s, N_QUEUE_WINDOWS + 1)
    lengths = [_mean_length(jobs.submit_s, start_s, edges) for start_s in _firsts(jobs)]
    recorded = _mean_length(jobs.submit_s, jobs.start_s, edges)
    return _lines(jobs, (edges[:-1] + edges[1:]) / 2, recorded, lengths, unit="jobs")


def _firsts(jobs: BacktestJobs) -> list[F8]:
    return [policy.first_s for policy in jobs.policies]


def _mean_length(submit_s: F8, start_s: F8, edges: F8) -> F8:
    """Return the mean number of waiting jobs between two edges each."""
    waited_s = _elapsed(submit_s, edges) - _elapsed(start_s, edges)
    length: F8 = np.diff(waited_s) / np.maximum(np.diff(edges), 1e-9)
    return np.maximum(length, 0.0)


def _elapsed(times_s: F8, edges: F8) -> F8:
    """Return the sum of the time since each event that is over, at each edge, s."""
    ordered = np.sort(times_s)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    count = np.searchsorted(ordered, edges, "right")
    elapsed: F8 = count * edges - sums[count]
    return elapsed


def _by_tasks(jobs: BacktestJobs) -> Figure:
    widest = int(jobs.tasks.max())
    bounds = [0, *(2**k for k in range(max(widest - 1, 0).bit_length() + 1))]
    classes = [
        (_span(low + 1, high), index)
        for low, high in pairwise(bounds)
        if len(index := np.flatnonzero((jobs.tasks > low) & (jobs.tasks <= high)))
    ]
    names = [f"{name}<br>({_count(len(index))})" for name, index in classes]

    def bars(start_s: F8) -> list[float]:
        return [_short((start_s - jobs.submit_s)[index].mean()) for _, index in classes]

    series = [("recorded", RECORDED, jobs.start_s)]
    series += [(p.label, k, p.start_s) for k, p in enumerate(jobs.policies)]
    data = [
        {
            "type": "bar", "name": name, "meta": number, "y": bars(start_s),
            "x": [*range(len(names))],
            "hovertemplate": "%{y:,.4g} s",
        }
        for name, number, start_s in series
    ]  # fmt: skip
    ticks = {"tickvals": [*range(len(names))], "ticktext": names, "tickangle": 0}
    axes = layout({"title": {"text": "tasks"}, **ticks}, _y_axis("mean wait, s", data))
    return {"data": data, "layout": axes | {"barmode": "group", **_LEGEND}}


def _span(low: int, high: int) -> str:
    return str(high) if low >= high else f"{low}–{high}"


def _job_by_job(jobs: BacktestJobs, nearest: str, resolution_s: float) -> Iterator[Plot]:
    order = sorted(range(len(jobs.policies)), key=lambda k: jobs.policies[k].label != nearest)
    for number in order[:MAX_SCATTERS]:
        policy = jobs.policies[number]
        floor_s = max(resolution_s, 0.1)
        waited = np.flatnonzero(np.maximum(jobs.wait_s, policy.start_s - jobs.submit_s) > floor_s)
        note = "bars hold 95 % of the runs"
        if not len(waited):
            continue
        if len(waited) > MAX_JOBS:
            note += f"; {MAX_JOBS} of the {len(waited):,} jobs that waited"
            waited = waited[np.linspace(0, len(waited) - 1, MAX_JOBS).astype(np.int64)]
        shown = [
            np.maximum(start_s[waited] - jobs.submit_s[waited], floor_s)
            for start_s in (jobs.start_s, policy.start_s, policy.low_s, policy.high_s)
        ]
        yield Plot(f"Wait job by job: {policy.label}", _scatter(number, policy.label, shown), note)


def _scatter(number: int, label: str, shown: Sequence[F8]) -> Figure:
    recorded, simulated, low, high = shown
    ends = [_short(min(recorded.min(), low.min())), _short(max(recorded.max(), high.max()))]
    data = [
        {
            "type": "scatter", "mode": "lines", "name": "as recorded", "meta": RECORDED, "x": ends,
            "y": ends, "line": {"width": 1, "dash": "dot"}, "marker": {}, "hoverinfo": "skip",
        },
        {
            "type": "scatter", "mode": "markers", "name": label, "meta": number,
            "x": [_short(x) for x in recorded], "y": [_short(y) for y in simulated],
            "marker": {"size": 5, "symbol": html.symbol(number), "opacity": 0.7},
            "error_y": {
                "type": "data", "symmetric": False, "thickness": 0.6, "width": 0,
                "array": [_short(x) for x in high - simulated],
                "arrayminus": [_short(x) for x in simulated - low],
            },
            "hovertemplate": "recorded %{x:,.4g} s, simulated %{y:,.4g} s<extra></extra>",
        },
    ]  # fmt: skip
    scale = {"type": "log", "dtick": 1, "exponentformat": "none"}
    axes = layout(
        {"title": {"text": "recorded wait, s"}, **scale},
        {"title": {"text": "simulated wait, s"}, **scale},
    )
    return {"data": data, "layout": axes}


_LEGEND = {"showlegend": True, "legend": {"orientation": "h", "y": 1.12}}


def _lines(
    jobs: BacktestJobs, time_s: F8, recorded: F8, simulated: Sequence[F8], unit: str = ""
) -> Figure:
    """Draw lines over time; of waits, without a `unit` of their own."""
    span_s = float(time_s[-1] - time_s[0])
    unit_s, name = next(((u, n) for span, u, n in _UNITS if span_s >= span), (1.0, "s"))
    x = [_short(t / unit_s) for t in time_s]
    series = [("recorded", RECORDED, recorded)]
    series += [
        (p.label, k, y) for k, (p, y) in enumerate(zip(jobs.policies, simulated, strict=True))
    ]
    data = [
        {
            "type": "scatter", "mode": "lines", "name": label, "meta": number, "x": x,
            "y": [_short(value) for value in y],
            "line": {"width": 2.5 if number == RECORDED else 1.5, "dash": _dash(number)},
            "marker": {},
        }
        for label, number, y in series
    ]  # fmt: skip
    y_axis = _y_axis(unit or "mean wait, s", data)
    axes = layout({"title": {"text": f"time, {name}"}}, y_axis, "x unified")
    return {"data": data, "layout": axes | _LEGEND}


def _y_axis(title: str, data: Sequence[Figure]) -> dict[str, Any]:
    """Return an axis of values, logarithmic if some series would squeeze the recorded one."""
    means = [sum(trace["y"]) / len(trace["y"]) for trace in data]
    axis: dict[str, Any] = {"title": {"text": title}, "rangemode": "tozero"}
    if max(means) > MAX_RATIO * means[0] > 0:
        top = math.log10(1.3 * max(max(trace["y"]) for trace in data))
        axis |= {"type": "log", "dtick": 1, "exponentformat": "none"}
        axis["range"] = [top - N_DECADES, top]
    return axis


def _count(n: int) -> str:
    return f"{n:,}" if n < 10_000 else f"{n / 1000:,.0f}k"


def _dash(number: int) -> str:
    return "solid" if number == RECORDED else ("dash", "dot", "dashdot", "longdash")[number % 4]


def _short(value: float) -> float:
    return float(f"{value:.4g}")
