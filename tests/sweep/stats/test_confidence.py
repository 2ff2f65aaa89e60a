from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sweep.stats import interval, intervals


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
