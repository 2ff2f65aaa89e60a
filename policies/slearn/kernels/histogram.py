"""Streaming histogram: a distribution in a bounded number of bins, updated value by value.

That of Ben-Haim and Tom-Tov (JMLR 11, 2010, Algorithms 1 and 2): each value is a bin of its own
until there are more than the maximum; then the two nearest bins merge at their weighted mean, of
equally near pairs the lowest. 3Sigma (EuroSys 2018) stores runtimes in this form, in at most 80
bins. A histogram is the first `n` of ascending `centers` and their `counts`.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import inf, nan, sqrt

from sim.base.jit import inlined, part

STATISTICS = ("utility", "median", "quantile", "mean")
UTILITY, MEDIAN, QUANTILE, MEAN = range(4)


@part
def add_value(centers, counts, n, max_bins, value):
    """Add a non-negative value; return the number of bins.

    Where that would be one too many, the two nearest merge. Only bins between these and the value
    move. Loops run over slices, whose indices can't be negative: others take twice as long.
    """
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
    if n < max_bins:
        _move_up(centers[low:], n - low)
        _move_up(counts[low:], n - low)
        centers[low], counts[low] = value, 1
        return n + 1
    # gaps below the value, at both its sides, and above it; of equally small ones the first
    best, smallest = _least_gap(centers, low)
    side = low
    if low > 0 and value - centers[low - 1] < smallest:
        best, smallest, side = low - 1, value - centers[low - 1], low - 1
    if low < n:
        if centers[low] - value < smallest:
            best, smallest, side = low, centers[low] - value, low
        above, gap = _least_gap(centers[low:], n - low)
        if gap < smallest:
            best, side = low + above, -1
    if best < low - 1:  # both bins are below the value
        _merge(centers, counts, best, best + 1)
        _move_down(centers[best + 1 :], low - best - 2)
        _move_down(counts[best + 1 :], low - best - 2)
        centers[low - 1], counts[low - 1] = value, 1
    elif side < 0:
        _merge(centers, counts, best + 1, best)
        _move_up(centers[low:], best - low)
        _move_up(counts[low:], best - low)
        centers[low], counts[low] = value, 1
    elif side < low:
        merged = counts[side] + 1
        centers[side] = (centers[side] * counts[side] + value) / merged
        counts[side] = merged
    else:
        merged = 1 + counts[side]
        centers[side] = (value + centers[side] * counts[side]) / merged
        counts[side] = merged
    return n


@inlined
def _merge(centers, counts, into, other):
    """Merge two bins at their weighted mean."""
    merged = counts[into] + counts[other]
    work = centers[into] * counts[into] + centers[other] * counts[other]
    centers[into], counts[into] = work / merged, merged


@inlined
def _move_up(column, n):
    """Move the first `n` elements one up; the first keeps its value."""
    previous = column[0]
    for i in range(n):
        moved = column[i + 1]
        column[i + 1] = previous
        previous = moved


@inlined
def _move_down(column, n):
    """Replace the first `n` elements by those one up."""
    for i in range(n):
        column[i] = column[i + 1]


@inlined
def _least_gap(centers, n):
    """Return the first least gap between neighbours of the first `n` centers, and its width."""
    # two chains of comparisons, of even and of odd gaps, take half as long as one
    best, smallest, odd, smallest_odd = 0, inf, 0, inf
    for k in range((n - 1) // 2):
        i = 2 * k
        gap, next_gap = centers[i + 1] - centers[i], centers[i + 2] - centers[i + 1]
        if gap < smallest:
            best, smallest = i, gap
        if next_gap < smallest_odd:
            odd, smallest_odd = i + 1, next_gap
    if n > 1 and n % 2 == 0 and centers[n - 1] - centers[n - 2] < smallest:
        best, smallest = n - 2, centers[n - 1] - centers[n - 2]
    if smallest_odd < smallest or (smallest_odd == smallest and odd < best):
        best, smallest = odd, smallest_odd
    return best, smallest


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
        while node < width:  # a sum, because jumps would be guessed wrong half of the times
            node = 2 * node + (tree[2 * node + 1] < tree[2 * node])
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
        if before >= 0:
            _set_gap(tree, width, before, centers[i] - centers[before])
        gap, node = centers[after] - centers[i] if after < n else inf, width + i
        tree[node] = gap
        while node > 1:  # up to the root, whose gap it was
            gap = min(gap, tree[node ^ 1])
            node //= 2
            tree[node] = gap
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


@inlined
def unite(centers, counts, second, second_counts, out_centers, out_counts):
    """Unite two lists of bins, which have ascending centers; return the number of bins."""
    n, n_second = len(centers), len(second)
    i, j, k = 0, 0, 0
    while i < n and j < n_second:  # sums, because jumps would often be guessed wrong
        is_first, is_second = centers[i] <= second[j], second[j] <= centers[i]
        out_centers[k] = min(centers[i], second[j])
        out_counts[k] = is_first * counts[i] + is_second * second_counts[j]
        i += is_first
        j += is_second
        k += 1
    for m in range(i, n):
        out_centers[k], out_counts[k] = centers[m], counts[m]
        k += 1
    for m in range(j, n_second):
        out_centers[k], out_counts[k] = second[m], second_counts[m]
        k += 1
    return k


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
