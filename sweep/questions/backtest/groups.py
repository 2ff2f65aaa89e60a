"""Free runs by group: waits of jobs of a partition, width, user, QOS or account."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.workload.columns import job_n_tasks
from sim.workload.tables import names, values
from sim.workload.workload import Workload
from sweep.questions.backtest.compare import CONFIDENCE
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.runs_of_policy import PolicyRuns

BY = {"partition": "queue", "user": "user", "qos": "qos", "account": "account"}
"""Columns of jobs by which they are grouped, by the name of the grouping."""
WIDTH = "width"


def groups_table(workload: Workload, log: LoggedJobs, runs: Sequence[PolicyRuns]) -> pa.Table:
    """Return ``backtest_groups.parquet``: a row a policy and group of jobs.

    Groups of one kind, of which there is only one, are left out. ``error`` is that of the group's
    mean wait, over its recorded one.
    """
    rows: list[dict[str, Any]] = []
    for by, group, is_in in _groups(workload, log.job):
        recorded_s = float(log.wait_s[is_in].mean())
        for run in runs:
            means = (run.start_s[:, log.job[is_in]] - log.submit_s[is_in]).mean(axis=1)
            low, high = np.quantile(means, CONFIDENCE)
            mean_s = float(means.mean())
            rows.append(
                {
                    "policy": run.label,
                    "by": by,
                    "group": group,
                    "jobs": int(is_in.sum()),
                    "wait_mean_recorded_s": recorded_s,
                    "wait_mean_s": mean_s,
                    "low": float(low),
                    "high": float(high),
                    "error": (mean_s - recorded_s) / recorded_s if recorded_s > 0 else math.nan,
                }
            )
    return pa.Table.from_pylist(rows, _SCHEMA)


_SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("policy", "by", "group")]
    + [("jobs", pa.int64())]
    + [
        (name, pa.float64())
        for name in ("wait_mean_recorded_s", "wait_mean_s", "low", "high", "error")
    ]
)


def _groups(workload: Workload, job: I8) -> Iterator[tuple[str, str, Any]]:
    """Yield each group as kind, name and flags of the logged jobs in it."""
    for by, column in BY.items():
        if column not in workload.jobs.column_names:
            continue
        code, known = values(workload.jobs, column)[job], names(workload.jobs, column)
        shown = [c for c in np.unique(code).tolist() if known[c]]
        if len(shown) > 1:
            yield from ((by, known[c], code == c) for c in shown)
    level = np.ceil(np.log2(np.maximum(width_of(workload)[job], 1.0))).astype(np.int64)
    shown = np.unique(level).tolist()
    if len(shown) > 1:
        yield from ((WIDTH, _between(k), level == k) for k in shown)


def width_of(workload: Workload) -> F8:
    """Return the CPUs of each job, or its tasks, if these demand none, (J,)."""
    columns_ = workload.columns
    if "cpu" in columns_.resources:
        cpus = columns_.stage_demand_f[:, columns_.resources.index("cpu")]
        total = np.bincount(columns_.stage_job, cpus * columns_.stage_n_tasks, workload.n_jobs)
        if total.any():
            return total.astype(np.float64)
    return job_n_tasks(workload).astype(np.float64)


def _between(k: int) -> str:
    """Write a power of two and what is above the one before.

    >>> [_between(k) for k in (0, 1, 2, 4)]
    ['1', '2', '3-4', '9-16']
    """
    low, high = 2 ** (k - 1) + 1 if k > 0 else 1, 2**k
    return str(high) if low >= high else f"{low:.0f}-{high}"


MIN_JOBS, N_WORST = 5, 3


def group_sentences(table: pa.Table) -> list[str]:
    """Write, for each policy, the groups whose recorded and simulated waits are farthest apart.

    By the error times the jobs: groups of at least `MIN_JOBS` jobs that the runs' range misses.
    """
    lines = []
    rows = table.to_pylist()
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy and row["jobs"] >= MIN_JOBS]
        outside = [r for r in own if not r["low"] <= r["wait_mean_recorded_s"] <= r["high"]]
        outside = [row for row in outside if math.isfinite(row["error"])]
        worst = sorted(outside, key=lambda row: -abs(_wrong_s(row)))[:N_WORST]
        if not own:
            continue
        if not worst:
            lines.append(
                f"{policy}: no group's recorded mean wait is outside the range of its runs"
            )
            continue
        parts = [
            f"{row['by']} {row['group']} {100 * row['error']:+,.0f} % ({row['jobs']:,} jobs)"
            for row in worst
        ]
        text = ", ".join(parts).replace("-", "−")
        lines.append(f"{policy}: most of the error is in {text}")
    return lines


def _wrong_s(row: dict[str, Any]) -> float:
    return float((row["wait_mean_s"] - row["wait_mean_recorded_s"]) * row["jobs"])
