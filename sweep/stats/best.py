"""The best: all policies that no test tells from the best mean, and which of them tie exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8
from sweep.stats.inference import (
    ALPHA,
    EXACT,
    MIN_PAIRS,
    NO_RATIO,
    Paired,
    difference,
    holm,
    pairs_needed,
    ratio,
    same,
)
from sweep.stats.metric_format import is_fraction, style


@dataclass(frozen=True)
class Best:
    """What is best among columns of values, positions in the order of their means, best first."""

    members: tuple[int, ...]  # the best mean, and those that no test tells from it
    tied: tuple[int, ...]  # those of the members that have the first's value in every pair
    is_all: bool  # whether that is every column that has a value
    is_tested: bool  # whether there are pairs enough for tests, or nothing to test
    found: tuple[Paired, ...]  # the others against the first, in the order of their means
    adjusted: F8  # their p after Holm's correction
    order: tuple[int, ...]  # all that have a value

    @property
    def first(self) -> int:
        """The best mean."""
        return self.members[0]


def compare_metric(metric: str, own: F8, other: F8) -> tuple[Paired, bool]:
    """Compare two policies on a metric by what suits it; tell whether that is a ratio.

    A ratio says how many times better the first is. Fractions, and values of which some are 0,
    are compared by ``own - other``.
    """
    if not is_fraction(metric):
        sides = (own, other) if style(metric).better == "higher" else (other, own)
        found = ratio(*sides)
        if found.test != NO_RATIO:
            return found, True
    return difference(own, other), False


def best_of(metric: str, values: F8) -> Best | None:
    """Find the best among policies that met the same pairs.

    Parameters
    ----------
    metric : str
        Whose values they are; without a known direction there is no best.
    values : (n_pairs, n_policies) float64
        NaN where a policy has no value.

    Returns
    -------
    Best or None
        None where no policy has a value.
    """
    better = style(metric).better
    known = np.flatnonzero(~np.isnan(values).all(axis=0))
    if better is None or not len(known):
        return None
    means = np.nanmean(values[:, known], axis=0)
    worst_last = np.argsort(means if better == "lower" else -means, kind="stable")
    order = [int(at) for at in known[worst_last]]
    first, others = order[0], order[1:]
    tied = [at for at in others if _ties(values[:, first], values[:, at])]
    found = [compare_metric(metric, values[:, at], values[:, first])[0] for at in others]
    adjusted = holm(np.array([one.p for one in found], dtype=np.float64))
    is_tested = len(values) >= MIN_PAIRS or all(one.test == EXACT for one in found)
    told = [
        bool(p <= ALPHA) or (at not in tied and (one.test == EXACT or not is_tested))
        for at, one, p in zip(others, found, adjusted, strict=True)
    ]
    members = [first, *(at for at, is_told in zip(others, told, strict=True) if not is_told)]
    return Best(
        members=tuple(members),
        tied=tuple(tied),
        is_all=len(members) == len(order),
        is_tested=is_tested,
        found=tuple(found),
        adjusted=adjusted,
        order=tuple(order),
    )


def _ties(first: F8, other: F8) -> bool:
    """Tell whether two policies have the same value wherever both have one."""
    both = ~np.isnan(first) & ~np.isnan(other)
    return bool(both.any() and same(first[both], other[both]).all())


def next_distinguishable(best: Best) -> tuple[int, int] | None:
    """Which of the best would be told from the first with the fewest pairs, and with how many.

    If means and spreads stay as they are; None where no number of pairs in reach would do.
    """
    n_tests = int(np.count_nonzero(~np.isnan(best.adjusted)))
    wanted = []
    for at, one, p in zip(best.order[1:], best.found, best.adjusted, strict=True):
        if p > ALPHA:
            factor = p / one.p if p < 1 else n_tests
            n = pairs_needed(one, ALPHA / factor)
            wanted += [] if n is None else [(n, at)]
    n, at = min(wanted, default=(0, 0))
    return (at, n) if n else None
