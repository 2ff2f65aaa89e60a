"""Periods in which the whole cluster is slower, drawn or given before the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.random import stream


@dataclass(frozen=True, eq=False)
class Slowdowns:
    """K periods in each of which everything on the cluster runs at a speed of its own.

    Use `Slowdowns.of` or `draw`. Outside of the periods the speed is 1.

    Attributes
    ----------
    begin_s, end_s : (K,) float64
        When a period begins and ends, s; by time, none overlaps another. The last may never end.
    speed : (K,) float64
        How many seconds of a task's duration pass in a second; positive.
    """

    begin_s: F8
    end_s: F8
    speed: F8

    @classmethod
    def of(cls, begin_s: ArrayLike, end_s: ArrayLike, speed: ArrayLike) -> Slowdowns:
        """Make columns of them, by time.

        Raises
        ------
        InputError
            If a time is negative, a period ends before it begins or overlaps the next, or a speed
            is not positive and finite.
        """
        columns = [np.atleast_1d(np.asarray(c, np.float64)) for c in (begin_s, end_s, speed)]
        if len({len(c) for c in columns}) > 1:
            raise InputError(f"slow periods of {', '.join(str(len(c)) for c in columns)} rows")
        order = np.argsort(columns[0], kind="stable")
        begin, end, pace = (c[order] for c in columns)
        for what, broken in (
            ("it begins before 0 or never", ~(np.isfinite(begin) & (begin >= 0))),
            ("it must end after it begins", ~(end > begin)),
            ("its speed must be positive and finite", ~(np.isfinite(pace) & (pace > 0))),
            ("it overlaps the next", np.append(begin[1:] < end[:-1], False)[: len(begin)]),
        ):
            if broken.any():
                row = int(np.argmax(broken))
                raise InputError(
                    f"slow period from {begin[row]:g} to {end[row]:g} s at speed {pace[row]:g}: "
                    f"{what}",
                    rule="slow period",
                )
        return cls(begin, end, pace)

    def __len__(self) -> int:
        return len(self.speed)

    def steps(self) -> tuple[F8, F8]:
        """Return times, the first 0, and the speed from each on: (N,) float64 each."""
        times, speeds = [0.0], [1.0]
        for begin, end, speed in zip(self.begin_s, self.end_s, self.speed, strict=True):
            for time, pace in ((float(begin), float(speed)), (float(end), 1.0)):
                if time == times[-1]:
                    speeds[-1] = pace
                elif np.isfinite(time):
                    times.append(time)
                    speeds.append(pace)
        return np.array(times), np.array(speeds)


NO_SLOWDOWNS = Slowdowns.of([], [], [])


def draw(
    seed: int, *, every_s: float, last_s: float, speed: tuple[float, float], until_s: float
) -> Slowdowns:
    """Draw slow periods: times between them and their lengths are exponential.

    Parameters
    ----------
    seed : int
        Seed of the stream.
    every_s, last_s : float
        Mean time from the end of one to the begin of the next, and mean length, s; positive.
    speed : (float, float)
        Each period's speed is uniform between the two; positive.
    until_s : float
        None begins later than that, s.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    low, high = speed
    for name, value in (("every_s", every_s), ("last_s", last_s), ("speed", low)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} of slow periods must be positive and finite, not {value!r}")
    if not low <= high < np.inf:
        raise InputError(f"the speed of slow periods lies between {low!r} and {high!r}: turn them")
    rng = stream(seed, "slowdowns")
    rows: list[tuple[float, float, float]] = []
    time_s = rng.exponential(every_s)
    while time_s <= until_s:
        end_s = time_s + rng.exponential(last_s)
        rows.append((time_s, end_s, rng.uniform(low, high)))
        time_s = end_s + rng.exponential(every_s)
    return Slowdowns.of(*zip(*rows, strict=True)) if rows else NO_SLOWDOWNS
