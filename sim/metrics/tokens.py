"""Run limits over time: the tokens guaranteed to each job, and their excess over its need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.base.arrays import F8, I4
from sim.engine.plan import NO_LIMIT
from sim.engine.record import LimitsSet, Run
from sim.metrics.common import FRACTION, Metric
from sim.workload.columns import final_deadline_s
from sim.workload.schema import CPU
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload

METRICS = {
    "allocation_above_oracle": Metric(
        "1",
        "lower",
        "guaranteed tokens above ceil(CPU time / deadline)",
        span=FRACTION,
    )
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the share of guaranteed tokens above the oracle's."""
    return {"allocation_above_oracle": above_oracle(run, cpu_s(run.workload))}


def limit_changes(limits_set: Sequence[LimitsSet], submit_s: F8, finish_s: F8) -> tuple[I4, F8, I4]:
    """Return job, time and tokens of each change of a limit during a job, by job and time."""
    parts = [(np.full(len(rows), time), rows, limit) for time, rows, limit in limits_set]
    if not any(len(rows) for _, rows, _ in parts):
        return np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32)
    time_s, job, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(job, kind="stable")  # by time within a job, as they were set
    time_s, job, tokens = np.fmax(time_s, submit_s[job])[order], job[order], tokens[order]
    is_replaced = np.append((job[1:] == job[:-1]) & (time_s[1:] == time_s[:-1]), False)
    is_late = time_s > np.where(np.isfinite(finish_s[job]), finish_s[job], np.inf)
    keep = ~(is_replaced | is_late)
    return job[keep], time_s[keep], tokens[keep]


def cpu_s(workload: Workload) -> F8:
    """Return the CPU time of each job, (J,) s: ``jobs.cpu_s``, or the sum of task durations."""
    recorded = column_or_default(workload.jobs, CPU)
    return np.where(np.isnan(recorded), workload.columns.job_work, recorded)


def above_oracle(run: Run, needed_s: F8) -> float:
    """Return the fraction of the guaranteed tokens that was above the oracle's allocation.

    For a job that needs T token-seconds, `needed_s` (J,), and must end within d, the oracle
    allocates the smallest constant number of tokens, O = ceil(T / d). The fraction above it is the
    integral of max(0, A - O) over that of A, the run limit, from submission to end (Jockey, EuroSys
    2012, §5.1: T is CPU time). The mean over the jobs that met their deadline and had a limit
    throughout; NaN without such jobs.
    """
    columns = run.workload.columns
    job, time_s, tokens = limit_changes(run.limits_set, run.job_submit, run.job_finish)
    until = np.append(time_s[1:], 0.0)
    last = np.append(job[1:] != job[:-1], True)[: len(job)]
    until[last] = run.job_finish[job[last]]
    span_s = until - time_s
    elapsed_s = run.job_finish - columns.job_submit
    deadline_s = final_deadline_s(columns, elapsed_s)
    oracle = np.ceil(needed_s / deadline_s)
    above = np.bincount(job, np.maximum(tokens - oracle[job], 0.0) * span_s, len(oracle))
    guaranteed = np.bincount(job, tokens * span_s, len(oracle))
    is_limited = np.bincount(job, tokens == NO_LIMIT, len(oracle)) == 0
    is_met = (elapsed_s <= deadline_s) & ~run.job_failed
    counts = is_met & is_limited & (guaranteed > 0)
    return float(np.mean(above[counts] / guaranteed[counts])) if counts.any() else float("nan")
