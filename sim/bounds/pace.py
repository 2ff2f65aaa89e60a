"""Pace of a cluster: the most work of a task that can be done by each time, in its fast periods."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, Mask
from sim.cluster.faults import Slowdowns


class Pace:
    """Conversion between times and the seconds of work that a task can have done by then.

    Everything on a cluster runs at one speed at a time. Counted in seconds of work instead of
    seconds, no task is ever shortened; so a bound of a schedule at speed 1 holds for work, and the
    time in which that much work can be done bounds the time. Slow periods count as speed 1: the
    bound may be too low, and holds without them too. Times count from the first submission.
    """

    def __init__(self, slowdowns: Slowdowns) -> None:
        times, speed = slowdowns.steps()
        self._speed = np.maximum(speed, 1.0)
        self.is_even = bool((self._speed == 1.0).all())
        self._time = times
        self._work = np.append(0.0, np.cumsum(np.diff(times) * self._speed[:-1]))
        self._fastest = np.maximum.accumulate(self._speed[::-1])[::-1]

    def work_s(self, time_s: F8) -> F8:
        """Return the work of a task that can be done by each time, s."""
        i = np.searchsorted(self._time, time_s, side="right") - 1
        work: F8 = self._work[i] + (time_s - self._time[i]) * self._speed[i]
        return work

    def time_s(self, work_s: F8) -> F8:
        """Return the time by which that much work can be done, s: the inverse of `work_s`."""
        i = np.searchsorted(self._work, work_s, side="right") - 1
        time: F8 = self._time[i] + (work_s - self._work[i]) / self._speed[i]
        return time

    def least_s(self, bound_s: F8, submit_s: F8, moves: Mask) -> F8:
        """Return bounds of completion times, given those at speed 1: (J,) s each.

        A job that `moves` may be submitted later than at `submit_s`: its bound takes the fastest
        speed from then on.
        """
        at_once = self.time_s(self.work_s(submit_s) + bound_s) - submit_s
        i = np.searchsorted(self._time, submit_s, side="right") - 1
        return np.minimum(np.where(moves, bound_s / self._fastest[i], at_once), bound_s)
