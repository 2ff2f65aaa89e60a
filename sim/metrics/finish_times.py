"""Finish-time fairness: completion times beside those on an equal share of the cluster."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8
from sim.engine.record import Run
from sim.metrics.common import FRACTION, POSITIVE, Metric, done_mask, mean, percentiles

SLACK = 1e-9
"""Relative difference of times that is rounding alone."""

METRICS = {
    "finish_time_fairness_p95": Metric(
        "1",
        "lower",
        "95th percentile of JCT over the least time on an equal share of the cluster",
        span=POSITIVE,
    ),
    "finish_time_fairness_max": Metric(
        "1", "lower", "JCT over the least time on an equal share, of the worst job", span=POSITIVE
    ),
    "jobs_unfair": Metric(
        "1", "lower", "jobs that take longer than the least time on an equal share", span=FRACTION
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute ρ of the jobs done.

    - ``finish_time_fairness_p95``, ``finish_time_fairness_max``: percentile and maximum of ρ;
    - ``jobs_unfair``: the fraction with ρ > 1.

    ρ is the JCT over the time alone on a share of one N-th (Mahajan et al., *Themis*, NSDI 2020,
    which has the job's own users, and its run on that share; here each job has a share, N is the
    mean number of jobs that are submitted and not over while the job is, and its time there the
    lower bound max(``cp_len``, N · ``twork``): what a gang of one stage takes if its tasks share
    it, and at most what other jobs take). A job whose bound is 0 is left out.
    """
    done = done_mask(run)
    least_s = np.maximum(bounds["cp_len"], mean_present(run) * bounds["twork"])[done]
    jct = (run.job_finish - run.job_submit)[done]
    rho = jct[least_s > 0] / least_s[least_s > 0]
    p95, worst = percentiles(rho, 95, 100)
    return {
        "finish_time_fairness_p95": p95,
        "finish_time_fairness_max": worst,
        "jobs_unfair": mean(rho > 1 + SLACK),
    }


def mean_present(run: Run) -> F8:
    """Return the mean number of jobs, itself included, that are there while each job is, (J,).

    A job is there from its submission to its end, also by a failure; one that never ends stays. NaN
    for jobs that are there for no time.
    """
    begin_s = run.job_submit
    over_s = np.where(np.isfinite(run.job_finish), run.job_finish, np.inf)
    begins, ends = np.sort(begin_s), np.sort(over_s)

    def seconds(until_s: F8) -> F8:
        """Sum the times of jobs up to some times, in two parts: those that came, and went."""
        total = np.zeros(len(until_s))
        for events, sign in ((begins, 1.0), (ends[np.isfinite(ends)], -1.0)):
            count = np.searchsorted(events, until_s, "right")
            moment = np.concatenate([np.zeros(1), np.cumsum(events - begins[0])])[count]
            total += sign * (count * (until_s - begins[0]) - moment)
        return total

    is_over = np.isfinite(over_s) & (over_s > begin_s)
    n = np.full(len(begin_s), np.nan)
    lasted_s = over_s[is_over] - begin_s[is_over]
    n[is_over] = (seconds(over_s[is_over]) - seconds(begin_s[is_over])) / lasted_s
    return n
