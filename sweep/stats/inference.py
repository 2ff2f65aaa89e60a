"""Means over seeds, how sure they are; two policies compared on the (trace, seed) pairs both met.

When each number of a comparison is meaningful:

- *Estimate*: always.
- *Interval*: from `MIN_PAIRS` pairs on. With fewer a bootstrap has next to nothing to resample.
- *Test*: from `MIN_PAIRS` pairs on, and only where seeds make a difference at all. Student's
  paired test is used unless the differences are skewed; then Wilcoxon's signed-rank test, which
  can't reach 5 % with fewer than six pairs: with five it is no test, and is not reported as one.
- Pairs of several traces are not of one distribution. The interval resamples each trace's own
  seeds, so it is about these traces and no others, and the test is Wilcoxon's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
    rng = stream(0, "bootstrap", n, stratum)
    times = np.empty((n, N_RESAMPLES), dtype=np.uint16)  # a quarter of what the draws take
    for part in np.split(times, N_RESAMPLES // _AT_ONCE, axis=1):
        taken = rng.integers(n, size=(n, _AT_ONCE)) + n * np.arange(_AT_ONCE)
        part[:] = np.bincount(taken.ravel(), minlength=n * _AT_ONCE).reshape(_AT_ONCE, n).T
    return times


MIN_PAIRS = 5
"""Fewer pairs give neither an interval nor a test."""

MAX_SKEWNESS = 1.0
"""Sample skewness (in size) above which Student's test gives way to Wilcoxon's."""

ALPHA = 0.05


@dataclass(frozen=True)
class Paired:
    """What a comparison of two policies gives."""

    estimate: float  # the mean difference, or the geometric mean of the ratios; NaN for none
    low: float  # 95 % bootstrap interval; NaN with too few pairs
    high: float
    p: float  # two-sided, not corrected for other comparisons; NaN where nothing was tested
    n: int  # pairs
    # what `p` is of; "exact": every pair differs by the same, so that there is nothing to test;
    # "few": too few pairs
    test: str


def difference(own: ArrayLike, other: ArrayLike, traces: ArrayLike | None = None) -> Paired:
    """Compare by the mean of ``own - other``, in the metric's unit."""
    return _compare(np.asarray(own, float) - np.asarray(other, float), traces)


def ratio(own: ArrayLike, other: ArrayLike, traces: ArrayLike | None = None) -> Paired:
    """Compare by the geometric mean of ``own / other``.

    The geometric mean of speed-ups is the same whichever of the two is the baseline, and is not
    ruled by the trace with the longest jobs. Interval and test are those of the logarithms.
    """
    mine, theirs = np.asarray(own, float), np.asarray(other, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where((mine < 0) | (theirs < 0), math.inf, np.log(mine) - np.log(theirs))
    logs[np.isnan(mine) | np.isnan(theirs)] = math.nan
    of_logs = _compare(logs, traces)
    ends = (math.exp(of_logs.estimate), math.exp(of_logs.low), math.exp(of_logs.high))
    return Paired(*ends, of_logs.p, of_logs.n, of_logs.test)


def _compare(differences: F8, traces: ArrayLike | None) -> Paired:
    present = ~np.isnan(differences)
    values = differences[present]
    n = len(values)
    labels = np.zeros(n) if traces is None else np.asarray(traces)[present]
    if n == 0 or not np.isfinite(values).all():
        return Paired(math.nan, math.nan, math.nan, math.nan, n, "few")
    strata = [np.sort(values[labels == label]) for label in np.unique(labels)]
    # stratum by stratum, each sorted: the same bits whatever the order of the pairs
    estimate = float(sum(float(stratum.sum()) for stratum in strata) / n)
    sizes = [len(stratum) for stratum in strata]
    if min(sizes) >= 2 and all(stratum[0] == stratum[-1] for stratum in strata):
        return Paired(estimate, estimate, estimate, math.nan, n, "exact")
    if n < MIN_PAIRS or min(sizes) < 2:
        return Paired(estimate, math.nan, math.nan, math.nan, n, "few")
    low, high = bootstrap_interval(strata)
    p, test = _test(np.sort(values), len(strata))
    return Paired(estimate, low, high, p, n, test)


def _test(values: F8, n_strata: int) -> tuple[float, str]:
    """Two-sided p that differences are centred at 0, and the name of the test."""
    n = len(values)
    if n_strata == 1 and abs(skewness(values)) <= MAX_SKEWNESS:
        from scipy.special import stdtr  # 0.3 s to import: only where it is needed

        t = float(values.mean()) / (float(values.std(ddof=1)) / math.sqrt(n))
        return float(2 * stdtr(n - 1, -abs(t))), "t"
    if 2.0 ** (1 - np.count_nonzero(values)) > ALPHA:
        return math.nan, "few"
    from scipy.stats import wilcoxon  # a second to import: only where it is needed

    return float(wilcoxon(values).pvalue), "wilcoxon"


def skewness(values: F8) -> float:
    """Sample skewness G₁, corrected for bias; 0 for equal values; of three values or more."""
    n, deviation = len(values), values - values.mean()
    spread = float((deviation**2).mean())
    if spread == 0:
        return 0.0
    raw = float((deviation**3).mean()) / spread**1.5
    return float(raw * math.sqrt(n * (n - 1)) / (n - 2))


def holm(p: F8) -> F8:
    """Adjust p-values so that the chance of any false discovery among them stays bounded.

    Calling those significant whose adjusted value is at most α keeps the chance of one or more
    wrong calls at most α, however the tests depend on each other (Holm, Scandinavian Journal of
    Statistics 6(2), 1979). With the values ascending, the k-th of m is multiplied by m - k + 1,
    is never below the one before it, and never above 1.
    """
    adjusted = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1, dtype=np.float64)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return adjusted
