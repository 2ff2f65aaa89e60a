"""Comparison of a policy's simulated runs with a log: errors of means, jobs and order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8
from sweep.questions.backtest.logged_jobs import LoggedJobs
from sweep.questions.backtest.order import pairs_in_order

WITHIN = 0.1
"""Share of a job's own recorded wait within which its simulated one counts as right."""
CONFIDENCE = (0.025, 0.975)


@dataclass(frozen=True)
class Comparison:
    """A policy's runs beside the log; the means of runs where not said otherwise."""

    wait_mean_s: float  # mean wait of all jobs, s
    low: float  # 95 % of the runs' mean waits lie between low and high, s
    high: float
    error: float  # (wait_mean_s - recorded) / recorded
    mae: float  # mean absolute error of a job's wait, over the recorded mean wait
    # mean absolute difference of a job's waits in two runs, over the recorded mean wait
    mae_between_runs: float
    waited_within_10pct: float  # share of the jobs that waited; see `share_within`
    pairs_in_order: float  # see `sweep.questions.backtest.order`
    # share of jobs whose recorded start lies in the range of the runs'; of R runs of the scheduler
    # itself it would be (R - 1) / (R + 1)
    in_range: float
    completion_mean_recorded_s: float  # mean of finish - submit of jobs whose end is recorded
    completion_mean_s: float
    completion_error: float
    completion_mae: float


def compare(log: LoggedJobs, start_s: F8, finish_s: F8) -> Comparison:
    """Compare simulated runs with the log.

    Parameters
    ----------
    log : LoggedJobs
        The log's N jobs.
    start_s, finish_s : (R, N) float64
        Starts and ends of the same jobs in R runs, s.
    """
    wait_s = start_s - log.submit_s
    means = wait_s.mean(axis=1)
    low, high = np.quantile(means, CONFIDENCE)
    wait_mean_s = float(means.mean())
    recorded_mean_s = float(log.wait_s.mean())
    difference_s = np.abs(wait_s - log.wait_s)
    orders = [pairs_in_order(log.start_s, run, log.grace_s) for run in start_s]
    first, last = start_s.min(axis=0), start_s.max(axis=0)
    in_range = (log.start_s >= first - log.resolution_s) & (log.start_s <= last + log.resolution_s)
    return Comparison(
        wait_mean_s,
        float(low),
        float(high),
        _over(wait_mean_s - recorded_mean_s, recorded_mean_s),
        _over(float(difference_s.mean()), recorded_mean_s),
        _over(between_runs_s(start_s), recorded_mean_s),
        share_within(log, difference_s),
        float(np.mean(orders)),
        float(in_range.mean()),
        *_completion(log, finish_s),
    )


def share_within(log: LoggedJobs, difference_s: F8) -> float:
    """Compute the share of the jobs that waited whose wait is within 10 % of the recorded one.

    A difference of the log's resolution is none. NaN if nobody waited.
    """
    waited = log.waited
    if not waited.any():
        return math.nan
    limit_s = np.maximum(WITHIN * log.wait_s[waited], log.resolution_s)
    return float((difference_s[:, waited] <= limit_s).mean())


def between_runs_s(start_s: F8) -> float:
    """Compute the mean absolute difference of a job's starts in two of R runs, s; NaN for one."""
    n_runs = len(start_s)
    if n_runs < 2:
        return math.nan
    # the sum over pairs: the k-th smallest is subtracted R - 1 - k times and added k times
    weight = 2.0 * np.arange(n_runs) - (n_runs - 1)
    sums = weight @ np.sort(start_s, axis=0)
    return float(sums.mean()) / (n_runs * (n_runs - 1) / 2)


def _completion(log: LoggedJobs, finish_s: F8) -> tuple[float, float, float, float]:
    """Return recorded and simulated mean completion, s; error; mean absolute error; NaN if none."""
    known = ~np.isnan(log.finish_s)
    if not known.any():
        return math.nan, math.nan, math.nan, math.nan
    submit_s = log.submit_s[known]
    real_s, simulated_s = log.finish_s[known] - submit_s, finish_s[:, known] - submit_s
    mean_s, simulated_mean_s = float(real_s.mean()), float(simulated_s.mean())
    mae_s = float(np.abs(simulated_s - real_s).mean())
    return (
        mean_s,
        simulated_mean_s,
        _over(simulated_mean_s - mean_s, mean_s),
        _over(mae_s, mean_s),
    )


def _over(value: float, mean: float) -> float:
    return value / mean if mean > 0 else math.nan
