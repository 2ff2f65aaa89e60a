"""Streaming histogram in plain Python, the reference of `policies.slearn.kernels.histogram`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise


class Histogram:
    """The streaming histogram of Ben-Haim and Tom-Tov (JMLR 11, 2010, Algorithms 1 and 2).

    Each value is a bin of its own until there are more than `max_bins`; then the two nearest bins
    merge at their weighted mean, of equally near pairs the lowest. 3Sigma (EuroSys 2018) stores
    runtimes in this form, in at most 80 bins.
    """

    __slots__ = ("_gaps", "_squares", "centers", "count", "max_bins", "n", "total")

    def __init__(self, max_bins: int) -> None:
        self.max_bins = max_bins
        self.centers: list[float] = []
        self.count: list[int] = []
        self.n = 0
        self.total = 0.0
        self._gaps: list[float] = []
        self._squares: list[float] = []

    def add(self, value: float) -> None:
        """Add a non-negative value."""
        centers, gaps = self.centers, self._gaps
        i = bisect_left(centers, value)
        self.n += 1
        self.total += value
        if i < len(centers) and centers[i] == value:
            self.count[i] += 1
            self._squares[i] = _inverse(self.count[i], value)
            return
        centers.insert(i, value)
        self.count.insert(i, 1)
        self._squares.insert(i, _inverse(1, value))
        if i > 0:
            gaps.insert(i - 1, value - centers[i - 1])
        if i + 1 < len(centers):
            if i > 0:
                gaps[i] = centers[i + 1] - value
            else:
                gaps.insert(0, centers[1] - value)
        if len(centers) > self.max_bins:
            self._merge()

    @classmethod
    def merged(cls, parts: Iterable[Histogram], max_bins: int) -> Histogram:
        """Return the union of several histograms in at most `max_bins` bins."""
        parts = list(parts)
        bins: dict[float, int] = {}
        for part in parts:
            for center, count in zip(part.centers, part.count, strict=True):
                bins[center] = bins.get(center, 0) + count
        whole = cls(max_bins)
        whole.centers = sorted(bins)
        whole.count = [bins[center] for center in whole.centers]
        whole.n, whole.total = sum(whole.count), sum([part.total for part in parts])
        whole._squares = [
            _inverse(count, center)
            for center, count in zip(whole.centers, whole.count, strict=True)
        ]
        whole._gaps = [b - a for a, b in pairwise(whole.centers)]
        while len(whole.centers) > max_bins:
            whole._merge()
        return whole

    def inverse_squares(self) -> float:
        """Return the sum over all values of 1 / value², each taken at its bin's center."""
        return sum(self._squares)

    def _merge(self) -> None:
        """Merge the two nearest bins."""
        centers, count, gaps, squares = self.centers, self.count, self._gaps, self._squares
        i = gaps.index(min(gaps))
        merged = count[i] + count[i + 1]
        centers[i] = (centers[i] * count[i] + centers[i + 1] * count[i + 1]) / merged
        count[i] = merged
        squares[i] = _inverse(merged, centers[i])
        del centers[i + 1], count[i + 1], squares[i + 1], gaps[i]
        if i > 0:
            gaps[i - 1] = centers[i] - centers[i - 1]
        if i + 1 < len(centers):
            gaps[i] = centers[i + 1] - centers[i]


def by_utility(runtimes: Histogram) -> float:
    """Return the runtime whose utility 1/r² equals the distribution's: (E[r⁻²])^(-1/2).

    SLearn (NSDI 2022, §4.3) uses this utility for 3Sigma, since its goal is a low mean completion
    time. 0 if the distribution contains a 0, NaN if it is empty.
    """
    if runtimes.n == 0:
        return float("nan")
    total = runtimes.inverse_squares()
    return 0.0 if total == math.inf else 1.0 / math.sqrt(total / runtimes.n)


def _inverse(count: int, center: float) -> float:
    square = center * center
    return count / square if square > 0.0 else math.inf


def by_mean(runtimes: Histogram) -> float:
    """Return the mean of the distribution; NaN if it is empty."""
    return runtimes.total / runtimes.n if runtimes.n else float("nan")


def by_quantile(runtimes: Histogram) -> float:
    """Return the median as in Hive's ``NumericHistogram.quantile``; NaN if it is empty.

    Interpolated between the bin that reaches half of the values and the one before, by the part of
    its count that is needed: of two values the smaller, of three the mean of the smaller two.
    """
    half = runtimes.n / 2
    before = 0
    for i, count in enumerate(runtimes.count):
        if before + count >= half:
            low = runtimes.centers[max(0, i - 1)]
            return low + (half - before) * (runtimes.centers[i] - low) / count
        before += count
    return float("nan")


def by_median(runtimes: Histogram) -> float:
    """Return the median of the distribution; NaN if it is empty.

    The mean of the lower and the upper median, with every value taken at its bin's center.
    """
    n = runtimes.n
    if n == 0:
        return float("nan")
    cumulative = list(accumulate(runtimes.count))
    low = runtimes.centers[bisect_left(cumulative, (n + 1) // 2)]
    high = runtimes.centers[bisect_left(cumulative, n // 2 + 1)]
    return (low + high) / 2
