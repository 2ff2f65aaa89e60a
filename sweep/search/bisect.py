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

from sweep.stats import CONFIDENCE

Side = Literal["met", "missed", "unsure"]
Status = Literal["met", "never", "always", "unsure"]

N_FIRST = 5
"""Numbers looked at first, from end to end: a metric that is not monotone shows there."""

FIRST_LOOK = 5
"""Seeds; with fewer Student's interval is so wide that most looks would be in vain."""

RISES = 0.01
"""A metric that gets worse by less than this part of itself is called monotone."""


@dataclass
class Probe:
    """What is known at one number of machines."""

    values: list[float] = field(default_factory=list)  # of the metric, in the order of the seeds
    side: Side | None = None  # None where more seeds are needed
    why: str = ""  # what no simulation had to find out

    @property
    def mean(self) -> float:
        """Mean over seeds, NaN of none."""
        return float(np.mean(self.values)) if self.values else math.nan


@dataclass(frozen=True)
class Answer:
    """What a hunt found: the least number is above `low` and at most `high`."""

    status: Status
    at: int | None  # the least number that is seen to meet the target; None if none is
    low: int | None  # the largest below it that is seen to miss; None if none is
    high: int | None
    is_sure: bool  # whether there were seeds enough for an answer as close as asked
    # pairs of numbers, of which the larger is worse
    worse: tuple[tuple[int, int], ...]


@dataclass
class Hunt:
    """The search for the least number from `low` to `high` at which a metric meets a target."""

    low: int
    high: int
    bound: float
    is_most: bool
    looks: tuple[int, ...]  # numbers of seeds at which one looks, ascending
    apart: Callable[[int], int]  # how far below the answer the largest that misses may be
    probes: dict[int, Probe] = field(default_factory=dict)

    def wants(self) -> list[tuple[int, int]]:
        """Return numbers to have the metric at, and of how many seeds; empty when it is over."""
        if not self.probes:
            ends = np.linspace(self.low, self.high, N_FIRST)
            return [(n, self.looks[0]) for n in sorted({int(end + 0.5) for end in ends})]
        again = [(n, self._more(p)) for n, p in sorted(self.probes.items()) if p.side is None]
        return again or [(n, self.looks[0]) for n in self._between() or self._dips()]

    def tell(self, n: int, values: Sequence[float]) -> None:
        """Take in the metric at a number, of all seeds so far, in their order."""
        self.probes[n] = Probe(list(values), self._side(values))

    def refuse(self, n: int, why: str) -> None:
        """Take in that a number of machines can't even be simulated: it misses."""
        self.probes[n] = Probe([], "missed", why)

    def answer(self) -> Answer:
        """Say what was found, once nothing more is wanted."""
        meets, below, unsure = self._edges()
        worse = tuple(self._worse())
        if meets is None:
            status: Status = "unsure" if unsure else "never"
            return Answer(status, None, below, None, not unsure, worse)
        if meets == self.low:
            falls = any(p.side == "missed" for p in self.probes.values())
            return Answer("met" if falls else "always", meets, None, meets, True, worse)
        is_sure = below is not None and meets - below <= self.apart(meets)
        return Answer("met", meets, below, meets, is_sure, worse)

    def _more(self, probe: Probe) -> int:
        return next(n for n in self.looks if n > len(probe.values))

    def _edges(self) -> tuple[int | None, int | None, list[int]]:
        """Return the least that meets, the largest below that misses, what is unsure between."""
        sides = {n: probe.side for n, probe in self.probes.items()}
        meets = min((n for n, side in sides.items() if side == "met"), default=None)
        top = math.inf if meets is None else meets
        below = max((n for n, side in sides.items() if side == "missed" and n < top), default=None)
        bottom = -math.inf if below is None else below
        unsure = [n for n, side in sides.items() if side == "unsure" and bottom < n < top]
        return meets, below, sorted(unsure)

    def _between(self) -> list[int]:
        """Return the middles of the gaps between what misses, what is unsure, and what meets."""
        meets, below, unsure = self._edges()
        known = [n for n in (below, meets) if n is not None]
        if meets is None and not unsure:
            return []
        gaps = list(pairwise(sorted({*known, *unsure[:1], *unsure[-1:]})))
        if len(unsure) > 1:  # between two that are unsure there is nothing to find
            gaps.remove((unsure[0], unsure[-1]))
        least = self.apart(meets if meets is not None else self.high)
        return [(low + high) // 2 for low, high in gaps if high - low > least]

    def _dips(self) -> list[int]:
        """Return where a metric that is not monotone may meet the target before it seems to."""
        meets, _, _ = self._edges()
        top = self.high + 1 if meets is None else meets
        least = self.apart(min(top, self.high))
        pairs = [pair for pair in self._worse() if pair[1] < top and pair[1] - pair[0] > least]
        return [(less + more) // 2 for less, more in pairs]

    def _side(self, values: Sequence[float]) -> Side | None:
        """Tell on which side of the target the mean lies, if it can be told."""
        level = 1 - (1 - CONFIDENCE) / len(self.looks)
        mean, half = mean_and_half(values, level)
        sign = 1.0 if self.is_most else -1.0
        if sign * (mean - self.bound) + half <= 0:
            return "met"
        if sign * (mean - self.bound) - half > 0 or math.isinf(mean):
            return "missed"
        return "unsure" if len(values) >= self.looks[-1] else None

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


def looks(n_seeds: int) -> tuple[int, ...]:
    """Return after how many seeds one looks: 5, then twice as many each time, up to all."""
    found = []
    n = FIRST_LOOK
    while n < n_seeds:
        found.append(n)
        n *= 2
    return (*found, n_seeds)
