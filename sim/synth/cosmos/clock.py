"""When in the day and the week things happen."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8

AMPLITUDE = 0.4
"""How much more than on average happens at the busiest hour. Not published; calibrated on user
priorities alone (docs/wing_workload.md)."""

BUSIEST_H = 10.0

WEEKEND = 0.7
"""Ad hoc jobs on a day of the weekend, of those on a weekday; not published."""

_DAY_S = 86_400.0
WEEK_S = 7 * 86_400.0


def daily_offset(period_s: F8, rng: np.random.Generator) -> F8:
    """Draw when within their period workflows start, most of the daily ones in busy hours."""
    hour = hours(len(period_s), AMPLITUDE, rng)
    day = np.floor(rng.random(len(period_s)) * np.maximum(period_s / _DAY_S, 1.0))
    out: F8 = (day * _DAY_S + hour * 3600.0) % period_s
    return out


def hours(n: int, amplitude: float, rng: np.random.Generator) -> F8:
    """Draw hours of the day with density 1 + amplitude cos(2π (h - busiest) / 24)."""
    grid = np.linspace(0.0, 24.0, 1441)
    angle = 2 * np.pi / 24.0
    below = grid + amplitude / angle * (
        np.sin(angle * (grid - BUSIEST_H)) + np.sin(angle * BUSIEST_H)
    )
    out: F8 = np.interp(rng.random(n) * below[-1], below, grid)
    return out


def ad_hoc_times(n: int, weeks: int, rng: np.random.Generator) -> F8:
    """Draw times in so many weeks from 0, ascending: more by day, and on weekdays."""
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, WEEKEND, WEEKEND])
    day = rng.choice(7, size=n, p=weight / weight.sum()) + 7 * rng.integers(weeks, size=n)
    out: F8 = np.sort(day * _DAY_S + hours(n, AMPLITUDE, rng) * 3600.0)
    return out
