"""Run limits over time: the tokens guaranteed to each job, and how far above its need they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.base.arrays import F8, I4
from sim.engine.plan import NO_LIMIT
from sim.engine.record import LimitsSet, Run
from sim.metrics.common import Metric
from sim.workload.columns import column_or_default, final_deadline_s
from sim.workload.schema import CPU
from sim.workload.workload import Workload

METRICS = {
    "allocation_above_oracle": Metric(
        "1", "lower", "guaranteed tokens above ceil(CPU time / deadline)"
    )
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute how far guaranteed tokens were above what was needed."""
    return {"allocation_above_oracle": above_oracle(run, cpu_s(run.workload))}


def limit_changes(limits_set: Sequence[LimitsSet], submit_s: F8, finish_s: F8) -> tuple[I4, F8, I4]:
    """Return the limits that held while a job was there, by job and time."""
    parts = [(np.full(len(rows), time), rows, limit) for time, rows, limit in limits_set]
    if not any(len(rows) for _, rows, _ in parts):
        return np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32)
    time_s, job, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(job, kind="stable")  # by time within a job, as they were set
    time_s, job, tokens = np.fmax(time_s, submit_s[job])[order], job[order], tokens[order]
    replaced = np.append((job[1:] == job[:-1]) & (time_s[1:] == time_s[:-1]), False)
    gone = time_s > np.where(np.isfinite(finish_s[job]), finish_s[job], np.inf)
    keep = ~(replaced | gone)
    return job[keep], time_s[keep], tokens[keep]


def cpu_s(workload: Workload) -> F8:
    """Return what the tasks of each job execute, (J,) s: ``jobs.cpu_s``, or all that they last."""
    said = column_or_default(workload.jobs, CPU)
    return np.where(np.isnan(said), workload.columns.job_work, said)


def above_oracle(run: Run, needed_s: F8) -> float:
    """Return how much of what was guaranteed to jobs was more than they needed: a fraction.

    Of a job that needs T seconds of a token, of `needed_s` (J,), and must end within d, the least
    constant number of tokens that could do is the oracle's, O = ceil(T / d); what is above is the
    integral of max(0, A - O) over that of A, the run limit, from submission to end (Jockey, EuroSys
    2012, §5.1: T is CPU time). The mean over the jobs that met their deadline and had a limit
    throughout; NaN where there are none.
    """
    columns = run.workload.columns
    job, time_s, tokens = limit_changes(run.limits_set, run.job_submit, run.job_finish)
    until = np.append(time_s[1:], 0.0)
    last = np.append(job[1:] != job[:-1], True)[: len(job)]
    until[last] = run.job_finish[job[last]]
    lasts = until - time_s
    took = run.job_finish - columns.job_submit
    deadline_s = final_deadline_s(columns, took)
    oracle = np.ceil(needed_s / deadline_s)
    above = np.bincount(job, np.maximum(tokens - oracle[job], 0.0) * lasts, len(oracle))
    given = np.bincount(job, tokens * lasts, len(oracle))
    limited = np.bincount(job, tokens == NO_LIMIT, len(oracle)) == 0
    met = (took <= deadline_s) & ~run.job_failed
    counts = met & limited & (given > 0)
    return float(np.mean(above[counts] / given[counts])) if counts.any() else float("nan")
