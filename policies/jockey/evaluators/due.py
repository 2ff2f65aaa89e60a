"""Evaluator of jobs with a deadline: the outcome of each, and its minimum needs.

From these a study computes the jobs' utility, and its upper bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.evaluators import Evaluation, Simulate
from sim.workload.columns import final_deadline_s
from sim.workload.paths import critical_path_s


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Simulate once.

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`.
    table : pyarrow.Table
        A row per job with a deadline: ``submit_s``; ``finish_s`` (NaN if never); ``deadline_s``,
        the final one, from the submission; ``work_s``, the sum of its tasks' durations;
        ``shortest_s``, its critical path; ``tokens``, the cluster's number of slots;
        ``guaranteed``, true if it ever had a run limit above 0, or no limit.
    """
    result = run(workload, cluster, policy, seed=seed, record="tasks")
    columns, limits = result.workload.columns, result.limits
    assert limits is not None
    rows = np.flatnonzero(~np.isnan(columns.job_deadline))
    finish_s = np.where(result.job_failed, np.nan, result.job_finish)
    deadline_s = final_deadline_s(columns, finish_s - columns.job_submit)
    table = {
        "submit_s": columns.job_submit[rows],
        "finish_s": finish_s[rows],
        "deadline_s": deadline_s[rows],
        "work_s": columns.job_work[rows],
        "shortest_s": critical_path_s(columns)[rows],
        "tokens": np.full(len(rows), int(cluster.total[0])),
        "guaranteed": np.isin(rows, limits.filter(pc.field("tokens") > 0)["job"].to_numpy()),
    }
    return {name: float(value) for name, value in result.metrics.items()}, pa.table(table)
