"""Free runs by group: waits of jobs of a partition, width, user, QOS or account."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.workload.workload import Workload
from sweep.questions.backtest.compare import CONFIDENCE
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.runs_of_policy import PolicyRuns
from sweep.stats.job_groups import mean_waits


def groups_table(workload: Workload, log: LoggedJobs, runs: Sequence[PolicyRuns]) -> pa.Table:
    """Return ``backtest_groups.parquet``: a row a policy and group of jobs.

    ``error`` is that of the group's mean wait, over its recorded one. Groups are those of
    `sweep.stats.job_groups`.
    """
    recorded = mean_waits(workload, _by_row(workload, log, log.wait_s[None, :]))
    rows: list[dict[str, Any]] = []
    for run in runs:
        wait_s = run.start_s[:, log.job] - log.submit_s
        simulated = mean_waits(workload, _by_row(workload, log, wait_s))
        for real, group in zip(recorded, simulated, strict=True):
            recorded_s = float(real.wait_mean_s[0])
            low, high = np.quantile(group.wait_mean_s, CONFIDENCE)
            mean_s = float(group.wait_mean_s.mean())
            rows.append(
                {
                    "policy": run.label,
                    "by": group.by,
                    "group": group.group,
                    "jobs": group.jobs,
                    "wait_mean_recorded_s": recorded_s,
                    "wait_mean_s": mean_s,
                    "low": float(low),
                    "high": float(high),
                    "error": (mean_s - recorded_s) / recorded_s if recorded_s > 0 else math.nan,
                }
            )
    return pa.Table.from_pylist(rows, _SCHEMA)


def _by_row(workload: Workload, log: LoggedJobs, wait_s: F8) -> F8:
    """Return waits of all jobs, (R, J) s: NaN for those whose start is unknown."""
    whole = np.full((len(wait_s), workload.n_jobs), np.nan)
    whole[:, log.job] = wait_s
    return whole


_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("policy", "by", "group")]
    + [("jobs", pa.int64())]
    + [
        (name, pa.float64())
        for name in ("wait_mean_recorded_s", "wait_mean_s", "low", "high", "error")
    ]
)
