"""Evaluator of job variation over time and over space, and of load in windows.

Tables 4 and 5 of Jajoo et al., NSDI 2022. Variation over time is the minimum over six features of
σ/μ of the mean task duration, among jobs with the same feature value that ended within a window of
days before the job's arrival. Variation over space is σ₁ / (√(0.03 n) μ) of the job's own n tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from policies.slearn.task_variation import (
    jobs_over_space,
    jobs_over_time,
    load_statistics,
    window_loads,
)
from sim.base.random import stream
from sim.evaluators import Evaluation, Simulate

USES_POLICY = False

DAYS = (3, 7, 14)
"""Windows over time."""


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int, sample: int = 2000
) -> Evaluation:
    """Measure the variation of a sample of the jobs.

    The sample is drawn from the jobs submitted at least the longest window after the first record
    of history or workload; from all jobs if there are none.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the seed draws the sample.
    sample : int
        Maximum number of jobs.

    Returns
    -------
    metrics : dict of str to float
        ``over_time_<days>d_p50``, ``_p90`` (NaN if no job has similar ones), ``over_space_p50``,
        ``_p90`` (NaN where no job has several tasks), ``thin`` (share of jobs of 1 or 2 tasks),
        and in a cluster of slots ``load_average``, ``load_p50``, ``load_p90``, ``load_max``.
    table : pyarrow.Table
        A row per job of the sample: ``job``, ``over_time_<days>d``, ``over_space``.
    """
    columns = workload.columns
    submit_s = columns.job_submit
    first_s = min(
        float(submit_s[0]), *columns.features.history_column("submit_s").tolist(), float("inf")
    )
    late = np.flatnonzero(submit_s >= first_s + max(DAYS) * 86_400.0)
    eligible = late if len(late) else np.arange(workload.n_jobs)
    rows = np.sort(stream(seed, "variation").permutation(eligible)[:sample])
    stages = columns.job_stage0[rows]
    variations = {
        f"over_time_{days}d": jobs_over_time(workload, days * 86_400.0, stages) for days in DAYS
    }
    variations["over_space"] = jobs_over_space(workload)[rows]
    metrics: dict[str, float] = {}
    for name, numbers in variations.items():
        known = numbers[~np.isnan(numbers)]
        for percent in (50, 90):
            value = float(np.quantile(known, percent / 100)) if len(known) else float("nan")
            metrics[f"{name}_p{percent}"] = value
    metrics["thin"] = float((columns.job_n_tasks < 3).mean())
    if cluster.unit:
        load = window_loads(submit_s, columns.job_work, float(cluster.total[0]))
        metrics |= load_statistics(load)
    return metrics, pa.table({"job": rows.astype(np.int32), **variations})
