"""Numbers that change at instants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I8


class Steps(NamedTuple):
    """A number over time: ``values[0]`` at first, ``values[k + 1]`` from ``times[k]`` on."""

    times: F8
    values: I8

    def values_at(self, times: F8) -> I8:
        """Return the number at some times, just after what happens then."""
        return self.values[np.searchsorted(self.times, times, side="right")]


def from_changes(begin_s: F8, end_s: F8, amount: I8) -> Steps:
    """Return the sum of amounts that last from their begin to their end."""
    times = np.concatenate([begin_s, end_s])
    order = np.argsort(times, kind="stable")
    sums = np.cumsum(np.concatenate([amount, -amount])[order])
    return Steps(times[order], np.concatenate([[0], sums]).astype(np.int64))


def grid(curves: Iterable[Steps], cuts: Iterable[float], begin_s: float, end_s: float) -> F8:
    """Return begin, end, and all times between at which a curve changes or a cut is."""
    within = [np.array([begin_s, end_s])]
    for curve in curves:
        first, last = np.searchsorted(curve.times, [begin_s, end_s], side="left").tolist()
        within.append(curve.times[first:last])
    times = np.concatenate([*within, [cut for cut in cuts if begin_s < cut < end_s]])
    unique: F8 = np.unique(times)
    return unique
