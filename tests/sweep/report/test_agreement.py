"""Judgement of values against a paper's: same, close, different or unclear."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sweep.report.agreement import MIN_DRAWS, distance, one_draw, verdict, wilson
from sweep.stats import interval

NAN = math.nan


@pytest.mark.parametrize(
    ("ours", "low", "high", "paper", "expected"),
    [
        (10.0, 9.6, 10.4, "10.5", "same"),
        (10.0, 9.4, 10.6, "10.5", "unclear"),  # the interval reaches farther than 0.525
        (10.0, 9.6, 10.6, "10.5", "unclear"),  # on one side
        (10.0, 8.0, 12.0, "11.9", "close"),
        (10.0, 8.0, 12.0, "10.1", "unclear"),  # near, but for all we know not within 5 %
        (10.0, 5.0, 15.0, "11.9", "unclear"),
        (10.0, 5.0, 15.0, "13.4", "different"),  # a wide interval that holds the number
        (10.0, 9.9, 10.1, "13.4", "different"),
        (12.5, 12.5, 12.5, "10.0", "close"),
        (12.6, 12.6, 12.6, "10.0", "different"),
        (7.4, 7.4, 7.4, "10.0", "different"),
        (-15.5, -15.6, -15.4, "-16", "same"),
        (15.5, 15.4, 15.6, "-16", "different"),
        (1.4, 1.4, 1.4, "1", "same"),  # half a unit of the last digit
        (1.4, 1.2, 1.6, "1", "same"),
        (1.4, 0.8, 2.0, "1", "unclear"),
        (1.4, 1.4, 1.4, "1.0", "different"),
        (0.3, 0.1, 0.5, "0", "same"),
        (0.3, -0.3, 0.9, "0", "unclear"),
        (0.8, 0.6, 1.0, "0", "different"),
        (23.0, 22.9, 23.1, "about 24", "same"),
        (25.0, 24.9, 25.1, "almost 30", "close"),
        (36.0, 28.0, 45.0, "slightly below 55", "different"),
        (50.0, 46.0, 54.0, "45 or more", "same"),
        (50.0, 42.0, 58.0, "45 or more", "unclear"),  # half of the interval's lower end misses it
        (50.0, 43.0, 57.0, "45 or more", "same"),
        (40.0, 39.0, 41.0, "45 or more", "close"),
        (40.0, 20.0, 60.0, "45 or more", "unclear"),
        (3.0, 0.0, 4.2, "4 at most", "same"),
        (3.0, 0.0, 6.0, "4 at most", "unclear"),
        (6.0, 3.0, 9.0, "4 at most", "different"),
        (280.0, 280.0, 280.0, "more than 80", "same"),
        (1.0, 1.0, 1.0, "3 times Jockey's", ""),
        (1.0, 1.0, 1.0, "", ""),
        (NAN, NAN, NAN, "3", ""),
        (math.inf, NAN, NAN, "3", ""),
    ],
)
def test_verdicts(ours: float, low: float, high: float, paper: str, expected: str) -> None:
    assert verdict(ours, low, high, paper) == expected


def test_the_distance_to_a_bound_that_is_met_is_none() -> None:
    assert distance(50.0, "about 45") == distance(40.0, "45 or more") == 5.0
    assert distance(50.0, "45 or more") == 0.0
    assert math.isnan(distance(50.0, "in time"))


def test_without_an_interval_only_an_exact_value_can_agree() -> None:
    assert verdict(10.0, NAN, NAN, "10.1") == "unclear"
    assert verdict(10.0, NAN, NAN, "10.1", exact=True) == "same"
    assert verdict(10.0, NAN, NAN, "13.4") == "different"
    assert verdict(280.0, NAN, NAN, "more than 80") == "unclear"
    assert verdict(280.0, NAN, NAN, "more than 80", exact=True) == "same"


def test_noise_never_makes_a_value_agree() -> None:
    for paper in ("10.4", "12", "15", "1 of 8", "9 at most", "11 or more"):
        for width in (0.01, 0.1, 1.0, 10.0, 100.0):
            for n in (None, 3, 30):
                noisy = verdict(10.0, 10.0 - width, 10.0 + width, paper, percent=True, n=n)
                assert noisy in (verdict(10.0, 10.0, 10.0, paper, percent=True), "unclear")


def test_one_draw_has_the_spread_of_the_seeds_not_of_their_mean() -> None:
    values = np.random.default_rng(0).normal(10.0, 2.0, 20)
    mean, low, high = interval(values)
    ends = one_draw(mean, low, high, len(values))
    half = 2.093024 * values.std(ddof=1) * math.sqrt(1 + 1 / 20)  # t of 19 degrees of freedom
    assert list(ends) == pytest.approx([mean - half, mean + half], rel=1e-6)
    assert all(map(math.isnan, one_draw(10.0, 9.0, 11.0, 0)))
    assert one_draw(10.0, 10.0, 10.0, 20) == (10.0, 10.0)  # a recorded trace: no seed changes it


@pytest.mark.parametrize(
    ("low", "high", "paper", "n", "expected"),
    [
        (9.9, 10.1, "10.2", 20, "same"),  # 9.54 to 10.46
        (9.8, 10.2, "10.2", 20, "unclear"),  # 9.08 to 10.92: farther than 5 %
        (9.6, 10.4, "11.5", 20, "close"),  # 8.17 to 11.83
        (9.0, 11.0, "11.5", 20, "unclear"),
        (9.0, 11.0, "14.5", 20, "unclear"),  # 5.4 to 14.6 holds it
        (9.0, 11.0, "14.7", 20, "different"),
        (9.0, 11.0, "7 at most", 20, "unclear"),
        (9.0, 11.0, "5 at most", 20, "different"),
        (5.0, 15.0, "14.5", MIN_DRAWS - 1, "different"),  # few draws excuse nothing
        (9.9, 10.1, "10.2", 0, "unclear"),  # their number is unknown
        (NAN, NAN, "14.5", 20, "different"),
    ],
)
def test_a_number_of_one_draw(low: float, high: float, paper: str, n: int, expected: str) -> None:
    assert verdict(10.0, low, high, paper, n=n) == expected


def test_a_count_is_a_sample_too() -> None:
    low, high = wilson(1, 94)  # 0.2 to 5.8 %
    assert [low, high] == pytest.approx([0.001880, 0.057823], abs=1e-6)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == pytest.approx(1.0)
    for ours in (1.06, 2.86):
        assert verdict(ours, ours, ours, "1 of 94", percent=True) == "unclear"
    assert verdict(6.0, 5.9, 6.1, "1 of 94", percent=True) == "different"
    assert verdict(1.06, 1.06, 1.06, "1 of 94") == "different"  # a fraction, not percent
    assert verdict(50.1, 50.0, 50.2, "5000 of 10000", percent=True) == "same"
