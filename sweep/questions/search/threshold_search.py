"""Threshold search: the smallest integer at which a noisy metric meets a target.

It is independent of cells: `ThresholdSearch.next_probes` returns the numbers at which to evaluate
the metric next, and with how many seeds; `ThresholdSearch.record` adds the values.

Confidence: at a number of machines the metric is evaluated after 5 seeds, then 10, 20 and so on up
to the limit, and is on one side of the target once Student's interval of its mean lies there. As
each evaluation is a chance to err, an interval has confidence 1 - 0.05 / evaluations (Bonferroni):
the chance that a number is ever put on the wrong side is 5 % at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from sweep.stats import CONFIDENCE, FIRST_SEEDS
from sweep.stats.inference import error_share

Status = Literal["met", "never", "always"]

CLOSE = 1.12
"""Smallest ratio of neighbours among the first probes: a dip wider than that is seen."""

N_NEIGHBOURS = 2
"""Numbers above an answer that are probed, too, a tolerance apart each."""

MIN_RISE = 0.01
"""Relative increase below which a metric that gets worse still counts as monotone."""


@dataclass(frozen=True)
class Probe:
    """Evaluation of the metric at one number of machines."""

    values: tuple[float, ...]  # of the metric, in the order of the seeds
    is_met: bool  # by the mean
    is_sure: bool
    is_done: bool = True  # needs no more seeds
    reason: str = ""  # for having no values

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.values))


@dataclass(frozen=True)
class ThresholdResult:
    """Result of a threshold search."""

    status: Status
    # the smallest number probed whose mean meets the target; None if none does
    threshold: int | None
    # the true threshold is surely above `low`, which surely misses, and at most `high`, which
    # surely meets the target; None if there is no such probe
    low: int | None
    high: int | None
    safe: int | None  # all probes from here on meet the target; None if the largest misses
    is_sure: bool  # there were enough seeds for a result within the tolerance
    rises: tuple[tuple[int, int], ...]  # pairs of numbers, the larger of which is worse


@dataclass
class ThresholdSearch:
    """Search for the smallest number from `low` to `high` at which a metric meets a target."""

    low: int
    high: int
    bound: float
    is_most: bool
    seeds: tuple[int, ...]  # numbers of seeds to evaluate a number with, ascending
    max_gap: Callable[[int], int]  # tolerance: allowed gap between threshold and largest miss
    n_first: int = 5  # number of first probes
    is_bootstrap: bool = False  # seeds are draws of a log (`sweep.stats.inference`)
    probes: dict[int, Probe] = field(default_factory=dict)

    def next_probes(self) -> list[tuple[int, int]]:
        """Return the numbers to evaluate next, and with how many seeds; empty when finished."""
        if not self.probes:
            return [(n, self.seeds[0]) for n in spread(self.low, self.high, self.n_first)]
        repeats = [
            (n, next(k for k in self.seeds if k > len(probe.values)))
            for n, probe in sorted(self.probes.items())
            if not probe.is_done
        ]
        if repeats:
            return repeats
        gaps = self._gaps(self._edges()) or self._gaps(self._dips())
        between = [(below + above) // 2 for below, above in gaps]
        return [(n, self.seeds[0]) for n in between or self._neighbours()]

    def record(self, n: int, values: Sequence[float]) -> None:
        """Record the metric at a number: the values of all seeds so far, in their order."""
        level = 1 - (1 - CONFIDENCE) / len(self.seeds)
        mean, half = mean_and_half(values, level, is_bootstrap=self.is_bootstrap)
        excess = mean - self.bound if self.is_most else self.bound - mean
        is_sure = math.isinf(mean) or (excess + half <= 0 if excess <= 0 else excess - half > 0)
        is_done = is_sure or len(values) >= self.seeds[-1]
        self.probes[n] = Probe(tuple(values), excess <= 0, is_sure, is_done)

    def record_miss(self, n: int, reason: str, *, is_sure: bool) -> None:
        """Record that a number has no metric: it misses the target."""
        self.probes[n] = Probe((), is_met=False, is_sure=is_sure, reason=reason)

    def result(self) -> ThresholdResult:
        """Return the result of the probes so far; final when `next_probes` is empty."""
        probes = sorted(self.probes.items())
        missing = [n for n, probe in probes if not probe.is_met]
        high = min((n for n, probe in probes if probe.is_met and probe.is_sure), default=None)
        high_or_inf = math.inf if high is None else high
        low = max((n for n in missing if self.probes[n].is_sure and n < high_or_inf), default=None)
        threshold = next((n for n, probe in probes if probe.is_met and n > (low or 0)), None)
        safe = next((n for n, _ in probes if n > max(missing, default=0)), None)
        rises = tuple(self._find_rises())
        if threshold is None:
            return ThresholdResult("never", None, low, None, None, low == probes[-1][0], rises)
        is_near = threshold == self.low or (
            low is not None and threshold - low <= self.max_gap(threshold)
        )
        status: Status = "met" if missing else "always"
        return ThresholdResult(
            status, threshold, low, high, safe, threshold == high and is_near, rises
        )

    def _edges(self) -> list[tuple[int, int]]:
        """Return neighbours between which the threshold, or an end of its interval, lies."""
        result = self.result()
        ends = (result.threshold, result.high, result.safe)
        return [(a, b) for a, b in pairwise(sorted(self.probes)) if a == result.low or b in ends]

    def _dips(self) -> list[tuple[int, int]]:
        """Return neighbours between which a metric that is not monotone may meet the target."""
        result = self.result()
        return [pair for pair in result.rises if pair[1] < (result.threshold or self.high + 1)]

    def _neighbours(self) -> list[int]:
        """Return the next numbers above the least from which all probes meet the target.

        They tell whether the metric stays there; after `N_NEIGHBOURS` of them miss it is enough.
        """
        result = self.result()
        if result.safe is None or result.threshold is None:
            return []
        missing = [
            n for n, probe in self.probes.items() if n > result.threshold and not probe.is_met
        ]
        if len(missing) >= N_NEIGHBOURS:
            return []
        step = max(1, self.max_gap(result.safe))
        numbers = range(result.safe + step, self.high + 1, step)[:N_NEIGHBOURS]
        return [n for n in numbers if n not in self.probes]

    def _gaps(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(below, above) for below, above in pairs if above - below > self.max_gap(above)]

    def _find_rises(self) -> list[tuple[int, int]]:
        """Return neighbours of which the larger is worse, significantly and by `MIN_RISE`."""
        evaluated = [(n, probe) for n, probe in sorted(self.probes.items()) if probe.values]
        pairs = list(pairwise(evaluated))
        level = 1 - (1 - CONFIDENCE) / max(1, len(pairs))
        sign = 1.0 if self.is_most else -1.0
        rises = []
        for (below, before), (above, after) in pairs:
            n = min(len(before.values), len(after.values))
            increases = [
                sign * (b - a) for a, b in zip(before.values[:n], after.values[:n], strict=True)
            ]
            mean, half = mean_and_half(increases, level, is_bootstrap=self.is_bootstrap)
            if mean - half > 0 and mean > MIN_RISE * abs(before.mean):
                rises.append((below, above))
        return rises


def mean_and_half(
    values: Sequence[float], level: float, *, is_bootstrap: bool = False
) -> tuple[float, float]:
    """Compute the mean and half of Student's interval; 0 for one value, or for equal ones.

    A single value is exact: a user who gives one seed says that seeds make no difference.
    """
    column = np.asarray(values, dtype=np.float64)
    mean = float(column.mean())
    if len(column) == 1 or not math.isfinite(mean) or (column == column[0]).all():
        return mean, 0.0
    from scipy.special import stdtrit  # 0.3 s to import: only where there is an interval

    t = float(stdtrit(len(column) - 1, 0.5 + level / 2))
    share = float(error_share(len(column), is_bootstrap=is_bootstrap))
    return mean, t * float(column.std(ddof=1)) * math.sqrt(share)


def spread(low: int, high: int, n_max: int) -> list[int]:
    """Return integers from `low` to `high` with about equal ratios of neighbours.

    Geometric means, in integer arithmetic so that they are the same everywhere, are inserted into
    all gaps as long as neighbours are more than `CLOSE` apart, up to `n_max` numbers.
    """
    numbers = sorted({low, high})
    while 2 * len(numbers) - 1 <= n_max:
        added = [
            max(a + 1, (math.isqrt(4 * a * b) + 1) // 2)
            for a, b in pairwise(numbers)
            if b > max(a + 1, CLOSE * a)
        ]
        if not added:
            break
        numbers = sorted([*numbers, *added])
    return numbers


def seed_steps(n_seeds: int) -> tuple[int, ...]:
    """Return the numbers of seeds to evaluate with: 5, then twice as many each time, up to all."""
    steps = []
    n = FIRST_SEEDS
    while n < n_seeds:
        steps.append(n)
        n *= 2
    return (*steps, n_seeds)
