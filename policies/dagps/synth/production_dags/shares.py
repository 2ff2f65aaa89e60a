"""Shares of a DAG's work on its critical path, in its sources and in the rest (Table 2)."""

from __future__ import annotations

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, Mask
from sim.base.random import Stream
from sim.published import numbers

_PAPER = numbers("dagps")
MAX_TRIES = 50
PATH_SHARES = (0.33, 0.18, 0.13, 0.12, 0.30)
FIRST_SHARES = (0.055, 0.19, 0.18, 0.21, 0.37)
"""Histograms from which the shares of work are drawn, calibrated so that the result matches Table
2: in a chain all work is on the path, shares that a structure can't have are redrawn, and numbers
of tasks are rounded."""
_MOST_WORK = {row: fifths[-1] for row, fifths in _PAPER["table2"].items()}
_EITHER_ABOVE = _PAPER["dags"]["either_above"]
BOTH_ABOVE = _MOST_WORK["critical path"] + _MOST_WORK["unconstrained"] - _EITHER_ABOVE
"""Share of DAGs with more than 80 % of their work on the path, and more than 80 % in sources."""


def divide_work(exists: Mask, rng: Stream) -> F8:
    """Draw the shares of work of four groups of stages, ``2 * on_path + source``, (4,).

    The share that is both on the path and in sources is drawn near its possible minimum.
    """
    for _ in range(MAX_TRIES):
        path, first = draw_shares(rng)
        if not (exists[0] or exists[1]):
            path = 1.0
        if not exists[2]:
            first = 1.0
        low = max(0.0, path + first - 1) if exists[1] else first
        high = min(path, first) if exists[0] else path + first - 1
        if low <= high and high >= 0:
            in_both = low + (high - low) * _fourth(rng.random())
            share = np.array([1 - path - first + in_both, first - in_both, path - in_both, in_both])
            if (share[~exists] <= 1e-9).all() and (share >= -1e-9).all():
                return share.clip(min=0.0)
    return exists.astype(np.float64) / float(exists.sum())


def _fourth(x: float) -> float:
    return x * x * x * x


def draw_shares(rng: Stream) -> tuple[float, float]:
    """Draw the shares of work on the critical path and in sources from their histograms.

    Both exceed 80 % as often as published; otherwise the two shares are negatively dependent.
    """
    top = PATH_SHARES[-1] / sum(PATH_SHARES)
    in_both = min(top, BOTH_ABOVE)
    u, v, w = rng.random(3)
    if u < 1 - top:
        v = top - in_both + v * (1 - top)
    elif w * top < in_both:
        v = 1 - in_both * v
    else:
        v = (top - in_both) * v
    return _draw_from_fifths(PATH_SHARES, u), _draw_from_fifths(FIRST_SHARES, v)


def _draw_from_fifths(histogram: tuple[float, ...], u: float) -> float:
    cum = np.cumsum([0.0, *histogram])
    return float(maths.interp(u * cum[-1], cum, np.linspace(0, 1, 6)))
