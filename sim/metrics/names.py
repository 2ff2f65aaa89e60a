"""Every metric by name: its unit, its meaning and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.base.errors import InputError, unknown

UTILIZATION = "utilization_"
"""Prefix of the metrics that each resource of the cluster has."""


@dataclass(frozen=True)
class Metric:
    """What a metric is.

    Attributes
    ----------
    unit : str
        ``s``, or ``1`` for ratios and fractions.
    better : {"lower", "higher"}
        Which way is better.
    meaning : str
        One line for people.
    against_baseline : bool
        Whether it compares a run with the baseline's.
    """

    unit: str
    better: Literal["lower", "higher"]
    meaning: str
    against_baseline: bool = False


METRICS: dict[str, Metric] = {
    "jct_mean_s": Metric("s", "lower", "mean job completion time (finish - submit)"),
    "jct_p50_s": Metric("s", "lower", "median job completion time"),
    "jct_p90_s": Metric("s", "lower", "90th percentile of job completion times"),
    "jct_p99_s": Metric("s", "lower", "99th percentile of job completion times"),
    "slowdown_mean": Metric("1", "lower", "mean of completion time over critical path length"),
    "wait_mean_s": Metric("s", "lower", "mean time from submission to the first task's start"),
    "makespan_s": Metric("s", "lower", "last completion - first submission"),
    "utilization": Metric("1", "higher", "work done over capacity × makespan, of the bottleneck"),
    "jain_10s": Metric("1", "higher", "Jain's fairness index of the queues, windows of 10 s"),
    "jain_60s": Metric("1", "higher", "Jain's fairness index of the queues, windows of 60 s"),
    "jain_240s": Metric("1", "higher", "Jain's fairness index of the queues, windows of 240 s"),
    "jobs_failed": Metric("1", "lower", "fraction of the jobs that failed"),
    "gap_lb_p50": Metric("1", "lower", "median of completion time over lower bound - 1"),
    "gap_lb_p90": Metric("1", "lower", "90th percentile of completion time over lower bound - 1"),
    "value_attained": Metric("1", "higher", "fraction of downloads that came after completion"),
    "deadlines_missed": Metric("1", "lower", "fraction missed, of the jobs with a deadline"),
    "allocation_above_oracle": Metric(
        "1", "lower", "guaranteed tokens above ceil(work / deadline)"
    ),
    "prediction_error_p50": Metric("1", "lower", "median of |estimate - size| over size of jobs"),
    "prediction_error_p90": Metric("1", "lower", "90th percentile of |estimate - size| over size"),
    "tasks_local": Metric("1", "higher", "fraction of the tasks that ran where their input lies"),
    "jct_speedup_mean": Metric(
        "1", "higher", "the baseline's mean completion time over this one's", True
    ),
    "jct_speedup_p50": Metric(
        "1", "higher", "median over jobs of the baseline's completion time over this one's", True
    ),
}
"""In the order in which tables show them."""

OF_JOBS_ALONE: dict[str, Metric] = {
    "makespan_mean_s": Metric("s", "lower", "mean makespan of jobs that run alone"),
    "gap_tight_lb_p50": Metric("1", "lower", "median of makespan over the tighter bound - 1"),
    "gap_tight_lb_p90": Metric("1", "lower", "90th percentile of makespan over that bound - 1"),
}
"""What `sim.measures.alone` adds."""


def names(resources: tuple[str, ...] = ()) -> list[str]:
    """List the names of all metrics, those of the given resources included."""
    return [*METRICS, *(UTILIZATION + r for r in resources)]


def metric(name: str) -> Metric:
    """Look a metric up by name.

    Raises
    ------
    InputError
        If there is none of that name, naming the nearest.
    """
    for known in (METRICS, OF_JOBS_ALONE):
        if name in known:
            return known[name]
    if name.startswith(UTILIZATION) and len(name) > len(UTILIZATION):
        resource = name.removeprefix(UTILIZATION)
        return Metric("1", "higher", f"work done over capacity × makespan, of {resource}")
    raise InputError(
        unknown("metric", name, [*METRICS, f"{UTILIZATION}<resource>"]),
        rule="unknown metric",
    )
