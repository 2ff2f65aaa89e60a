"""Intervals that are widened on the past cover as much of what follows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sweep.questions.starts.calibration import NONE, Calibration, Past, calibration_of
from sweep.questions.starts.sentences import answer
from sweep.questions.starts.strategy import _judged as judged
from sweep.questions.starts.strategy import _nearest as nearest


def past(n: int, seed: int, factor: float = 1.0, spread: float = 1.0) -> Past:
    """Forecasts whose intervals hold 80 % at factor and spread 1."""
    rng = np.random.default_rng(seed)
    median_s = rng.uniform(600, 40_000, n)
    left_s = factor * median_s * np.exp(spread * 0.3 * rng.normal(size=n))
    ends = [median_s * math.exp(sign * 0.3 * 1.2816) for sign in (-1, 1)]
    return Past(np.arange(n) % 10, left_s, ends[0], median_s, ends[1])


@pytest.mark.parametrize(("factor", "spread"), [(1.0, 1.0), (1.8, 1.0), (0.6, 1.0), (1.0, 3.0)])
def test_as_much_as_is_wanted_is_covered(factor: float, spread: float) -> None:
    calibration = calibration_of(past(2_000, 1, factor, spread))
    assert calibration.factor == pytest.approx(factor, rel=0.05)
    other = past(2_000, 2, factor, spread)
    assert other.covered(calibration) == pytest.approx(0.8, abs=0.03)
    assert other.error(calibration) <= other.error(NONE) + 0.01
    if (factor, spread) != (1.0, 1.0):
        assert abs(other.covered(NONE) - 0.8) > 0.05


def test_wide_intervals_become_narrower_but_hold_their_median() -> None:
    sharp = past(1_000, 3, spread=0.2)
    low_s, median_s, high_s = calibration_of(sharp).apply(sharp.low_s, sharp.median_s, sharp.high_s)
    assert (high_s - low_s < sharp.high_s - sharp.low_s).all()
    assert ((low_s <= median_s) & (high_s >= median_s)).all()


def test_open_ends_stay_open() -> None:
    calibration = Calibration(1.0, 0.5, 0.5)
    ends = calibration.apply(*(np.array([x]) for x in (100.0, 200.0, math.inf)))
    assert [end.tolist() for end in ends] == [[0.0], [200.0], [math.inf]]
    never = np.array([math.inf])
    assert [end.tolist() for end in calibration.apply(never, never, never)] == [[math.inf]] * 3


def test_the_cover_is_that_of_moments_that_did_not_calibrate() -> None:
    calibration, record = judged(past(400, 4, factor=2.0))
    assert record["covered_drawn"] < 0.5
    assert record["covered"] == pytest.approx(0.8, abs=0.08)
    assert (record["forecasts"], record["moments"], record["tested_on"]) == (400, 10, 200)
    assert calibration.factor == pytest.approx(2.0, rel=0.1)
    assert record["error"] < record["error_drawn"]
    (now, trust) = answer(
        {**record, "now": "2026-03-01T09:30:00", "draws": 50, "arrivals": True}, 3
    )
    assert now.startswith("3 jobs wait at 2026-03-01T09:30:00; starts are the median of 50 draws")
    assert (
        "Of 400 such starts at 10 past moments of the log, with jobs that come as before" in trust
    )
    assert f"{100 * record['covered']:.0f} % of the 200 of the second half" in trust


def test_few_forecasts_calibrate_nothing() -> None:
    calibration, record = judged(past(12, 5, factor=2.0))
    assert calibration == NONE
    assert record["covered"] is None
    (trust,) = answer({**record, "draws": 50, "arrivals": False}, 0)
    assert "with no job that comes" in trust
    assert "too few to calibrate" in trust
    none = Past(np.zeros(0, np.int64), *(np.zeros(0) for _ in range(4)))
    (trust,) = answer({**judged(none)[1], "draws": 50, "arrivals": True}, 0)
    assert trust.startswith("Nobody knows how far to trust them")


def test_arrivals_are_drawn_if_that_was_nearer() -> None:
    assert nearest({True: past(50, 6), False: past(50, 6, factor=3.0)})
    assert not nearest({True: past(50, 6, factor=3.0), False: past(50, 6)})
