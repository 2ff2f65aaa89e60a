"""Which metrics a sweep's table shows by itself: some that matter; and which are all the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8
from sweep.stats.metric_format import format_value
from sweep.stats.summary import Summary

MOST = 5
MATTER = (
    *("deadlines_missed", "value_attained", "jct_mean_s", "jct_p99_s", "gap_lb_p50"),
    *("jct_speedup_mean", "allocation_above_oracle", "prediction_error_p50", "jobs_failed"),
    *("utilization", "slowdown_mean", "wait_mean_s", "makespan_s"),
)
"""In this order, those that the workload has and in which policies differ."""


def choose_metrics(summary: Summary, judged: Sequence[str] = ()) -> list[str]:
    """Choose about five metrics: those the verdict speaks of, then `MATTER`, then others."""
    is_alone = len(summary.columns) < 2
    differ = [name for name in summary.metrics if is_alone or _differs(summary, name)]
    order = dict.fromkeys([*judged, *MATTER, *differ])
    wanted = [name for name in order if name in differ or name in judged][:MOST]
    known = dict.fromkeys([*judged, *summary.metrics])
    return [name for name in known if name in wanted] or [*summary.metrics[:MOST]]


def unshown_lines(summary: Summary, shown: Sequence[str]) -> list[str]:
    """Say in a line what is the same for every policy, and how much else there is."""
    others = [name for name in summary.metrics if name not in shown]
    is_alone = len(summary.columns) < 2
    same = [name for name in others if not is_alone and not _differs(summary, name)]
    lines = []
    if same:
        said = ", ".join(filter(None, (_with_value(summary, name) for name in same)))
        lines.append(f"the same for every policy: {said}")
    n_left = len(others) - len(same)
    if n_left:
        lines.append(f"{n_left} more metrics: metrics=all, or the report")
    return lines


def _differs(summary: Summary, metric: str) -> bool:
    """Tell whether policies look different anywhere."""
    at = summary.metrics.index(metric)
    return any(
        len(_looks(metric, block.mean[k, :, at])) > 1
        for block in summary.blocks
        for k in range(len(block.capacities))
    )


def _looks(metric: str, means: F8) -> set[str]:
    return {format_value(metric, float(mean))[0] for mean in means[~np.isnan(means)]}


def _with_value(summary: Summary, metric: str) -> str:
    at = summary.metrics.index(metric)
    values = np.concatenate([block.mean[:, :, at].ravel() for block in summary.blocks])
    looks = _looks(metric, values)
    return f"{metric} {looks.pop()}" if len(looks) == 1 else metric
