"""The least whole number at which a noisy metric is good enough.

Nothing here knows of cells: `Hunt.wants` says at which numbers, with how many seeds, the metric is
to be had next, `Hunt.tell` takes it in.

How sure it is: at a number of machines the metric is looked at after 5 seeds, then 10, 20 and so on
up to the most there may be, and is on one side of the target once Student's interval of its mean
lies there. As each look is a chance to err, an interval is of confidence 1 - 0.05 / looks
(Bonferroni): the chance that a number is ever put on the wrong side is 5 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from sweep.stats import CONFIDENCE, FIRST_SEEDS

Status = Literal["met", "never", "always"]

CLOSE = 1.12
"""Neighbours of the first numbers looked at need be no closer: a dip that is wider is seen."""

RISES = 0.01
"""A metric that gets worse by less than this part of itself is called monotone."""


@dataclass(frozen=True)
class Probe:
    """What is known at one number of machines."""

    values: tuple[float, ...]  # of the metric, in the order of the seeds
    is_met: bool  # by the mean
    is_sure: bool
    is_over: bool = True  # whether no more seeds are wanted
    why: str = ""  # there are no values

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.values))


@dataclass(frozen=True)
class ThresholdResult:
    """What a hunt found."""

    status: Status
    at: int | None  # the least number looked at whose mean meets the target; None if none does
    # the number wanted is surely above `low` and at most `high`: what surely misses and what
    # surely meets; None if nothing does
    low: int | None
    high: int | None
    safe: int | None  # all that were looked at from here on meet it; None if the largest misses
    is_sure: bool  # whether there were seeds enough for an answer as close as asked
    # pairs of numbers, of which the larger is worse
    worse: tuple[tuple[int, int], ...]


@dataclass
class ThresholdSearch:
    """The search for the least number from `low` to `high` at which a metric meets a target."""

    low: int
    high: int
    bound: float
    is_most: bool
    seeds: tuple[int, ...]  # how many to look at a number with, ascending
    apart: Callable[[int], int]  # how far below the answer the largest that misses may be
    n_first: int = 5  # numbers to look at before anything is known
    probes: dict[int, Probe] = field(default_factory=dict)

    def wants(self) -> list[tuple[int, int]]:
        """Return numbers to have the metric at, and of how many seeds; empty when it is over."""
        if not self.probes:
            return [(n, self.seeds[0]) for n in spread(self.low, self.high, self.n_first)]
        again = [
            (n, next(k for k in self.seeds if k > len(probe.values)))
            for n, probe in sorted(self.probes.items())
            if not probe.is_over
        ]
        gaps = again or self._gaps(self._edges()) or self._gaps(self._dips())
        return again or [((less + more) // 2, self.seeds[0]) for less, more in gaps]

    def tell(self, n: int, values: Sequence[float]) -> None:
        """Take in the metric at a number, of all seeds so far, in their order."""
        level = 1 - (1 - CONFIDENCE) / len(self.seeds)
        mean, half = mean_and_half(values, level)
        above = mean - self.bound if self.is_most else self.bound - mean
        is_sure = math.isinf(mean) or (above + half <= 0 if above <= 0 else above - half > 0)
        is_over = is_sure or len(values) >= self.seeds[-1]
        self.probes[n] = Probe(tuple(values), above <= 0, is_sure, is_over)

    def refuse(self, n: int, why: str, *, is_sure: bool) -> None:
        """Take in that there is no metric at a number: it misses."""
        self.probes[n] = Probe((), is_met=False, is_sure=is_sure, why=why)

    def answer(self) -> ThresholdResult:
        """Say what was found, once nothing more is wanted."""
        probes = sorted(self.probes.items())
        missing = [n for n, probe in probes if not probe.is_met]
        high = min((n for n, probe in probes if probe.is_met and probe.is_sure), default=None)
        top = math.inf if high is None else high
        low = max((n for n in missing if self.probes[n].is_sure and n < top), default=None)
        at = next((n for n, probe in probes if probe.is_met and n > (low or 0)), None)
        safe = next((n for n, _ in probes if n > max(missing, default=0)), None)
        worse = tuple(self._worse())
        if at is None:
            return ThresholdResult("never", None, low, None, None, low == probes[-1][0], worse)
        is_near = at == self.low or (low is not None and at - low <= self.apart(at))
        status: Status = "met" if missing else "always"
        return ThresholdResult(status, at, low, high, safe, at == high and is_near, worse)

    def _edges(self) -> list[tuple[int, int]]:
        """Return neighbours between which the answer, or an end of what it may be, lies."""
        found = self.answer()
        above = (found.at, found.high, found.safe)
        return [(a, b) for a, b in pairwise(sorted(self.probes)) if a == found.low or b in above]

    def _dips(self) -> list[tuple[int, int]]:
        """Return where a metric that is not monotone may meet the target before it seems to."""
        found = self.answer()
        return [pair for pair in found.worse if pair[1] < (found.at or self.high + 1)]

    def _gaps(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(less, more) for less, more in pairs if more - less > self.apart(more)]

    def _worse(self) -> list[tuple[int, int]]:
        """Return neighbours of which the larger is worse, surely and not by a hair."""
        known = [(n, probe) for n, probe in sorted(self.probes.items()) if probe.values]
        pairs = list(pairwise(known))
        level = 1 - (1 - CONFIDENCE) / max(1, len(pairs))
        sign = 1.0 if self.is_most else -1.0
        found = []
        for (less, before), (more, after) in pairs:
            n = min(len(before.values), len(after.values))
            by = [sign * (b - a) for a, b in zip(before.values[:n], after.values[:n], strict=True)]
            mean, half = mean_and_half(by, level)
            if mean - half > 0 and mean > RISES * abs(before.mean):
                found.append((less, more))
        return found


def mean_and_half(values: Sequence[float], level: float) -> tuple[float, float]:
    """Mean, and half the width of Student's interval; of one value, or of equal ones, 0.

    One value stands for itself: who gives one seed says that seeds make no difference.
    """
    column = np.asarray(values, dtype=np.float64)
    mean = float(column.mean())
    if len(column) == 1 or not math.isfinite(mean) or (column == column[0]).all():
        return mean, 0.0
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    t = float(stdtrit(len(column) - 1, 0.5 + level / 2))
    return mean, t * float(column.std(ddof=1)) / math.sqrt(len(column))


def spread(low: int, high: int, most: int) -> list[int]:
    """Return whole numbers from end to end, neighbours by about the same ratio apart.

    Geometric means, in whole numbers, so that they are the same everywhere, are put into all gaps
    as long as neighbours are more than `CLOSE` apart, and there are no more than `most`.
    """
    found = sorted({low, high})
    while 2 * len(found) - 1 <= most:
        more = [
            max(a + 1, (math.isqrt(4 * a * b) + 1) // 2)
            for a, b in pairwise(found)
            if b > max(a + 1, CLOSE * a)
        ]
        if not more:
            break
        found = sorted([*found, *more])
    return found


def seed_steps(n_seeds: int) -> tuple[int, ...]:
    """Return after how many seeds one looks: 5, then twice as many each time, up to all."""
    found = []
    n = FIRST_SEEDS
    while n < n_seeds:
        found.append(n)
        n *= 2
    return (*found, n_seeds)
