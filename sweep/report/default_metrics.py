"""Default metrics of a sweep's table, and a line on those that it does not show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8
from sweep.stats.cell_columns import OF_GROUPS
from sweep.stats.metric_format import format_value
from sweep.stats.summary import Summary

MAX_METRICS, MAX_GROUPS = 5, 12
EVENTS = ("work_lost_mean_s",)
"""Metrics shown wherever they are above 0."""
PRIORITY = (
    *("deadlines_missed", "value_attained", "jct_mean_s", "jct_p99_s", "gap_lb_p50"),
    *("utility", "jct_speedup_mean", "allocation_above_oracle", "prediction_error_p50"),
    *("jobs_failed", "utilization", "slowdown_mean", "wait_mean_s", "wait_p95_s", "makespan_s"),
)
"""Order of preference among metrics that the workload has and in which policies differ."""


def choose_metrics(summary: Summary, verdict_metrics: Sequence[str] = ()) -> list[str]:
    """Choose about five metrics: those of the verdicts, then `PRIORITY`, then others.

    Beside them, the work that stops have lost, if some have, and the tail of the wait of each group
    of jobs, if there are groups.
    """
    is_alone = len(summary.columns) < 2
    differ = [name for name in summary.eventful if is_alone or _differs(summary, name)]
    order = dict.fromkeys([*verdict_metrics, *PRIORITY, *differ])
    selected = [name for name in order if name in differ or name in verdict_metrics][:MAX_METRICS]
    selected += [name for name in summary.eventful if name in EVENTS]
    grouped = [name for name in summary.metrics if name.startswith(f"{OF_GROUPS}.")]
    selected += [OF_GROUPS, *grouped[:MAX_GROUPS]] if grouped else []
    available = dict.fromkeys([*verdict_metrics, *summary.metrics])
    return [name for name in available if name in selected] or [*summary.eventful[:MAX_METRICS]]


def unshown_lines(summary: Summary, shown: Sequence[str]) -> list[str]:
    """List the metrics that are equal for every policy, and count the others not shown."""
    hidden = [name for name in summary.eventful if name not in shown]
    is_alone = len(summary.columns) < 2
    same = [name for name in hidden if not is_alone and _is_same(summary, name)]
    lines = []
    if same:
        listed = ", ".join(filter(None, (_with_value(summary, name) for name in same)))
        lines.append(f"the same for every policy: {listed}")
    n_left = len(hidden) - len(same)
    if n_left:
        lines.append(f"{n_left} more metrics are in the report; metrics=all shows them here")
    return lines


def _differs(summary: Summary, metric: str) -> bool:
    """Tell whether the metric, as displayed, differs between policies at any capacity."""
    index = summary.metrics.index(metric)
    return any(
        len(_distinct_texts(metric, block.mean[k, :, index])) > 1
        for block in summary.blocks
        for k in range(len(block.capacities))
    )


def _is_same(summary: Summary, metric: str) -> bool:
    """Tell whether every policy has the metric, and as displayed the same everywhere."""
    index = summary.metrics.index(metric)
    all_have_it = not any(
        np.isnan(block.mean[:, :, index][block.n_planned > block.n_failed]).any()
        for block in summary.blocks
    )
    return all_have_it and not _differs(summary, metric)


def _distinct_texts(metric: str, means: F8) -> set[str]:
    return {format_value(metric, float(mean))[0] for mean in means[~np.isnan(means)]}


def _with_value(summary: Summary, metric: str) -> str:
    index = summary.metrics.index(metric)
    values = np.concatenate([block.mean[:, :, index].ravel() for block in summary.blocks])
    texts = _distinct_texts(metric, values)
    return f"{metric} {texts.pop()}" if len(texts) == 1 else metric
