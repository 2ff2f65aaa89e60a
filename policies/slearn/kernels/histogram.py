"""Streaming histogram: a distribution in a bounded number of bins, updated value by value.

That of Ben-Haim and Tom-Tov (JMLR 11, 2010, Algorithms 1 and 2): each value is a bin of its own
until there are more than the maximum; then the two nearest bins merge at their weighted mean, of
equally near pairs the lowest. 3Sigma (EuroSys 2018) stores runtimes in this form, in at most 80
bins. A histogram is the first `n` of ascending `centers` and their `counts`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import inf, nan, sqrt

from sim.base.jit import part

STATISTICS = ("utility", "median", "quantile", "mean")
UTILITY, MEDIAN, QUANTILE, MEAN = range(4)


@part
def add_value(centers, counts, n, max_bins, value):
    """Add a non-negative value; return the number of bins."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if centers[middle] < value:
            low = middle + 1
        else:
            high = middle
    if low < n and centers[low] == value:
        counts[low] += 1
        return n
    for i in range(n, low, -1):
        centers[i] = centers[i - 1]
        counts[i] = counts[i - 1]
    centers[low], counts[low] = value, 1
    n += 1
    return merge_nearest(centers, counts, n) if n > max_bins else n


@part
def merge_nearest(centers, counts, n):
    """Merge the two nearest bins; return the number of bins."""
    # two chains of comparisons, of even and of odd gaps, take half as long as one
    best, smallest, odd, smallest_odd = 0, centers[1] - centers[0], 0, inf
    for i in range(1, n - 2, 2):
        gap, next_gap = centers[i + 1] - centers[i], centers[i + 2] - centers[i + 1]
        if gap < smallest_odd:
            odd, smallest_odd = i, gap
        if next_gap < smallest:
            best, smallest = i + 1, next_gap
    if n % 2 == 1 and centers[n - 1] - centers[n - 2] < smallest_odd:
        odd, smallest_odd = n - 2, centers[n - 1] - centers[n - 2]
    if smallest_odd < smallest or (smallest_odd == smallest and odd < best):
        best = odd
    merged = counts[best] + counts[best + 1]
    work = centers[best] * counts[best] + centers[best + 1] * counts[best + 1]
    centers[best], counts[best] = work / merged, merged
    for i in range(best + 1, n - 1):
        centers[i] = centers[i + 1]
        counts[i] = counts[i + 1]
    return n - 1


@part
def reduce_bins(centers, counts, n, max_bins, tree, links):
    """Merge the two nearest bins until there are at most `max_bins`; return their number.

    A tree of minima over the gaps finds them, as a union of days may have thousands of bins.

    Parameters
    ----------
    tree : (at least 4 n,) float64
        Scratch: gap to the next bin as leaves, after the minima of pairs.
    links : (2, at least n) int64
        Scratch: previous and next bin.
    """
    if n <= max_bins:
        return n
    width = 1
    while width < n:
        width *= 2
    for i in range(width):
        tree[width + i] = centers[i + 1] - centers[i] if i + 1 < n else inf
    for i in range(n):
        links[0, i], links[1, i] = i - 1, i + 1
    for node in range(width - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    for _ in range(n - max_bins):
        node = 1
        while node < width:
            node = 2 * node if tree[2 * node] <= tree[2 * node + 1] else 2 * node + 1
        i = node - width
        j = links[1, i]
        merged = counts[i] + counts[j]
        centers[i] = (centers[i] * counts[i] + centers[j] * counts[j]) / merged
        counts[i], counts[j] = merged, 0
        before, after = links[0, i], links[1, j]
        links[1, i] = after
        if after < n:
            links[0, after] = i
        _set_gap(tree, width, j, inf)
        _set_gap(tree, width, i, centers[after] - centers[i] if after < n else inf)
        if before >= 0:
            _set_gap(tree, width, before, centers[i] - centers[before])
    n_bins = 0
    for i in range(n):
        if counts[i] > 0:
            centers[n_bins], counts[n_bins] = centers[i], counts[i]
            n_bins += 1
    return n_bins


@part
def _set_gap(tree, width, i, gap):
    """Set a leaf of a tree of minima."""
    node = width + i
    tree[node] = gap
    while node > 1:
        node //= 2
        smallest = min(tree[2 * node], tree[2 * node + 1])
        if smallest == tree[node]:
            break
        tree[node] = smallest


@part
def statistic(code, centers, counts, n, n_values, total):
    """Return a statistic of a distribution of `n_values` that sum to `total`; NaN if it is empty.

    UTILITY: the runtime whose utility 1/r² equals the distribution's, (E[r⁻²])^(-1/2), with every
    value taken at its bin's center; 0 if the distribution contains a 0. SLearn (NSDI 2022, §4.3)
    uses this utility for 3Sigma, since its goal is a low mean completion time. MEDIAN: the mean of
    the lower and the upper median, at centers of bins. QUANTILE: the median as in Hive's
    ``NumericHistogram.quantile``, interpolated between the bin that reaches half of the values and
    the one before, by the part of its count that is needed: of two values the smaller, of three the
    mean of the smaller two. MEAN.
    """
    if n_values == 0:
        return nan
    if code == MEAN:
        return total / n_values
    if code == UTILITY:
        worth = 0.0
        for i in range(n):
            square = centers[i] * centers[i]
            worth += counts[i] / square if square > 0.0 else inf
        return 0.0 if worth == inf else 1.0 / sqrt(worth / n_values)
    if code == MEDIAN:
        lower = _at_rank(centers, counts, (n_values + 1) // 2)
        return (lower + _at_rank(centers, counts, n_values // 2 + 1)) / 2
    half, before = n_values / 2, 0
    i = 0
    while before + counts[i] < half:
        before += counts[i]
        i += 1
    below = centers[max(0, i - 1)]
    return below + (half - before) * (centers[i] - below) / counts[i]


@part
def _at_rank(centers, counts, rank):
    """Return the center of the bin that reaches `rank` values, from 1."""
    i, reached = 0, counts[0]
    while reached < rank:
        i += 1
        reached += counts[i]
    return centers[i]
