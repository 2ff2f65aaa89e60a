"""Comparing two policies on the (trace, seed) pairs that both met.

When each number is meaningful:

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
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8
from sweep.stats.confidence import bootstrap_interval

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
