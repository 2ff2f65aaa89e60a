"""Means over seeds and how sure they are: Student's interval, and the bootstrap's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I8
from sim.base.random import stream

CONFIDENCE = 0.95
N_RESAMPLES = 10_000
_AT_ONCE = 1_000


def interval(values: Sequence[float] | ArrayLike) -> tuple[float, float, float]:
    """Mean of a metric over seeds with its 95 % confidence interval.

    The seeds are taken as independent draws, so the interval is Student's:
    ``mean ± t(0.975, n − 1) · s / √n`` with ``s`` the sample standard deviation
    (``n − 1`` in its denominator).
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    mean, half, _ = intervals(column)
    return float(mean[0]), float(mean[0] - half[0]), float(mean[0] + half[0])


def intervals(values: F8) -> tuple[F8, F8, I8]:
    """Do `interval` for many metrics at once."""
    present = ~np.isnan(values)
    n = present.sum(axis=0).astype(np.int64)
    mean = np.full(values.shape[1], math.nan)
    half = np.full(values.shape[1], math.nan)
    some = n > 0
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite mean has no interval
        mean[some] = np.where(present, values, 0.0).sum(axis=0)[some] / n[some]
        several = n > 1
        if several.any():
            deviation = np.where(present, values - mean, 0.0)[:, several]
            variance = (deviation**2).sum(axis=0) / (n[several] - 1)
            half[several] = _t_quantile(n[several] - 1) * np.sqrt(variance / n[several])
    return mean, half, n


def _t_quantile(degrees: I8) -> F8:
    """Two-sided 95 % quantile of Student's t, shape of `degrees`."""
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    quantile: F8 = stdtrit(degrees.astype(np.float64), 0.5 + CONFIDENCE / 2)
    return quantile


def bootstrap_interval(strata: Sequence[F8]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of all values, each stratum resampled within itself.

    The percentile interval is too narrow for few values, for two reasons that are mended here
    after Hesterberg (*What teachers should know about the bootstrap*, The American Statistician
    69(4), 2015): resampling n values understates their variance by (n - 1) / n, so deviations
    from a stratum's mean are stretched by √(n / (n - 1)); and the normal's quantiles are too
    small, so the percentiles are those at Φ(±t) with t Student's 97.5 % quantile for Σ (n - 1)
    degrees of freedom. For symmetric values it comes close to Student's interval; for skewed ones
    it is not symmetric, as it should be.

    Which values a resample takes is drawn once for each n (`sim.base.random.stream`) and used for
    all samples of that size, sorted: the result depends on the values alone, not on their order,
    and on no library that adds in an order of its own.
    """
    from scipy.special import ndtr, stdtrit  # 0.3 s to import: only where there is an interval

    total = np.zeros(N_RESAMPLES)
    n_values = sum(len(values) for values in strata)
    for at, values in enumerate(strata):
        n = len(values)
        mean = float(np.sort(values).mean())
        stretched = (np.sort(values) - mean) * np.sqrt(n / (n - 1))
        total += n * mean
        for deviation, times in zip(stretched, _times_taken(n, at), strict=True):
            total += deviation * times
    t = stdtrit(n_values - len(strata), 0.5 + CONFIDENCE / 2)
    low, high = np.quantile(total / n_values, [ndtr(-t), ndtr(t)])
    return float(low), float(high)


@lru_cache(maxsize=64)
def _times_taken(n: int, stratum: int) -> NDArray[np.uint16]:
    """How often each of n values is in each resample: (n, N_RESAMPLES)."""
    chance, rng = np.full(n, 1 / n), stream(0, "bootstrap", n, stratum)
    times = np.empty((n, N_RESAMPLES), dtype=np.uint16)  # a quarter of what the draws take
    for part in np.split(times, N_RESAMPLES // _AT_ONCE, axis=1):
        part[:] = rng.multinomial(n, chance, _AT_ONCE).T
    return times
