"""Likelihood of a log's recorded starts under the simulated runs of a policy.

It is the statistic by which the nearest policy is chosen: unlike the error of the mean, in which
errors cancel, it asks of each job where it started; unlike a job's absolute error, it asks no
policy to predict what differs from run to run.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8, I8
from sweep.stats import inference
from sweep.stats.inference import Paired

N_BATCHES = 20
"""Batches of consecutive jobs that a test compares (Schmeiser: 10 to 30 of them are enough)."""


def log_likelihood(recorded_s: F8, draws_s: F8, floor_s: float) -> F8:
    """Compute the log-likelihood of each job's recorded start under simulated starts.

    The density of a job's start is the mean of a Cauchy density about each draw. Its tails are so
    heavy that a job that is ten times as far off costs 4.6 more, not a hundred times as much: no
    single job decides. The bandwidth is Silverman's, ``0.9 min(s, IQR / 1.34) R^(-1/5)``, but at
    least `floor_s`: a log whose times are whole seconds shows nothing finer.

    Parameters
    ----------
    recorded_s : (N,) float64
        Recorded starts, s.
    draws_s : (R, N) float64
        Simulated starts of R runs, s.
    floor_s : float
        Smallest bandwidth, s: the log's resolution or lag. Above 0.

    Returns
    -------
    (N,) float64
        Natural logarithms of densities in 1/s.

    Source: Silverman, *Density estimation for statistics and data analysis*, 1986, equation 3.31.
    """
    n_draws = len(draws_s)
    spread = draws_s.std(axis=0, ddof=1) if n_draws > 1 else np.zeros_like(recorded_s)
    low, high = np.quantile(draws_s, (0.25, 0.75), axis=0)
    bandwidth_s = np.maximum(floor_s, 0.9 * np.minimum(spread, (high - low) / 1.34) / n_draws**0.2)
    distance = (recorded_s - draws_s) / bandwidth_s
    density: F8 = (1.0 / (1.0 + distance**2)).mean(axis=0) / (math.pi * bandwidth_s)
    return np.log(density)


def batch_of_jobs(n_jobs: int) -> I8:
    """Return the batch of each job: consecutive jobs share one, as neighbours wait together."""
    return np.arange(n_jobs) * min(n_jobs, N_BATCHES) // max(n_jobs, 1)


def compare_policies(best: F8, other: F8) -> Paired:
    """Test whether the log-likelihoods of two policies differ, paired by batches of jobs.

    Jobs that wait at the same time depend on each other, so the test is not over jobs but over the
    means of `N_BATCHES` batches of consecutive submissions, nearly independent as they are long
    (Schmeiser, *Batch size effects in the analysis of simulation output*, Operations Research 30,
    1982). The estimate is in nats a job.

    Parameters
    ----------
    best, other : (N,) float64
        Log-likelihoods of jobs in the order of submission.
    """
    batch = batch_of_jobs(len(best))
    size = np.bincount(batch)
    means = [np.bincount(batch, weights=values) / size for values in (best, other)]
    return inference.difference(means[0], means[1])
