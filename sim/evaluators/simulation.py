"""Default evaluator: simulate the workload under the policy on the cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.evaluators import Evaluation, Simulate
from sim.metrics.groups import check_keys, compute_by
from sim.metrics.usage import tasks_over_time, utilization_over_time
from sim.metrics.value import value_over_time

MAX_TASKS_DRAWN = 1_000_000
"""Maximum number of tasks for which utilization over time is stored."""


def evaluate(
    run: Simulate,
    workload: Any,
    cluster: Any,
    policy: Any,
    seed: int,
    *,
    by: Sequence[str] = (),
) -> Evaluation:
    """Simulate once.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        See `sim.evaluators.evaluate`.
    by : sequence of str
        Keys of jobs, such as ``queue``: waits, slowdowns and stops of each group, too
        (`sim.metrics.groups`); ``metrics.by=queue`` of a sweep.

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`, and with `by` `sim.metrics.groups`.
    jobs : pyarrow.Table
        A row per job: ``submit_s``, ``start_s``, ``finish_s`` (NaN if never), ``failed`` (bool),
        ``eligible_s`` if jobs wait for begin times or each other,
        ``estimate_s`` (the policy's estimate of the job's size; NaN for none), ``slowdown``,
        ``gap_lb`` and ``prediction_error`` (float32, see `sim.metrics`); ``utility`` (float32) if
        jobs have deadlines, ``worth`` (float32) if the policy sets it. Its metadata has, as JSON,
        ``utilization`` and ``tasks`` (`sim.metrics.usage`), where the workload is small enough,
        and ``value`` (`sim.metrics.value`), where it has downloads.
    """
    check_keys(workload, by)
    result = run(workload, cluster, policy, seed=seed, record="tasks")
    has_series = workload.n_tasks <= MAX_TASKS_DRAWN
    jobs = {
        "submit_s": result.job_submit,
        "start_s": result.job_start,
        "finish_s": result.job_finish,
        "failed": result.job_failed,
        "estimate_s": result.estimate_s,
        "slowdown": result.slowdown.astype(np.float32),
        "gap_lb": result.gap_lb.astype(np.float32),
        "prediction_error": result.prediction_error.astype(np.float32),
    }
    if result.job_eligible is not None:
        jobs["eligible_s"] = result.job_eligible
    for name, column in (("utility", result.utility), ("worth", result.job_worth)):
        if column is not None:
            jobs[name] = column.astype(np.float32)
    series = {
        "utilization": utilization_over_time(result) if has_series else None,
        "value": value_over_time(result),
        "tasks": tasks_over_time(result),
    }
    texts = {name: json.dumps(value) for name, value in series.items() if value is not None}
    metrics = {name: float(value) for name, value in result.metrics.items()}
    if by:
        metrics |= compute_by(result.on_own_clock, result.bounds, by)
    return metrics, pa.table(jobs).replace_schema_metadata(texts)
