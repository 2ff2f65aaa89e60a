"""A distribution that is learnt one value at a time and held in a bounded number of bins."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise


class Histogram:
    """The streaming histogram of Ben-Haim and Tom-Tov (JMLR 11, 2010, Algorithm 1).

    Each value is a bin of its own until there are more than `most`; then the two nearest bins
    become one at their weighted mean, of equally near ones the two smallest. 3Sigma (EuroSys 2018)
    keeps runtimes in this form, in at most 80 bins.

    Attributes
    ----------
    at : list of float
        Where the bins are, ascending.
    count : list of int
        How many values each stands for.
    n : int
        How many values there are in all.
    total : float
        Their sum.
    """

    __slots__ = ("_below", "_least", "at", "count", "most", "n", "total")

    def __init__(self, most: int) -> None:
        self.most = most
        self.at: list[float] = []
        self.count: list[int] = []
        self.n = 0
        self.total = 0.0
        self._least: float | None = 0.0
        self._below: list[int] | None = [0]

    def add(self, value: float) -> None:
        """Add a value, not negative."""
        at, count = self.at, self.count
        i = bisect_left(at, value)
        self.n += 1
        self.total += value
        self._least = self._below = None
        if i < len(at) and at[i] == value:
            count[i] += 1
            return
        at.insert(i, value)
        count.insert(i, 1)
        if len(at) > self.most:
            gaps = [b - a for a, b in pairwise(at)]
            i = gaps.index(min(gaps))
            both = count[i] + count[i + 1]
            at[i] = (at[i] * count[i] + at[i + 1] * count[i + 1]) / both
            count[i] = both
            del at[i + 1], count[i + 1]

    @classmethod
    def joined(cls, parts: Iterable[Histogram]) -> Histogram:
        """Return all bins of several histograms, none merged; for looking at, not for adding to."""
        parts = list(parts)
        bins = sorted([pair for part in parts for pair in zip(part.at, part.count, strict=True)])
        whole = cls(len(bins))
        whole.at, whole.count = [at for at, _ in bins], [count for _, count in bins]
        whole.total = sum([part.total for part in parts])
        whole.n, whole._least, whole._below = sum(whole.count), None, None
        return whole

    def up_to(self, value: float) -> int:
        """Return how many values lie in bins at or below `value`."""
        if self._below is None:
            self._below = [0, *accumulate(self.count)]
        return self._below[bisect_right(self.at, value)]

    def inverse_squares(self) -> float:
        """Return the sum over all values of 1 / value²; inf if one of them is 0."""
        if self._least is None:
            if self.at and self.at[0] == 0.0:
                self._least = float("inf")
            else:
                self._least = sum([c / (a * a) for a, c in zip(self.at, self.count, strict=True)])
        return self._least


def by_utility(parts: Iterable[Histogram]) -> float:
    """Return the runtime whose utility 1/r² is that of the distribution: (E[r⁻²])^(-1/2).

    SLearn (NSDI 2022, §4.3) gives 3Sigma this utility, since its aim is a small mean completion
    time. 0 if the distribution holds a 0, NaN if it holds nothing.
    """
    n, total = 0, 0.0
    for part in parts:
        n += part.n
        total += part.inverse_squares()
    if n == 0:
        return float("nan")
    return 0.0 if total == float("inf") else float((total / n) ** -0.5)


def by_mean(parts: Iterable[Histogram]) -> float:
    """Return the mean of the distribution that some histograms make together; NaN of nothing."""
    listed = list(parts)
    n = sum([part.n for part in listed])
    total = sum([part.total for part in listed])
    return total / n if n else float("nan")


def by_median(parts: Iterable[Histogram]) -> float:
    """Return the median of the distribution that some histograms make together; NaN of nothing.

    The lower and the upper median's mean, with every value taken to be at its bin.
    """
    listed = [part for part in parts if part.n]
    n = sum([part.n for part in listed])
    if n == 0:
        return float("nan")
    low = _least_with(listed, (n + 1) // 2)
    if n % 2 or sum([part.up_to(low) for part in listed]) > n // 2:
        return low
    return (low + _least_with(listed, n // 2 + 1)) / 2


def _least_with(parts: list[Histogram], rank: int) -> float:
    """Return the bin of the value of that rank, counted from 1."""
    found = []
    for part in parts:
        i, end = 0, len(part.at)
        while i < end:
            middle = (i + end) // 2
            value = part.at[middle]
            if sum([other.up_to(value) for other in parts]) < rank:
                i = middle + 1
            else:
                end = middle
        if i < len(part.at):
            found.append(part.at[i])
    return min(found)
