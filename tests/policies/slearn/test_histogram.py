"""The bounded histogram, against a restatement and against NumPy where nothing is merged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from policies.slearn.histogram import Histogram, by_mean, by_median, by_quantile, by_utility


def filled(values, most=80):
    made = Histogram(most)
    for value in values:
        made.add(value)
    return made


def naive(values, most):
    """Ben-Haim and Tom-Tov's update, on a list of pairs sorted anew each time."""
    bins: list[tuple[float, int]] = []
    for value in values:
        same = [i for i, (at, _) in enumerate(bins) if at == value]
        if same:
            bins[same[0]] = (value, bins[same[0]][1] + 1)
            continue
        bins = sorted([*bins, (value, 1)])
        if len(bins) > most:
            i = min(range(len(bins) - 1), key=lambda i: bins[i + 1][0] - bins[i][0])
            (a, m), (b, n) = bins[i], bins[i + 1]
            bins[i : i + 2] = [((a * m + b * n) / (m + n), m + n)]
    return bins


@pytest.mark.parametrize("most", [2, 5, 80])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_restatement(seed, most):
    rng = np.random.default_rng(seed)
    values = rng.choice([rng.lognormal(0, 2), 1.0, 2.0, *rng.lognormal(0, 2, 300)], 400).tolist()
    made = filled(values, most)
    assert list(zip(made.at, made.count, strict=True)) == naive(values, most)
    assert made.n == sum(made.count) == len(values)
    assert len(made.at) <= most
    assert made.at == sorted(made.at)


def test_two_nearest_bins_become_one():
    made = filled([1.0, 10.0, 11.0, 30.0, 11.0], most=3)
    # 1, 10, 11 and 30 are one too many: 10 and 11 merge; then 11 comes again, next to 10.5
    assert made.at == [1.0, (10.5 * 2 + 11.0) / 3, 30.0]
    assert made.count == [1, 3, 1]


@pytest.mark.parametrize("n", [1, 2, 5, 6, 79])
def test_statistics_are_exact_while_nothing_is_merged(n):
    values = np.random.default_rng(n).choice([0.5, 1.0, 3.0, 8.0, 100.0], n)
    joined = Histogram.joined([filled(values[::2]), filled(values[1::2])], 80)
    for made in (filled(values), joined):
        assert by_median(made) == np.median(values)
        assert by_mean(made) == pytest.approx(values.mean())
        assert by_utility(made) == pytest.approx(np.mean(values**-2.0) ** -0.5)


@pytest.mark.parametrize("most", [2, 7, 300])
def test_joined_ones_merge_their_nearest_bins_until_there_is_room(most):
    rng = np.random.default_rng(most)
    parts = [filled(rng.lognormal(0, 2, 90), 40) for _ in range(4)]
    bins = sorted(pair for part in parts for pair in zip(part.at, part.count, strict=True))
    while len(bins) > most:
        i = min(range(len(bins) - 1), key=lambda i: bins[i + 1][0] - bins[i][0])
        (a, m), (b, n) = bins[i], bins[i + 1]
        bins[i : i + 2] = [((a * m + b * n) / (m + n), m + n)]
    made = Histogram.joined(parts, most)
    assert list(zip(made.at, made.count, strict=True)) == bins
    assert made.n == 360
    made.add(3.0)
    assert len(made.at) <= max(most, 161)


def test_utility_by_hand():
    # of 1 s and 2 s: E[r^-2] = (1 + 1/4) / 2 = 5/8
    assert by_utility(filled([1.0, 2.0])) == pytest.approx((5 / 8) ** -0.5)
    assert by_utility(filled([7.0])) == pytest.approx(7.0)


def test_utility_follows_what_is_added():
    made = filled([4.0])
    assert by_utility(made) == 4.0
    made.add(2.0)
    assert by_utility(made) == pytest.approx(((1 / 16 + 1 / 4) / 2) ** -0.5)


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
    made = Histogram(80)
    for value in values:
        made.add(value)
    assert by_quantile(made) == median
    assert math.isnan(by_quantile(Histogram(80)))
