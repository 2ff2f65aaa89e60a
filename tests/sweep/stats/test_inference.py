"""Intervals over seeds against SciPy's; paired comparisons against known results."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from sim.metrics.common import FRACTION, POSITIVE, UNBOUNDED, Span
from sweep.stats import (
    MIN_PAIRS,
    difference,
    holm,
    interval,
    intervals,
    pairs_needed,
    ratio,
)
from sweep.stats.inference import ends


def test_known_interval() -> None:
    # t(0.975, 4) = 2.776445; s = sqrt(2.5); half = 2.776445 * sqrt(2.5 / 5)
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert high - mean == pytest.approx(1.963243, abs=1e-6)
    assert mean - low == pytest.approx(1.963243, abs=1e-6)


def test_two_seeds_use_the_wide_quantile() -> None:
    mean, low, high = interval([1.0, 2.0])
    assert (mean, high - low) == (1.5, pytest.approx(12.7062, abs=1e-4))


def test_one_seed_has_no_interval() -> None:
    mean, low, high = interval([7.0])
    assert mean == 7.0
    assert math.isnan(low)
    assert math.isnan(high)


def test_no_seed_has_no_mean() -> None:
    assert all(math.isnan(x) for x in interval([]))
    assert all(math.isnan(x) for x in interval([math.nan, math.nan]))


def test_nan_is_left_out() -> None:
    assert interval([1.0, math.nan, 2.0]) == interval([1.0, 2.0])


def test_equal_values_have_no_width() -> None:
    assert interval([4.0, 4.0, 4.0]) == (4.0, 4.0, 4.0)


def test_infinite_mean_has_no_interval() -> None:
    mean, low, high = interval([1.0, math.inf])
    assert mean == math.inf
    assert math.isnan(low)
    assert math.isnan(high)


def test_the_interval_of_a_positive_mean_by_hand() -> None:
    # of the logarithm: 1.963243 / 3 = 0.654414 on either side of log 3
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0], span=POSITIVE)
    assert (mean, low, high) == (
        3.0,
        pytest.approx(1.559239),
        pytest.approx(5.772046),
    )
    # of the logit: p = 0.3, half 0.1963243 / (0.3 * 0.7) = 0.9348777 on either side of log 3/7
    _, low, high = interval([0.1, 0.2, 0.3, 0.4, 0.5], span=FRACTION)
    assert math.log(low / (1 - low)) == pytest.approx(math.log(3 / 7) - 0.9348777, rel=1e-6)
    assert math.log(high / (1 - high)) == pytest.approx(math.log(3 / 7) + 0.9348777, rel=1e-6)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=9),
    st.sampled_from([POSITIVE, FRACTION]),
    st.floats(1e-3, 1e3),
)
def test_intervals_stay_within_the_range(values: list[float], span: Span, unit: float) -> None:
    scaled = [value if span == FRACTION else value * unit for value in values]
    mean, low, high = interval(scaled, span=span)
    assert span[0] <= low <= mean <= high <= span[1]
    assert interval([*map(float, scaled)]) == interval(scaled, span=UNBOUNDED)


def test_small_spreads_have_students_interval() -> None:
    mean, half = np.array([50.0, 0.5, 0.0, 2.0]), np.array([0.01, 1e-4, 0.0, np.nan])
    for span in (POSITIVE, FRACTION):
        low, high = ends(mean[1:], half[1:], span)
        np.testing.assert_allclose(low, mean[1:] - half[1:], rtol=1e-7)
        np.testing.assert_allclose(high, mean[1:] + half[1:], rtol=1e-7)
    # values outside the range that is stated have Student's
    assert ends(mean[:1], half[:1], FRACTION)[0] == pytest.approx(49.99)


def test_skewed_values_are_held_more_often_than_by_students_interval() -> None:
    draws = np.random.default_rng(0).exponential(1.0, size=(5, 20_000))
    mean, half, _ = intervals(draws)
    plain = float(((mean - half <= 1.0) & (mean + half >= 1.0)).mean())
    low, high = ends(mean, half, POSITIVE)
    assert plain < 0.895
    assert 0.925 < float(((low <= 1.0) & (high >= 1.0)).mean()) < 0.95


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_matches_scipy(values: list[float]) -> None:
    mean, half, n = intervals(np.array([values]).T)
    error = stats.sem(values)
    assert n[0] == len(values)
    assert mean[0] == pytest.approx(np.mean(values), rel=1e-9, abs=1e-6)
    expected = error * stats.t.ppf(0.975, len(values) - 1)
    assert half[0] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_coverage_is_95_percent() -> None:
    draws = np.random.default_rng(0).normal(10.0, 3.0, size=(4, 20_000))
    mean, half, _ = intervals(draws)
    inside = np.abs(mean - 10.0) <= half
    assert inside.mean() == pytest.approx(0.95, abs=0.006)


WALL = [159.0, 163.2, 171.1, 158.0, 166.4, 160.9]
FAST = [101.3, 99.1, 120.7, 98.2, 110.5, 104.4]


def test_the_difference_is_that_of_the_pairs() -> None:
    actual = difference(FAST, WALL)
    assert actual.estimate == pytest.approx(np.mean(FAST) - np.mean(WALL))
    assert actual.low < actual.estimate < actual.high < 0
    assert (actual.n, actual.test) == (6, "t")
    assert actual.p == pytest.approx(stats.ttest_rel(FAST, WALL).pvalue, rel=1e-9)


def test_the_ratio_is_a_geometric_mean_and_turns_over_with_its_sides() -> None:
    actual, turned = ratio(WALL, FAST), ratio(FAST, WALL)
    assert actual.estimate == pytest.approx(stats.gmean(np.array(WALL) / np.array(FAST)))
    assert actual.p == pytest.approx(stats.ttest_rel(np.log(WALL), np.log(FAST)).pvalue, rel=1e-9)
    assert turned.estimate == pytest.approx(1 / actual.estimate)
    assert turned.low == pytest.approx(1 / actual.high)
    assert ratio([2.0, 8.0], [1.0, 1.0]).estimate == pytest.approx(4.0)


@given(st.lists(st.floats(-50.0, 50.0).map(lambda x: round(x, 3)), min_size=3, max_size=12))
def test_the_interval_and_the_test_are_students_and_agree(values: list[float]) -> None:
    assume(len(set(values)) > 1)
    actual, theirs = difference(values, np.zeros(len(values))), stats.ttest_1samp(values, 0.0)
    ends = theirs.confidence_interval(0.95)
    assert (actual.low, actual.high) == pytest.approx((ends.low, ends.high), rel=1e-9, abs=1e-9)
    assert actual.p == pytest.approx(theirs.pvalue, rel=1e-9, abs=1e-300)
    assert (actual.p < 0.05) == (not actual.low <= 0.0 <= actual.high)


@pytest.mark.parametrize("n", [5, 8, 20])
def test_the_interval_covers_the_mean_19_times_in_20(n: int) -> None:
    draws = np.random.default_rng(n).normal(1.0, 2.0, size=(2000, n))
    actual = [difference(row, np.zeros(n)) for row in draws]
    assert np.mean([x.low <= 1.0 <= x.high for x in actual]) == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("draw", ["normal", "laplace", "standard_cauchy"])
def test_the_test_is_wrong_at_most_once_in_20_where_differences_are_symmetric(draw: str) -> None:
    draws = getattr(np.random.default_rng(5), draw)(size=(2000, 5))
    wrong = [difference(row, np.zeros(5)).p <= 0.05 for row in draws]
    assert np.mean(wrong) <= 0.063


def test_five_pairs_can_be_significant() -> None:
    actual = ratio([1.10, 1.15, 1.18, 1.21, 1.22], np.ones(5))  # sign flips could say 1 in 16
    assert actual.test == "t"
    assert actual.p < 0.01
    assert 1.1 < actual.low < actual.estimate < actual.high < 1.25


def test_pairs_needed_for_significance() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0.0, 1.0, 6)
    values += 0.5 * values.std(ddof=1) - values.mean()
    actual = difference(values, np.zeros(6))
    n = pairs_needed(actual)
    assert n is not None

    def p(n: int) -> float:  # the same mean and spread in n pairs
        return float(2 * stats.t.sf(0.5 * math.sqrt(n), n - 1))

    assert p(n) <= 0.05 < p(n - 1)
    more = pairs_needed(actual, 0.05 / 10)
    assert more is not None
    assert more > n
    assert pairs_needed(difference(values + 9.0, np.zeros(6))) is None  # significant already
    assert pairs_needed(difference(values - values.mean(), np.zeros(6))) is None


@pytest.mark.parametrize("n", range(1, MIN_PAIRS))
def test_few_pairs_give_neither_interval_nor_test(n: int) -> None:
    actual = difference(FAST[:n], WALL[:n])
    assert actual.estimate == pytest.approx(np.mean(FAST[:n]) - np.mean(WALL[:n]))
    assert (actual.n, actual.test) == (n, "few")
    assert all(map(math.isnan, (actual.low, actual.high, actual.p)))


def test_equal_seeds_have_no_test() -> None:
    actual = difference([5.0] * 8, [3.0] * 8)
    assert (actual.estimate, actual.low, actual.high, actual.test) == (2.0, 2.0, 2.0, "exact")
    assert math.isnan(actual.p)


def test_incomplete_pairs_are_left_out() -> None:
    gaps = difference([*FAST, math.nan, 4.0], [*WALL, 3.0, math.nan])
    assert gaps == difference(FAST, WALL)
    assert difference([math.nan], [1.0]).n == 0
    assert math.isnan(difference([math.inf, 1.0], [1.0, 1.0]).estimate)
    for wrong in ([0.0, 1.0], [-1.0, 1.0], [math.inf, 1.0]):
        assert math.isnan(ratio(wrong, [1.0, 1.0]).estimate)


def test_each_trace_has_a_mean_of_its_own() -> None:
    rng = np.random.default_rng(2)
    small, large = rng.normal(1.0, 0.01, 6), rng.normal(50.0, 0.02, 6)
    traces = np.repeat(["small", "large"], 6)
    result = difference(np.concatenate([small, large]), np.zeros(12), traces)
    assert result.estimate == pytest.approx((small.mean() + large.mean()) / 2)
    # twice that is a sum of two means, whose interval Welch's test of two samples has
    theirs = stats.ttest_ind(small, -large, equal_var=False)
    ends = theirs.confidence_interval(0.95)
    assert (2 * result.low, 2 * result.high) == pytest.approx((ends.low, ends.high))
    assert result.p == pytest.approx(theirs.pvalue)
    assert result.high - result.low < 0.05  # differences between traces are no uncertainty
    one_seed = difference(rng.normal(1.0, 0.1, 6), np.zeros(6), np.arange(6))
    assert one_seed.test == "few"
    alone = difference(small, np.zeros(6), np.zeros(6))
    assert alone == difference(small, np.zeros(6))


def test_zeros_on_both_sides_tie_and_rounding_is_no_difference() -> None:
    tie = ratio([0.0, 2.0, 3.0], [0.0, 2.0, 3.0])
    assert (tie.estimate, tie.test, tie.n) == (1.0, "exact", 3)
    assert ratio([0.0, 2.0, 3.0], [1.0, 2.0, 3.0]).test == "no ratio"
    noise = difference([0.1 + 0.2, 0.7, 5.0], [0.3, 0.1 + 0.6, 5.0 * (1 + 1e-15)])
    assert (noise.estimate, noise.test) == (0.0, "exact")


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e9])
@pytest.mark.parametrize("n", [5, 9])
def test_the_order_of_pairs_changes_no_bit(n: int, scale: float) -> None:
    draws = np.random.default_rng(n)
    own, other = draws.lognormal(0.0, 1.5, (2, n)) * scale
    for traces in (np.zeros(n), np.arange(n) % 2):
        for compare in (difference, ratio):
            actual = repr(compare(own, other, traces))
            for _ in range(5):
                order = draws.permutation(n)
                assert repr(compare(own[order], other[order], traces[order])) == actual


def test_holm_by_hand() -> None:
    # ascending 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1, never falling
    p = np.array([0.01, 0.04, np.nan, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, np.nan, 0.06, 0.02])
    np.testing.assert_array_equal(holm(np.array([0.9, 0.8])), [1.0, 1.0])
    assert holm(np.array([])).shape == (0,)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_holm_rejects_as_its_definition_does(p: list[float]) -> None:
    alpha, m = 0.05, len(p)
    rejected = set()
    for rank, index in enumerate(sorted(range(m), key=lambda index: p[index])):
        if p[index] * (m - rank) > alpha:
            break
        rejected.add(index)
    assert {index for index, value in enumerate(holm(np.array(p))) if value <= alpha} == rejected
