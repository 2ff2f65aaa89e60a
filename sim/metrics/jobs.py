"""Metrics of jobs: completion times, and ratios to bounds, estimates and deadlines."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8, Mask
from sim.engine.record import Run
from sim.metrics.common import (
    FRACTION,
    NAN,
    POSITIVE,
    Metric,
    done_mask,
    makespan_s,
    mean,
    percentiles,
)
from sim.workload.columns import final_deadline_s
from sim.workload.utility import POINTS, utility_curve

METRICS = {
    "jct_mean_s": Metric("s", "lower", "mean job completion time (finish - submit)", span=POSITIVE),
    "jct_p50_s": Metric("s", "lower", "median job completion time", span=POSITIVE),
    "jct_p90_s": Metric("s", "lower", "90th percentile of job completion times", span=POSITIVE),
    "jct_p95_s": Metric("s", "lower", "95th percentile of job completion times", span=POSITIVE),
    "jct_p99_s": Metric("s", "lower", "99th percentile of job completion times", span=POSITIVE),
    "slowdown_mean": Metric(
        "1", "lower", "mean of completion time over critical path length", span=POSITIVE
    ),
    "slowdown_p95": Metric(
        "1", "lower", "95th percentile of completion time over that length", span=POSITIVE
    ),
    "wait_mean_s": Metric(
        "s", "lower", "mean time from submission to the first task's start", span=POSITIVE
    ),
    "wait_p50_s": Metric("s", "lower", "median of these waits", span=POSITIVE),
    "wait_p90_s": Metric("s", "lower", "90th percentile of these waits", span=POSITIVE),
    "wait_p95_s": Metric("s", "lower", "95th percentile of these waits", span=POSITIVE),
    "wait_p99_s": Metric("s", "lower", "99th percentile of these waits", span=POSITIVE),
    "makespan_s": Metric("s", "lower", "last completion - first submission", span=POSITIVE),
    "jobs_failed": Metric("1", "lower", "fraction of the jobs that failed", span=FRACTION),
    "gap_lb_p50": Metric(
        "1", "lower", "median of completion time over lower bound - 1", span=POSITIVE
    ),
    "gap_lb_p90": Metric(
        "1", "lower", "90th percentile of completion time over lower bound - 1", span=POSITIVE
    ),
    "deadlines_missed": Metric(
        "1", "lower", "fraction missed, of the jobs with a deadline", span=FRACTION
    ),
    "utility": Metric("1", "higher", "mean utility of the jobs with a deadline, 1 if met"),
    "prediction_error_p50": Metric(
        "1", "lower", "median of |estimate - size| over size of jobs", span=POSITIVE
    ),
    "prediction_error_p90": Metric(
        "1", "lower", "90th percentile of |estimate - size| over size", span=POSITIVE
    ),
    "jct_speedup_mean": Metric(
        "1",
        "higher",
        "the baseline's mean completion time over this one's",
        True,
        span=POSITIVE,
    ),
    "jct_speedup_p50": Metric(
        "1",
        "higher",
        "median over jobs of the baseline's completion time over this one's",
        True,
        span=POSITIVE,
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the metrics of jobs; JCT is finish minus submission."""
    done = done_mask(run)
    jct = run.job_finish[done] - run.job_submit[done]
    p50, p90, p95, p99 = percentiles(jct, 50, 90, 95, 99)
    gap, error = gap_lb(run, bounds["new_lb"]), prediction_error(run)
    gap_p50, gap_p90 = percentiles(gap[~np.isnan(gap)], 50, 90)
    error_p50, error_p90 = percentiles(error[~np.isnan(error)], 50, 90)
    return {
        "jct_mean_s": mean(jct),
        "jct_p50_s": p50,
        "jct_p90_s": p90,
        "jct_p95_s": p95,
        "jct_p99_s": p99,
        **waits(run, bounds["cp_len"], done),
        "makespan_s": makespan_s(run),
        "jobs_failed": mean(run.job_failed),
        "gap_lb_p50": gap_p50,
        "gap_lb_p90": gap_p90,
        **deadlines(run, done),
        "prediction_error_p50": error_p50,
        "prediction_error_p90": error_p90,
    }


def slowdown(run: Run, cp_len: F8) -> F8:
    """Compute JCT over critical path length of each job; NaN if not done, or without a path."""
    jct = np.where(done_mask(run), run.job_finish - run.job_submit, np.nan)
    return jct / np.where(cp_len > 0, cp_len, np.nan)


def waits(run: Run, cp_len: F8, jobs: Mask) -> dict[str, float]:
    """Compute the waits and slowdowns of some jobs, all of them done; by name of the metric."""
    wait = run.job_start[jobs] - run.job_submit[jobs]
    slowdowns = slowdown(run, cp_len)[jobs]
    slowdowns = slowdowns[~np.isnan(slowdowns)]
    p50, p90, p95, p99 = percentiles(wait, 50, 90, 95, 99)
    return {
        "slowdown_mean": mean(slowdowns),
        "slowdown_p95": percentiles(slowdowns, 95)[0],
        "wait_mean_s": mean(wait),
        "wait_p50_s": p50,
        "wait_p90_s": p90,
        "wait_p95_s": p95,
        "wait_p99_s": p99,
    }


def completion_of(run: Run, done: Mask, jobs: Mask) -> dict[str, float]:
    """Compute mean and tail of the JCT of some jobs, and the deadlines that they missed, if any."""
    jct = (run.job_finish - run.job_submit)[done & jobs]
    values = {"jct_mean_s": mean(jct), "jct_p95_s": percentiles(jct, 95)[0]}
    if np.isnan(run.workload.columns.job_deadline).all():
        return values
    return values | {"deadlines_missed": deadlines(run, done, jobs)["deadlines_missed"]}


def gap_lb(run: Run, new_lb: F8) -> F8:
    """Compute JCT / ``new_lb`` - 1 of each job."""
    jct = np.where(done_mask(run), run.job_finish - run.job_submit, np.nan)
    return jct / np.where(new_lb > 0, new_lb, np.nan) - 1


def prediction_error(run: Run) -> F8:
    """Compute |estimate - size| / size of each job; size is the sum of its tasks' durations."""
    size = run.workload.columns.job_work
    known = done_mask(run) & (size > 0) & np.isfinite(run.estimate_s)
    return np.abs(run.estimate_s - size) / np.where(known, size, np.nan)


def speedups(jct_s: F8, jct_baseline_s: F8) -> dict[str, float]:
    """Compare two runs of one workload, job by job.

    Parameters
    ----------
    jct_s, jct_baseline_s : (J,) float64
        Completion times of the same jobs in the same order, s; NaN for a job not done. Only jobs
        done in both runs count.

    Returns
    -------
    dict of str to float
        ``jct_speedup_mean``: mean JCT of the baseline over mean JCT; ``jct_speedup_p50``: median
        of the ratios of single jobs. Above 1 is faster than the baseline; a job that takes no time
        in both runs counts as 1.

    Raises
    ------
    ValueError
        If the two differ in length.
    """
    jct, base = np.asarray(jct_s, float), np.asarray(jct_baseline_s, float)
    if jct.shape != base.shape:
        raise ValueError(f"runs of different workloads: {len(jct)} and {len(base)} jobs")
    done = np.isfinite(jct) & np.isfinite(base)
    jct, base = jct[done], base[done]
    if len(jct) == 0:
        return {"jct_speedup_mean": NAN, "jct_speedup_p50": NAN}
    ratio = _ratio(base, jct)
    mean = _ratio(base.mean(keepdims=True), jct.mean(keepdims=True))
    return {"jct_speedup_mean": float(mean[0]), "jct_speedup_p50": float(np.median(ratio))}


def _ratio(a: F8, b: F8) -> F8:
    are_zero = (a == 0) & (b == 0)
    with np.errstate(divide="ignore"):
        out: F8 = np.where(are_zero, 1.0, a) / np.where(are_zero, 1.0, b)
    return out


def job_utility(run: Run) -> F8 | None:
    """Compute the utility of each job with a deadline, else NaN; None if no job has one.

    A job that never finishes counts as a thousand minutes late.
    """
    columns = run.workload.columns
    if np.isnan(columns.job_deadline).all():
        return None
    elapsed_s, deadline_s = _since_submission(run, done_mask(run))
    curve = utility_curve(POINTS)
    late_s = np.where(np.isfinite(elapsed_s), elapsed_s - deadline_s, curve.late_s[-1])
    return np.where(np.isnan(columns.job_deadline), np.nan, curve(late_s))


def _since_submission(run: Run, done: Mask) -> tuple[F8, F8]:
    """Return each job's time to its end, infinite if it never ends, and its final deadline, s."""
    columns = run.workload.columns
    elapsed_s = np.where(done, run.job_finish - columns.job_submit, np.inf)
    return elapsed_s, final_deadline_s(columns, elapsed_s)


def deadlines(run: Run, done: Mask, jobs: Mask | None = None) -> dict[str, float]:
    """Compute the fraction of missed deadlines, and the mean utility, of all or some jobs."""
    has_deadline = ~np.isnan(run.workload.columns.job_deadline)
    if jobs is not None:
        has_deadline &= jobs
    elapsed_s, deadline_s = (x[has_deadline] for x in _since_submission(run, done))
    utility = job_utility(run)
    return {
        "deadlines_missed": mean(~(elapsed_s <= deadline_s)),
        "utility": NAN if utility is None else mean(utility[has_deadline]),
    }
