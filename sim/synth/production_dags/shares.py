"""How the work of one DAG divides between its critical path, its sources and the rest (Table 2)."""

from __future__ import annotations

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, Mask
from sim.base.random import Stream
from sim.published import numbers

_PAPER = numbers("dagps")
MOST_TRIES = 50
PATH_SHARES = (0.33, 0.18, 0.13, 0.12, 0.30)
FIRST_SHARES = (0.055, 0.19, 0.18, 0.21, 0.37)
"""Histograms that the shares of work are drawn from, so that Table 2 is what comes out: in a chain
all work is on the path, shares that a structure can't have are drawn again, and tasks are whole."""
_MOST_WORK = {where: parts[-1] for where, parts in _PAPER["table2"].items()}
_EITHER_ABOVE = _PAPER["dags"]["either_above"]
BOTH_ABOVE = _MOST_WORK["critical path"] + _MOST_WORK["unconstrained"] - _EITHER_ABOVE
"""DAGs with more than 80 % of their work on the path, and more than 80 % without parents."""


def divide_work(exists: Mask, rng: Stream) -> F8:
    """Draw how the work divides among four groups of stages, ``2 * on_path + source``, (4,).

    What is on the path and without parents is drawn nearer to the least it can be.
    """
    for _ in range(MOST_TRIES):
        path, first = draw_shares(rng)
        if not (exists[0] or exists[1]):
            path = 1.0
        if not exists[2]:
            first = 1.0
        low = max(0.0, path + first - 1) if exists[1] else first
        high = min(path, first) if exists[0] else path + first - 1
        if low <= high and high >= 0:
            both = low + (high - low) * _fourth(rng.random())
            share = np.array([1 - path - first + both, first - both, path - both, both])
            if (share[~exists] <= 1e-9).all() and (share >= -1e-9).all():
                return share.clip(min=0.0)
    return exists.astype(np.float64) / float(exists.sum())


def _fourth(x: float) -> float:
    return x * x * x * x


def draw_shares(rng: Stream) -> tuple[float, float]:
    """Draw the shares of work on the critical path and in stages without parents, by histogram.

    More than 80 % are in both as published; else most work on the path goes with least in sources.
    """
    top = PATH_SHARES[-1] / sum(PATH_SHARES)
    both = min(top, BOTH_ABOVE)
    u, v, w = rng.random(3)
    if u < 1 - top:
        v = top - both + v * (1 - top)
    elif w * top < both:
        v = 1 - both * v
    else:
        v = (top - both) * v
    return _of_fifths(PATH_SHARES, u), _of_fifths(FIRST_SHARES, v)


def _of_fifths(histogram: tuple[float, ...], u: float) -> float:
    reached = np.cumsum([0.0, *histogram])
    return float(maths.interp(u * reached[-1], reached, np.linspace(0, 1, 6)))
