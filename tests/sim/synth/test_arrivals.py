"""Arrivals in blocks: hourly rates, bursts and lulls are preserved."""

from __future__ import annotations

import numpy as np
import pytest

from sim.describe.flow import counts, dispersion
from sim.synth.fitted.arrivals import DAY_S, HOUR_S, draw_arrivals, draw_rows, fit_arrivals


def bursts(days, seed=100):
    """Bursts of five jobs, mostly in the first half of each day."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.random(int(400 * days)) * days * DAY_S)
    start = start[(start % DAY_S < DAY_S / 2) | (rng.random(len(start)) < 0.1)]
    return np.sort((start[:, None] + rng.exponential(20.0, (len(start), 5))).ravel())


@pytest.mark.parametrize(("days", "clock_s"), [(0.5, HOUR_S), (8.0, DAY_S), (40.0, 7 * DAY_S)])
def test_blocks_keep_as_much_of_the_clock_as_a_workload_has(days, clock_s):
    assert fit_arrivals(bursts(days)).clock_s == clock_s


def test_a_short_workload_has_no_arrivals():
    assert fit_arrivals(np.arange(60.0)) is None


def test_bursts_and_hours_of_the_day_are_preserved():
    real = bursts(10.0)
    synthesized = draw_arrivals(fit_arrivals(real), 4 * len(real), seed=1)
    assert (np.diff(synthesized) >= 0).all()
    assert synthesized[0] == 0
    for window_s in (60.0, 600.0, HOUR_S):
        assert dispersion(synthesized, window_s) == pytest.approx(
            dispersion(real, window_s), rel=0.12
        )
    hour = counts(synthesized, HOUR_S)
    by_hour = np.array([hour[h::24].mean() for h in range(24)])
    assert by_hour[1:11].min() > 4 * by_hour[13:23].max()


def test_a_longer_draw_begins_with_the_same_arrivals():
    arrivals = fit_arrivals(bursts(10.0))
    many = draw_arrivals(arrivals, 200_000, 1)
    assert (many[:500] == draw_arrivals(arrivals, 500, 1)).all()
    assert (many[:500] != draw_arrivals(arrivals, 500, 2)).any()


def test_every_window_is_used_equally_often():
    real = bursts(0.5)
    hours = len(counts(real, HOUR_S))
    synthesized = draw_arrivals(fit_arrivals(real), 4 * len(real), seed=1)
    n_by_hour = counts(synthesized, HOUR_S)[: 2 * hours - 2]
    assert n_by_hour.mean() == pytest.approx(counts(real, HOUR_S).mean(), rel=0.1)


def test_windows_can_stay_near_their_original_time():
    real = bursts(20.0)
    arrivals = fit_arrivals(real)
    moved = []
    for near in (3.0, np.inf):
        row, submit_s = draw_rows(arrivals, len(real) // 2, 1, near)
        moved.append(np.abs(real[row] // DAY_S - submit_s // DAY_S).max())
        assert (draw_rows(arrivals, 50, 1, near)[1] == submit_s[:50]).all()
    assert 1 <= moved[0] <= 4
    assert moved[1] > 6
