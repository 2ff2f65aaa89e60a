"""Best policies: the best mean, all that do not differ significantly from it, and exact ties."""

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
    """Best of several columns of values. Column numbers are sorted by mean, best first."""

    members: tuple[int, ...]  # the best mean, and those that do not differ significantly from it
    tied: tuple[int, ...]  # members that have the first's value in every pair
    is_all: bool  # every column that has a value is a member
    is_tested: bool  # there are enough pairs for tests, or nothing to test
    comparisons: tuple[Paired, ...]  # the others against the first, in the order of their means
    adjusted_p: F8  # their p after Holm's correction
    order: tuple[int, ...]  # all columns that have a value

    @property
    def first(self) -> int:
        """Column with the best mean."""
        return self.members[0]


def compare_metric(
    metric: str, values: F8, other_values: F8, *, is_bootstrap: bool = False
) -> tuple[Paired, bool]:
    """Compare two policies on a metric by ratio or difference; return it and whether it is a ratio.

    A ratio says how many times better the first is. Fractions, and values of which some are 0,
    are compared by ``values - other_values``.
    """
    if not is_fraction(metric):
        sides = (
            (values, other_values) if style(metric).better == "higher" else (other_values, values)
        )
        paired = ratio(*sides, is_bootstrap=is_bootstrap)
        if paired.test != NO_RATIO:
            return paired, True
    return difference(values, other_values, is_bootstrap=is_bootstrap), False


def best_of(metric: str, values: F8, *, is_bootstrap: bool = False) -> Best | None:
    """Find the best among policies that ran the same (trace, seed) pairs.

    Parameters
    ----------
    metric : str
        Name of the metric; without a known direction there is no best.
    values : (n_pairs, n_policies) float64
        NaN where a policy has no value.
    is_bootstrap : bool
        Pairs are draws of a bootstrap (`sweep.stats.inference`).

    Returns
    -------
    Best or None
        None where no policy has a value.
    """
    better = style(metric).better
    present = np.flatnonzero(~np.isnan(values).all(axis=0))
    if better is None or not len(present):
        return None
    means = np.nanmean(values[:, present], axis=0)
    worst_last = np.argsort(means if better == "lower" else -means, kind="stable")
    order = [int(column) for column in present[worst_last]]
    first, runners_up = order[0], order[1:]
    tied = [column for column in runners_up if _ties(values[:, first], values[:, column])]
    comparisons = [
        compare_metric(metric, values[:, column], values[:, first], is_bootstrap=is_bootstrap)[0]
        for column in runners_up
    ]
    adjusted_p = holm(np.array([paired.p for paired in comparisons], dtype=np.float64))
    is_tested = len(values) >= MIN_PAIRS or all(paired.test == EXACT for paired in comparisons)
    members = [first]
    for column, paired, p in zip(runners_up, comparisons, adjusted_p, strict=True):
        is_distinct = paired.test == EXACT or not is_tested
        if not (p <= ALPHA or (is_distinct and column not in tied)):
            members.append(column)
    return Best(
        members=tuple(members),
        tied=tuple(tied),
        is_all=len(members) == len(order),
        is_tested=is_tested,
        comparisons=tuple(comparisons),
        adjusted_p=adjusted_p,
        order=tuple(order),
    )


def _ties(values: F8, other_values: F8) -> bool:
    """Tell whether two policies have equal values wherever both have one."""
    is_paired = ~np.isnan(values) & ~np.isnan(other_values)
    return bool(is_paired.any() and same(values[is_paired], other_values[is_paired]).all())


def next_distinguishable(best: Best) -> tuple[int, int] | None:
    """Find the member that the fewest pairs would distinguish from the first: it, and their number.

    Assumes that means and spreads stay as they are. None where no feasible number of pairs would.
    """
    n_tests = int(np.count_nonzero(~np.isnan(best.adjusted_p)))
    candidates = []
    for column, paired, p in zip(best.order[1:], best.comparisons, best.adjusted_p, strict=True):
        if p > ALPHA:
            factor = p / paired.p if p < 1 else n_tests
            n = pairs_needed(paired, ALPHA / factor)
            candidates += [] if n is None else [(n, column)]
    n, column = min(candidates, default=(0, 0))
    return (column, n) if n else None
