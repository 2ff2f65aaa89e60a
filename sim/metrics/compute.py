"""From a run's columns to its metrics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8, Mask
from sim.engine.record import Run
from sim.metrics.fairness import jain
from sim.metrics.tokens import above_oracle
from sim.metrics.usage import local_share, utilization
from sim.metrics.value import value_attained
from sim.workload.columns import final_deadline_s

NAN = float("nan")
JAIN_WINDOWS_S = (10, 60, 240)


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute every metric that does not need a baseline.

    A job is *done* if it finished and did not fail; JCT is its finish minus its submission, which
    is later than in the workload if it waited for inputs.

    - ``jct_mean_s``, ``jct_p50_s``, ``jct_p90_s``, ``jct_p99_s``: mean and percentiles (linear
      interpolation) of JCT over the jobs done.
    - ``slowdown_mean``: mean over the jobs done of JCT over critical path length, which is the
      time the job would take alone on an unlimited cluster; a job of no length is left out.
    - ``wait_mean_s``: mean over the jobs done of start of the first task minus submission.
    - ``makespan_s``: last finish of the jobs done minus first submission of all.
    - ``utilization_<resource>``: Σ duration × demand of the tasks done, over capacity × makespan;
      ``utilization``: the largest of them. See `sim.metrics.usage.utilization`.
    - ``jain_10s``, ``jain_60s``, ``jain_240s``: Jain's index of the queues' allocations over
      their shares, averaged over windows of that length in which every queue has demand. See
      `sim.metrics.fairness.jain`.
    - ``jobs_failed``: failed jobs over all jobs.
    - ``gap_lb_p50``, ``gap_lb_p90``: percentiles over the jobs done of JCT / ``new_lb`` - 1, with
      ``new_lb`` of `sim.bounds.lower_bound`; a job whose bound is 0 is left out.
    - ``value_attained``: of all downloads of the workload, the fraction that came at or after the
      completion of their job; a job that failed attains none. NaN where there are no downloads.
    - ``deadlines_missed``: of the jobs with a deadline, the fraction that finished after it or
      never; where it changes, the one counts that holds when the job ends. NaN where there are
      none.
    - ``allocation_above_oracle``: of the tokens that the policy guaranteed, the fraction that was
      above ceil(work / deadline), over the jobs that met their deadlines. See
      `sim.metrics.tokens.above_oracle`. NaN where the policy sets no limits.
    - ``prediction_error_p50``, ``prediction_error_p90``: percentiles of |estimate - size| / size
      over the jobs done whose size the policy estimated (`sim.engine.plan.Plan.estimate_s`), the
      size being the sum of its tasks' durations; a job of no size is left out.
    - ``tasks_local``: of the tasks whose input lies on some machine
    (`sim.workload.schema.INPUT_HOME`),
      the fraction that ran there. NaN where there are none.

    A mean or percentile over no jobs is NaN.

    Parameters
    ----------
    run : Run
        What happened; its times are NaN where nothing did.
    bounds : mapping of str to (J,) float64
        Lower bounds of its jobs, s, with ``cp_len`` and ``new_lb`` (`sim.bounds.bound_arrays`).

    Returns
    -------
    dict of str to float
        By metric name.
    """
    columns = run.workload.columns
    done = done_of(run)
    submit, finish = run.job_submit[done], run.job_finish[done]
    jct = finish - submit
    cp_len = bounds["cp_len"][done]
    p50, p90, p99 = _percentiles(jct, 50, 90, 99)
    gap, error = gap_lb(run, bounds["new_lb"]), prediction_error(run)
    gap_p50, gap_p90 = _percentiles(gap[~np.isnan(gap)], 50, 90)
    error_p50, error_p90 = _percentiles(error[~np.isnan(error)], 50, 90)
    makespan = float(finish.max() - columns.job_submit[0]) if len(finish) else NAN
    return {
        "jct_mean_s": _mean(jct),
        "jct_p50_s": p50,
        "jct_p90_s": p90,
        "jct_p99_s": p99,
        "slowdown_mean": _mean(jct[cp_len > 0] / cp_len[cp_len > 0]),
        "wait_mean_s": _mean(run.job_start[done] - submit),
        "makespan_s": makespan,
        **utilization(run, done, makespan),
        **{f"jain_{w}s": v for w, v in zip(JAIN_WINDOWS_S, jain(run, JAIN_WINDOWS_S), strict=True)},
        "jobs_failed": _mean(run.job_failed),
        "gap_lb_p50": gap_p50,
        "gap_lb_p90": gap_p90,
        "value_attained": value_attained(run),
        "deadlines_missed": _deadlines_missed(run, done),
        "allocation_above_oracle": above_oracle(run),
        "prediction_error_p50": error_p50,
        "prediction_error_p90": error_p90,
        "tasks_local": local_share(run),
    }


def gap_lb(run: Run, new_lb: F8) -> F8:
    """Compute JCT / ``new_lb`` - 1 of each job."""
    jct = np.where(done_of(run), run.job_finish - run.job_submit, np.nan)
    gap: F8 = jct / np.where(new_lb > 0, new_lb, np.nan) - 1
    return gap


def prediction_error(run: Run) -> F8:
    """Compute |estimate - size| / size of each job; size is the sum of its tasks' durations."""
    size = run.workload.columns.job_work
    known = done_of(run) & (size > 0) & np.isfinite(run.estimate_s)
    error: F8 = np.abs(run.estimate_s - size) / np.where(known, size, np.nan)
    return error


def done_of(run: Run) -> Mask:
    """Tell which jobs are done: finished, and not failed."""
    return np.isfinite(run.job_finish) & ~run.job_failed


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
        of the jobs' own ratios. Above 1 is faster than the baseline; a job that takes no time in
        both counts as 1.

    Raises
    ------
    ValueError
        If the two differ in length.
    """
    own, base = np.asarray(jct_s, float), np.asarray(jct_baseline_s, float)
    if own.shape != base.shape:
        raise ValueError(f"runs of different workloads: {len(own)} and {len(base)} jobs")
    both = np.isfinite(own) & np.isfinite(base)
    own, base = own[both], base[both]
    if len(own) == 0:
        return {"jct_speedup_mean": NAN, "jct_speedup_p50": NAN}
    ratio = _ratio(base, own)
    mean = _ratio(base.mean(keepdims=True), own.mean(keepdims=True))
    return {"jct_speedup_mean": float(mean[0]), "jct_speedup_p50": float(np.median(ratio))}


def _ratio(a: F8, b: F8) -> F8:
    same = (a == 0) & (b == 0)
    with np.errstate(divide="ignore"):
        out: F8 = np.where(same, 1.0, a) / np.where(same, 1.0, b)
    return out


def _mean(values: F8 | Mask) -> float:
    return float(values.mean()) if len(values) else NAN


def _percentiles(values: F8, *q: float) -> list[float]:
    if len(values) == 0:
        return [NAN] * len(q)
    return [float(v) for v in np.percentile(values, q)]


def _deadlines_missed(run: Run, done: Mask) -> float:
    columns = run.workload.columns
    has = ~np.isnan(columns.job_deadline)
    took = np.where(done, run.job_finish - columns.job_submit, np.inf)
    return _mean(~(took <= final_deadline_s(columns, took))[has])
