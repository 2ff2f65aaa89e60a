"""The bounded histogram, against a reference, and against NumPy while no bins are merged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.policies.slearn.histogram import Histogram, by_mean, by_median, by_quantile, by_utility


def filled(values, max_bins=80):
    histogram = Histogram(max_bins)
    for value in values:
        histogram.add(value)
    return histogram


def reference_bins(values, max_bins):
    """Ben-Haim and Tom-Tov's update, on a list of pairs that is sorted each time."""
    bins: list[tuple[float, int]] = []
    for value in values:
        equal = [i for i, (center, _) in enumerate(bins) if center == value]
        if equal:
            bins[equal[0]] = (value, bins[equal[0]][1] + 1)
            continue
        bins = sorted([*bins, (value, 1)])
        if len(bins) > max_bins:
            i = min(range(len(bins) - 1), key=lambda i: bins[i + 1][0] - bins[i][0])
            (a, m), (b, n) = bins[i], bins[i + 1]
            bins[i : i + 2] = [((a * m + b * n) / (m + n), m + n)]
    return bins


@pytest.mark.parametrize("max_bins", [2, 5, 80])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_reference(seed, max_bins):
    rng = np.random.default_rng(seed)
    values = rng.choice([rng.lognormal(0, 2), 1.0, 2.0, *rng.lognormal(0, 2, 300)], 400).tolist()
    histogram = filled(values, max_bins)
    assert list(zip(histogram.centers, histogram.count, strict=True)) == reference_bins(
        values, max_bins
    )
    assert histogram.n == sum(histogram.count) == len(values)
    assert len(histogram.centers) <= max_bins
    assert histogram.centers == sorted(histogram.centers)


def test_two_nearest_bins_become_one():
    histogram = filled([1.0, 10.0, 11.0, 30.0, 11.0], max_bins=3)
    # 1, 10, 11 and 30 are one too many: 10 and 11 merge; then 11 comes again, next to 10.5
    assert histogram.centers == [1.0, (10.5 * 2 + 11.0) / 3, 30.0]
    assert histogram.count == [1, 3, 1]


@pytest.mark.parametrize("n", [1, 2, 5, 6, 79])
def test_statistics_are_exact_while_nothing_is_merged(n):
    values = np.random.default_rng(n).choice([0.5, 1.0, 3.0, 8.0, 100.0], n)
    union = Histogram.merged([filled(values[::2]), filled(values[1::2])], 80)
    for histogram in (filled(values), union):
        assert by_median(histogram) == np.median(values)
        assert by_mean(histogram) == pytest.approx(values.mean())
        assert by_utility(histogram) == pytest.approx(np.mean(values**-2.0) ** -0.5)


@pytest.mark.parametrize("max_bins", [2, 7, 300])
def test_joined_ones_merge_their_nearest_bins_until_there_is_room(max_bins):
    rng = np.random.default_rng(max_bins)
    parts = [filled(rng.lognormal(0, 2, 90), 40) for _ in range(4)]
    bins = sorted(pair for part in parts for pair in zip(part.centers, part.count, strict=True))
    while len(bins) > max_bins:
        i = min(range(len(bins) - 1), key=lambda i: bins[i + 1][0] - bins[i][0])
        (a, m), (b, n) = bins[i], bins[i + 1]
        bins[i : i + 2] = [((a * m + b * n) / (m + n), m + n)]
    histogram = Histogram.merged(parts, max_bins)
    assert list(zip(histogram.centers, histogram.count, strict=True)) == bins
    assert histogram.n == 360
    histogram.add(3.0)
    assert len(histogram.centers) <= max(max_bins, 161)


def test_utility_by_hand():
    # of 1 s and 2 s: E[r^-2] = (1 + 1/4) / 2 = 5/8
    assert by_utility(filled([1.0, 2.0])) == pytest.approx((5 / 8) ** -0.5)
    assert by_utility(filled([7.0])) == pytest.approx(7.0)


def test_utility_follows_added_values():
    histogram = filled([4.0])
    assert by_utility(histogram) == 4.0
    histogram.add(2.0)
    assert by_utility(histogram) == pytest.approx(((1 / 16 + 1 / 4) / 2) ** -0.5)


def test_nothing_and_no_length():
    for statistic in (by_median, by_mean, by_utility):
        assert math.isnan(statistic(Histogram(3)))
        assert statistic(filled([0.0, 0.0])) == 0.0
    assert by_utility(filled([0.0, 5.0])) == 0.0


@pytest.mark.parametrize(
    ("values", "median"),
    [([4.0], 4.0), ([4.0, 8.0], 4.0), ([2.0, 4.0, 8.0], 3.0), ([2.0, 4.0, 8.0, 9.0], 4.0)],
)
def test_the_median_as_hive_interpolates_it(values, median):
    histogram = Histogram(80)
    for value in values:
        histogram.add(value)
    assert by_quantile(histogram) == median
    assert math.isnan(by_quantile(Histogram(80)))
