"""A distribution that is learnt one value at a time and held in a bounded number of bins."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate, pairwise


class Histogram:
    """The streaming histogram of Ben-Haim and Tom-Tov (JMLR 11, 2010, Algorithms 1 and 2).

    Each value is a bin of its own until there are more than `most`; then the two nearest bins
    become one at their weighted mean, of equally near ones the two smallest. 3Sigma (EuroSys 2018)
    keeps runtimes in this form, in at most 80 bins.
    """

    __slots__ = ("_gaps", "_squares", "at", "count", "most", "n", "total")

    def __init__(self, most: int) -> None:
        self.most = most
        self.at: list[float] = []
        self.count: list[int] = []
        self.n = 0
        self.total = 0.0
        self._gaps: list[float] = []
        self._squares: list[float] = []

    def add(self, value: float) -> None:
        """Add a value, not negative."""
        at, gaps = self.at, self._gaps
        i = bisect_left(at, value)
        self.n += 1
        self.total += value
        if i < len(at) and at[i] == value:
            self.count[i] += 1
            self._squares[i] = _inverse(self.count[i], value)
            return
        at.insert(i, value)
        self.count.insert(i, 1)
        self._squares.insert(i, _inverse(1, value))
        if i > 0:
            gaps.insert(i - 1, value - at[i - 1])
        if i + 1 < len(at):
            if i > 0:
                gaps[i] = at[i + 1] - value
            else:
                gaps.insert(0, at[1] - value)
        if len(at) > self.most:
            self._merge()

    @classmethod
    def joined(cls, parts: Iterable[Histogram], most: int) -> Histogram:
        """Return what several histograms make together, in at most so many bins."""
        parts = list(parts)
        bins: dict[float, int] = {}
        for part in parts:
            for at, count in zip(part.at, part.count, strict=True):
                bins[at] = bins.get(at, 0) + count
        whole = cls(most)
        whole.at = sorted(bins)
        whole.count = [bins[at] for at in whole.at]
        whole.n, whole.total = sum(whole.count), sum([part.total for part in parts])
        whole._squares = [
            _inverse(count, at) for at, count in zip(whole.at, whole.count, strict=True)
        ]
        whole._gaps = [b - a for a, b in pairwise(whole.at)]
        while len(whole.at) > most:
            whole._merge()
        return whole

    def inverse_squares(self) -> float:
        """Return the sum over all values of 1 / value², each taken to be at its bin."""
        return sum(self._squares)

    def _merge(self) -> None:
        """Make one bin of the two nearest."""
        at, count, gaps, squares = self.at, self.count, self._gaps, self._squares
        i = gaps.index(min(gaps))
        both = count[i] + count[i + 1]
        at[i] = (at[i] * count[i] + at[i + 1] * count[i + 1]) / both
        count[i] = both
        squares[i] = _inverse(both, at[i])
        del at[i + 1], count[i + 1], squares[i + 1], gaps[i]
        if i > 0:
            gaps[i - 1] = at[i] - at[i - 1]
        if i + 1 < len(at):
            gaps[i] = at[i + 1] - at[i]


def by_utility(runtimes: Histogram) -> float:
    """Return the runtime whose utility 1/r² is that of the distribution: (E[r⁻²])^(-1/2).

    SLearn (NSDI 2022, §4.3) gives 3Sigma this utility, since its aim is a small mean completion
    time. 0 if the distribution holds a 0, NaN if it holds nothing.
    """
    if runtimes.n == 0:
        return float("nan")
    total = runtimes.inverse_squares()
    return 0.0 if total == math.inf else 1.0 / math.sqrt(total / runtimes.n)


def _inverse(count: int, at: float) -> float:
    square = at * at
    return count / square if square > 0.0 else math.inf


def by_mean(runtimes: Histogram) -> float:
    """Return the mean of the distribution; NaN of nothing."""
    return runtimes.total / runtimes.n if runtimes.n else float("nan")


def by_quantile(runtimes: Histogram) -> float:
    """Return the median as Hive's ``NumericHistogram.quantile`` has it; NaN of nothing.

    Between the bin in which half of the values are reached and the one before, by how much of its
    own count is needed: of two values the smaller, of three the mean of the smaller two.
    """
    half = runtimes.n / 2
    before = 0
    for i, count in enumerate(runtimes.count):
        if before + count >= half:
            low = runtimes.at[max(0, i - 1)]
            return low + (half - before) * (runtimes.at[i] - low) / count
        before += count
    return float("nan")


def by_median(runtimes: Histogram) -> float:
    """Return the median of the distribution; NaN of nothing.

    The lower and the upper median's mean, with every value taken to be at its bin.
    """
    n = runtimes.n
    if n == 0:
        return float("nan")
    upto = list(accumulate(runtimes.count))
    low = runtimes.at[bisect_left(upto, (n + 1) // 2)]
    high = runtimes.at[bisect_left(upto, n // 2 + 1)]
    return (low + high) / 2
