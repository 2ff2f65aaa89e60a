"""Means over seeds, how sure they are; two policies compared on the (trace, seed) pairs both met.

One model serves intervals and tests, so that they agree: an interval leaves 0 (or 1×) out exactly
where p is below 5 %. It is Student's, on the differences of the pairs, or on the logarithms of
their ratios. If two policies did the same but for chance, who has the larger value of a pair is a
toss of a coin, and the differences are symmetric about 0: there Student's test keeps its level, or
stays below it, for few pairs and heavy tails too (Efron, *Journal of the American Statistical
Association* 64, 1969). `docs/decisions/0011-one-test.md` has what was measured.

Pairs of several traces are not of one distribution. Each trace's own seeds tell how its mean varies
and the shares are added up, with Welch's and Satterthwaite's degrees of freedom; so the interval is
about these traces and no others. Of one trace that is Student's interval again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8, I8, Mask

CONFIDENCE = 0.95

ROUNDING = 1e-12
"""Values that are as near, relative to their size, are the same."""


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
    """Do `interval` for many metrics at once; 0 where all values are the same but for rounding."""
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
            size = np.where(present, np.abs(values), 0.0).max(axis=0, initial=0.0)
            half[half <= ROUNDING * size] = 0.0
    return mean, half, n


def _t_quantile(degrees: I8) -> F8:
    """Two-sided 95 % quantile of Student's t, shape of `degrees`."""
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    quantile: F8 = stdtrit(degrees.astype(np.float64), 0.5 + CONFIDENCE / 2)
    return quantile


MIN_PAIRS = 3
"""Fewer pairs give neither an interval nor a test; nor does a trace with one."""

FIRST_SEEDS = 5
"""With which whatever adds seeds begins: the spread of fewer is too often narrow by chance."""

ALPHA = 0.05

STUDENT, EXACT, FEW, NO_RATIO = "t", "exact", "few", "no ratio"


@dataclass(frozen=True)
class Paired:
    """What a comparison of two policies gives."""

    estimate: float  # the mean difference, or the geometric mean of the ratios; NaN for none
    low: float  # 95 % interval; NaN with too few pairs
    high: float
    p: float  # two-sided, not corrected for other comparisons; NaN where nothing was tested
    n: int  # pairs
    # what `p` is of: `STUDENT`; `EXACT`: every pair differs by the same, so that there is nothing
    # to test; `FEW`: too few pairs; `NO_RATIO`: a value is 0 or infinite where the other is not
    test: str


def same(own: F8, other: F8) -> Mask:
    """Tell where two values are the same but for rounding; not where one is infinite or NaN."""
    with np.errstate(invalid="ignore"):
        equal: Mask = np.abs(own - other) <= ROUNDING * np.minimum(np.abs(own), np.abs(other))
    return equal & np.isfinite(own) & np.isfinite(other)


def difference(own: ArrayLike, other: ArrayLike, traces: ArrayLike | None = None) -> Paired:
    """Compare by the mean of ``own - other``, in the metric's unit."""
    mine, theirs = np.asarray(own, float), np.asarray(other, float)
    with np.errstate(invalid="ignore"):  # inf - inf
        differences = mine - theirs
    differences[same(mine, theirs)] = 0.0
    return _compare(differences, traces)


def ratio(own: ArrayLike, other: ArrayLike, traces: ArrayLike | None = None) -> Paired:
    """Compare by the geometric mean of ``own / other``.

    Logarithms of the ratios are compared, so that the two sides may be exchanged. A pair of zeros
    is a ratio of 1.
    """
    mine, theirs = np.asarray(own, float), np.asarray(other, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where((mine < 0) | (theirs < 0), math.inf, np.log(mine) - np.log(theirs))
    logs[same(mine, theirs)] = 0.0
    logs[np.isnan(mine) | np.isnan(theirs)] = math.nan
    of_logs = _compare(logs, traces)
    ends = (math.exp(of_logs.estimate), math.exp(of_logs.low), math.exp(of_logs.high))
    return Paired(*ends, of_logs.p, of_logs.n, of_logs.test)


def _compare(differences: F8, traces: ArrayLike | None) -> Paired:
    present = ~np.isnan(differences)
    values = np.sort(differences[present])
    n = len(values)
    if n == 0 or not np.isfinite(values).all():
        return Paired(math.nan, math.nan, math.nan, math.nan, n, NO_RATIO if n else FEW)
    strata = [values]
    if traces is not None:
        labels, values = np.asarray(traces)[present], differences[present]
        strata = [np.sort(values[labels == label]) for label in np.unique(labels)]
    # stratum by stratum, each sorted: the same bits whatever the order of the pairs
    estimate = float(sum(float(stratum.sum()) for stratum in strata) / n)
    least = min(map(len, strata))
    if least > 1 and all(stratum[0] == stratum[-1] for stratum in strata):
        return Paired(estimate, estimate, estimate, math.nan, n, EXACT)
    if n < MIN_PAIRS or least < 2:
        return Paired(estimate, math.nan, math.nan, math.nan, n, FEW)
    half, p = _student(strata, estimate)
    return Paired(estimate, estimate - half, estimate + half, p, n, STUDENT)


def _student(strata: Sequence[F8], estimate: float) -> tuple[float, float]:
    """Half the 95 % interval of the mean of all values, and the two-sided p that it is 0."""
    from scipy.special import stdtr, stdtrit  # 0.3 s to import: only where there is a test

    n = sum(map(len, strata))
    variances = np.array([float(v.var(ddof=1)) * len(v) / n**2 for v in strata])
    variance = float(variances.sum())
    shares = variances / variance
    degrees = 1.0 / float((shares**2 / np.array([len(v) - 1 for v in strata])).sum())
    error = math.sqrt(variance)
    half = float(stdtrit(degrees, 0.5 + CONFIDENCE / 2)) * error
    return half, float(2 * stdtr(degrees, -abs(estimate) / error))


def pairs_needed(found: Paired, level: float = ALPHA, most: int = 1000) -> int | None:
    """Least number of pairs that tell two policies apart, if mean and spread stay as they are.

    None where they are told apart, or where `most` would not do it.
    """
    from scipy.special import stdtr, stdtrit  # 0.3 s to import: only where there is a test

    if math.isnan(found.p) or found.p <= level:
        return None
    n = np.arange(found.n + 1, most + 1, dtype=np.float64)
    t = float(stdtrit(found.n - 1, found.p / 2)) * np.sqrt(n / found.n)
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
