"""Confidence intervals of means over seeds, and paired tests of two policies.

One model serves comparisons and their tests, so that they agree: an interval leaves 0 (or 1×) out
exactly where p is below 5 %. It is Student's, on the differences of the pairs, or on the logarithms
of their ratios. If two policies differ by chance alone, a coin toss decides which has the larger
value of a pair, and the differences are symmetric about 0: there Student's test keeps its level, or
stays below it, for few pairs and heavy tails too (Efron, *Journal of the American Statistical
Association* 64, 1969). `docs/decisions/0011-one-test.md` has the measurements.

Pairs of several traces do not have one distribution. The variance of each trace's mean is estimated
from its own seeds, and these are added, with Welch's and Satterthwaite's degrees of freedom; so the
interval is about these traces and no others. For one trace that is Student's interval again.

The interval of one policy's mean stays within the metric's range (`ends`): times are never below
0, and shares lie between 0 and 1. There Student's interval is taken of the mean's logarithm, or
logit, with the standard error by the delta method, and its ends are taken back. For small spreads
that is Student's interval of the mean; for large and skewed ones it holds the true mean more often
(the same record).

Draws of a bootstrap (``seeds=bootstrap``, `sim.transforms.draws`) are no independent samples:
their spread s estimates the standard error itself, however many they are (Efron and Tibshirani, *An
Introduction to the Bootstrap*, 1993, chapters 6 and 13). So the standard error of their mean about
the truth is s √(1 + 1/n), with n - 1 degrees of freedom, in the place of s / √n: more draws make
the interval surer, not narrower. A draw is the same jobs for every policy: comparisons are paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8, I8, Mask
from sim.metrics.common import UNBOUNDED, Span

CONFIDENCE = 0.95

ROUNDING = 1e-12
"""Relative difference up to which two values count as equal."""


def interval(
    values: Sequence[float] | ArrayLike, *, span: Span = UNBOUNDED, is_bootstrap: bool = False
) -> tuple[float, float, float]:
    """Compute the mean of a metric over seeds and its 95 % confidence interval.

    `span` is the range of the metric, in which the interval lies (`ends`).

    Seeds are independent draws, so the interval is Student's:
    ``mean ± t(0.975, n − 1) · s / √n`` with ``s`` the sample standard deviation
    (``n − 1`` in its denominator); of draws of a bootstrap ``s · √(1 + 1/n)``.
    """
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    mean, half, _ = intervals(column, is_bootstrap=is_bootstrap)
    low, high = ends(mean, half, span)
    return float(mean[0]), float(low[0]), float(high[0])


def ends(mean: F8, half: F8, span: Span) -> tuple[F8, F8]:
    """Return the ends of intervals that lie within the range of a metric.

    With a lower end a alone they are a + (m - a) exp(∓h / (m - a)) for a mean m of half-width h;
    with an upper end b, too, those of Student's interval of the logit of (m - a) / (b - a). A mean
    on or beyond an end, as where all values are equal, has Student's interval.
    """
    low, high = mean - half, mean + half
    lowest, highest = span
    if not math.isfinite(lowest):
        return low, high
    is_within = (mean > lowest) & (mean < highest) & (half > 0) & np.isfinite(half)
    above = mean[is_within] - lowest
    if math.isfinite(highest):
        below = highest - mean[is_within]
        step = half[is_within] * (highest - lowest) / (above * below)
        odds = above / below
        low[is_within], high[is_within] = (
            lowest + (highest - lowest) / (1 + np.exp(-sign * step) / odds) for sign in (-1, 1)
        )
    else:
        step = half[is_within] / above
        low[is_within], high[is_within] = (lowest + above * np.exp(s * step) for s in (-1, 1))
    return low, high


def intervals(values: F8, *, is_bootstrap: bool = False) -> tuple[F8, F8, I8]:
    """Compute `interval` for many metrics: means, half-widths, counts of values.

    The half-width is 0 where all values are equal but for rounding.
    """
    present = ~np.isnan(values)
    n = present.sum(axis=0).astype(np.int64)
    mean = np.full(values.shape[1], math.nan)
    half = np.full(values.shape[1], math.nan)
    has_values = n > 0
    with np.errstate(invalid="ignore"):  # inf - inf: an infinite mean has no interval
        mean[has_values] = np.where(present, values, 0.0).sum(axis=0)[has_values] / n[has_values]
        has_spread = n > 1
        if has_spread.any():
            deviation = np.where(present, values - mean, 0.0)[:, has_spread]
            variance = (deviation**2).sum(axis=0) / (n[has_spread] - 1)
            error = np.sqrt(variance * error_share(n[has_spread], is_bootstrap=is_bootstrap))
            half[has_spread] = _t_quantile(n[has_spread] - 1) * error
            size = np.where(present, np.abs(values), 0.0).max(axis=0, initial=0.0)
            half[half <= ROUNDING * size] = 0.0
    return mean, half, n


def error_share(n: Any, *, is_bootstrap: bool) -> Any:
    """Return the squared standard error of a mean of n values over their variance."""
    return 1 + 1 / n if is_bootstrap else 1 / n


def _t_quantile(degrees: I8) -> F8:
    """Compute the two-sided 95 % quantile of Student's t; it has the shape of `degrees`."""
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    quantile: F8 = stdtrit(degrees.astype(np.float64), 0.5 + CONFIDENCE / 2)
    return quantile


MIN_PAIRS = 3
"""Smallest number of pairs that gives an interval and a test; each trace needs at least two."""

FIRST_SEEDS = 5
"""Seeds that adaptive searches start with: the spread of fewer is too often narrow by chance."""

ALPHA = 0.05

STUDENT, EXACT, FEW, NO_RATIO = "t", "exact", "few", "no ratio"
BOOTSTRAP = "bootstrap"


@dataclass(frozen=True)
class Paired:
    """Result of a paired comparison of two policies."""

    estimate: float  # the mean difference, or the geometric mean of the ratios; NaN for none
    low: float  # 95 % interval; NaN with too few pairs
    high: float
    p: float  # two-sided, not corrected for other comparisons; NaN where nothing was tested
    n: int  # pairs
    # `STUDENT`: Student's t; `BOOTSTRAP`: the same, of draws; `EXACT`: all pairs have the same
    # difference, so that there is nothing to test; `FEW`: too few pairs; `NO_RATIO`: a value is 0
    # or infinite where the other is not
    test: str


def same(a: F8, b: F8) -> Mask:
    """Compare element by element: equal but for rounding; False where one is infinite or NaN."""
    with np.errstate(invalid="ignore"):
        is_same: Mask = np.abs(a - b) <= ROUNDING * np.minimum(np.abs(a), np.abs(b))
    return is_same & np.isfinite(a) & np.isfinite(b)


def difference(
    a: ArrayLike, b: ArrayLike, traces: ArrayLike | None = None, *, is_bootstrap: bool = False
) -> Paired:
    """Compare by the mean of ``a - b``, in the metric's unit."""
    first, second = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(invalid="ignore"):  # inf - inf
        differences = first - second
    differences[same(first, second)] = 0.0
    return _compare(differences, traces, is_bootstrap)


def ratio(
    a: ArrayLike, b: ArrayLike, traces: ArrayLike | None = None, *, is_bootstrap: bool = False
) -> Paired:
    """Compare by the geometric mean of ``a / b``.

    The test is on logarithms of the ratios, so that the two sides may be exchanged. A pair of zeros
    has a ratio of 1.
    """
    first, second = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where((first < 0) | (second < 0), math.inf, np.log(first) - np.log(second))
    logs[same(first, second)] = 0.0
    logs[np.isnan(first) | np.isnan(second)] = math.nan
    paired_logs = _compare(logs, traces, is_bootstrap)
    ends = (math.exp(paired_logs.estimate), math.exp(paired_logs.low), math.exp(paired_logs.high))
    return Paired(*ends, paired_logs.p, paired_logs.n, paired_logs.test)


def _compare(differences: F8, traces: ArrayLike | None, is_bootstrap: bool) -> Paired:
    present = ~np.isnan(differences)
    values = np.sort(differences[present])
    n = len(values)
    if n == 0 or not np.isfinite(values).all():
        return Paired(math.nan, math.nan, math.nan, math.nan, n, NO_RATIO if n else FEW)
    strata = [values]
    if traces is not None:
        labels, values = np.asarray(traces)[present], differences[present]
        strata = [np.sort(values[labels == label]) for label in np.unique(labels)]
    # stratum by stratum, each sorted: the same bits for any order of the pairs
    estimate = float(sum(float(stratum.sum()) for stratum in strata) / n)
    n_min = min(map(len, strata))
    if n_min > 1 and all(stratum[0] == stratum[-1] for stratum in strata):
        return Paired(estimate, estimate, estimate, math.nan, n, EXACT)
    if n < MIN_PAIRS or n_min < 2:
        return Paired(estimate, math.nan, math.nan, math.nan, n, FEW)
    half, p = _student(strata, estimate, is_bootstrap)
    test = BOOTSTRAP if is_bootstrap else STUDENT
    return Paired(estimate, estimate - half, estimate + half, p, n, test)


def _student(strata: Sequence[F8], estimate: float, is_bootstrap: bool) -> tuple[float, float]:
    """Compute half the 95 % interval of the mean, and the two-sided p of a mean of 0."""
    from scipy.special import stdtr, stdtrit  # 0.3 s to import: only where there is a test

    n = sum(map(len, strata))
    if is_bootstrap:
        variances = np.array([float(v.var(ddof=1)) * len(v) * (len(v) + 1) / n**2 for v in strata])
    else:
        variances = np.array([float(v.var(ddof=1)) * len(v) / n**2 for v in strata])
    variance = float(variances.sum())
    shares = variances / variance
    degrees = 1.0 / float((shares**2 / np.array([len(v) - 1 for v in strata])).sum())
    error = math.sqrt(variance)
    half = float(stdtrit(degrees, 0.5 + CONFIDENCE / 2)) * error
    return half, float(2 * stdtr(degrees, -abs(estimate) / error))


def pairs_needed(paired: Paired, level: float = ALPHA, n_max: int = 1000) -> int | None:
    """Compute the smallest number of pairs at which the difference would be significant.

    Assumes that mean and spread stay as they are. None where it is significant already, where
    `n_max` pairs would not be enough, and of draws of a bootstrap, which no more draws separate.
    """
    from scipy.special import stdtr, stdtrit  # 0.3 s to import: only where there is a test

    if math.isnan(paired.p) or paired.p <= level or paired.test == BOOTSTRAP:
        return None
    n = np.arange(paired.n + 1, n_max + 1, dtype=np.float64)
    t = float(stdtrit(paired.n - 1, paired.p / 2)) * np.sqrt(n / paired.n)
    enough = n[2 * stdtr(n - 1, t) <= level]
    return int(enough[0]) if len(enough) else None


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
