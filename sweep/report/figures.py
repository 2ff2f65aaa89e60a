"""Charts of a sweep for notebooks and papers: a metric by capacity, distributions over jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sim.base import html
from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sweep.report import plots
from sweep.report.drawing import Chart, Panel
from sweep.stats.metric_format import style
from sweep.stats.summary import Block, Summary

Names = Sequence[str] | Mapping[str, str] | None
"""Policies or traces to show, in this order; a mapping also says by which names."""
Size = tuple[float, float] | None

QUANTITIES = {
    "jct_s": "job completion time (s)",
    "slowdown": "completion time over critical path length",
    "wait_s": "time from submission to the first start (s)",
    "gap_lb": "completion time over lower bound - 1",
}
"""Quantities of a job that have a distribution, and the titles of their axes."""
N_STEPS = 1_000
"""Largest number of steps of a curve."""


def shown_policies(labels: Sequence[str], names: Names) -> dict[str, str]:
    """Map each policy to show to its name, in order; all as they are without `names`.

    Raises
    ------
    InputError
        If one is not a policy of the sweep, or if two would have the same name.
    """
    if names is None:
        return {label: label for label in labels}
    shown = _by_name(names)
    for label in shown:
        if label not in labels:
            raise InputError(unknown("policy of this sweep", label, labels))
    if len(set(shown.values())) < len(shown) or not shown:
        raise InputError(
            f"policies={names!r}: name at least one policy, each by a name of its own",
            rule="names of policies",
        )
    return shown


def _by_name(names: Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Map what is chosen to the names by which it is shown."""
    chosen = [names] if isinstance(names, str) else names
    return dict(chosen) if isinstance(chosen, Mapping) else {name: name for name in chosen}


def shown_panels(panels: Sequence[Panel], traces: Names) -> list[Panel]:
    """Choose the panels of some traces, in their order and by their names; all without `traces`.

    A trace of several settings has several panels: its name replaces the beginning of each title.

    Raises
    ------
    InputError
        If one is not a trace of the sweep.
    """
    if traces is None:
        return [*panels]
    shown = []
    for trace, name in _by_name(traces).items():
        ours = [p for p in panels if p.title == trace or p.title.startswith(f"{trace}, ")]
        if not ours:
            raise InputError(unknown("trace of this sweep", trace, [p.title for p in panels]))
        shown += [replace(panel, title=name + panel.title.removeprefix(trace)) for panel in ours]
    return shown


def by_capacity(
    summary: Summary,
    metric: str,
    *,
    policies: Names = None,
    traces: Names = None,
    log: bool = False,
    share_y: bool = False,
    size: Size = None,
) -> Chart:
    """Chart a metric against capacity: a panel a trace, a line a policy, 95 % intervals of means.

    With one capacity each policy is a bar.

    Raises
    ------
    InputError
        On an unknown metric, policy or trace.
    """
    if metric not in summary.metrics:
        raise InputError(unknown("metric of these cells", metric, summary.metrics))
    shown = shown_policies([column.label for column in summary.columns], policies)
    panels = []
    for block in summary.blocks:
        drawn = plots.figure(summary, block, metric, block.half)["data"]
        lines = {trace["name"]: trace for trace in drawn}
        renamed = [
            _renamed(lines[label], number, name)
            for number, (label, name) in enumerate(shown.items())
            if label in lines
        ]
        panels.append(Panel(block.title, renamed, _ticks(block)))
    unit = style(metric).unit
    title = f"{style(metric).label} ({unit})" if unit else style(metric).label
    is_log = log or plots.is_log(metric)
    chosen = shown_panels(panels, traces)
    return Chart(chosen, "capacity", title, log_y=is_log, share_y=share_y, size=size)


def caption(summary: Summary, name: str) -> str:
    """Write a caption of a chart: what it shows, over how many seeds, by which interval.

    Parameters
    ----------
    summary : Summary
        The sweep's.
    name : str
        A metric, or a quantity of `QUANTITIES`.

    Raises
    ------
    InputError
        On an unknown metric.
    """
    n = len(summary.seeds)
    seeds = f"{n} draws of the log" if summary.is_bootstrap else f"{n} seed{'s' * (n != 1)}"
    place = " against capacity" if len(summary.capacities) > 1 else ""
    if name in QUANTITIES:
        title = QUANTITIES[name]
        return f"{title[:1].upper()}{title[1:]}: its distribution over the jobs of {seeds}."
    if name not in summary.metrics:
        raise InputError(unknown("metric of these cells", name, [*summary.metrics, *QUANTITIES]))
    title = f"{style(name).label}{place}"
    bars = "; the bars are 95 % intervals (Student's t)" if n > 1 and not summary.is_same else ""
    if summary.is_bootstrap:
        bars = "; the bars are 95 % intervals of another log of this length" * (n > 1)
    return f"{title[:1].upper()}{title[1:]}: means over {seeds}{bars}."


def _ticks(block: Block) -> Sequence[float]:
    return block.capacities if len(block.capacities) > 1 else ()


def _renamed(trace: dict[str, Any], number: int, name: str) -> dict[str, Any]:
    """Give a policy's trace its name, and the number that its colour and marker follow."""
    renamed = {**trace, "name": name, "meta": number}
    if trace["type"] == "bar":
        return {**renamed, "x": [name]}
    return {**renamed, "marker": {**trace["marker"], "symbol": html.symbol(number)}}


def distributions(
    panels: Sequence[tuple[str, Mapping[str, F8]]],
    quantity: str,
    *,
    policies: Mapping[str, str],
    traces: Names = None,
    log: bool = True,
    size: Size = None,
) -> Chart:
    """Chart the distribution over jobs: a panel a trace, a cumulative curve a policy.

    Parameters
    ----------
    panels : sequence of (title, dict of policy to (J,) float64)
        Values of the jobs of all seeds, NaN for none.
    quantity : str
        One of `QUANTITIES`, or a column of the evaluator's table.
    policies : mapping
        What `shown_policies` returns.
    traces : sequence or mapping of str, optional
        As of `shown_panels`.
    log : bool
        Logarithmic x axis; values of 0 and less are then left of it, but count in the shares.
    size : (float, float), optional
        Width and height in inches.
    """
    drawn = []
    for title, values_by_policy in panels:
        lines = []
        for number, (label, name) in enumerate(policies.items()):
            values = np.sort(values_by_policy.get(label, np.empty(0)))
            values = values[np.isfinite(values)]
            if len(values):
                lines.append(_curve(values, number, name, log=log))
        drawn.append(Panel(title, lines))
    chosen = shown_panels(drawn, traces)
    axis = QUANTITIES.get(quantity, quantity.replace("_", " "))
    return Chart(chosen, axis, "share of jobs", log_x=log, share_y=True, size=size)


def _curve(values: F8, number: int, name: str, *, log: bool) -> dict[str, Any]:
    """Draw the empirical distribution of sorted values as steps, at most `N_STEPS` of them."""
    n = len(values)
    x = np.unique(values[np.linspace(0, n - 1, min(n, N_STEPS)).astype(np.int64)])
    share = np.searchsorted(values, x, side="right") / n
    x, share = (x[x > 0], share[x > 0]) if log else (x, share)
    line = {"width": 1.6, "shape": "hv", "dash": "solid"}
    fields = {"type": "scatter", "mode": "lines", "name": name, "meta": number, "line": line}
    return {**fields, "x": x.tolist(), "y": share.tolist()}
