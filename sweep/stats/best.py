"""Best policies: the best, all that are not significantly worse, and exact ties."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8
from sweep.stats.common import Common
from sweep.stats.inference import (
    ALPHA,
    EXACT,
    MIN_PAIRS,
    NO_RATIO,
    ROUNDING,
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
    """Best of several columns of values on the same seeds."""

    common: Common
    members: tuple[int, ...]  # the first, and those that are not significantly worse, best first
    tied: tuple[int, ...]  # members that have the first's value with every seed
    is_all: bool  # every ranked column is a member
    is_tested: bool  # there are enough pairs for tests, or nothing to test
    is_ratio: bool  # columns compare by ratios, so by geometric means; else by differences
    best_mean: int  # column with the best arithmetic mean: the first, unless that ranks otherwise
    comparisons: tuple[Paired, ...]  # the others against the first, in the order of their ranks
    adjusted_p: F8  # their p after Holm's correction
    order: tuple[int, ...]  # all ranked columns, best first

    @property
    def first(self) -> int:
        """Column that ranks first."""
        return self.members[0]


def is_ratio(metric: str, values: F8) -> bool:
    """Tell whether policies compare by ratios on this metric.

    Fractions, values of which some are infinite, and values of which some but not all of a seed are
    0 or below are compared by differences.
    """
    if is_fraction(metric):
        return False
    is_positive = (values > 0).all(axis=1) | (values == 0).all(axis=1)
    return bool(is_positive.all() and np.isfinite(values).all())


def compare_metric(
    metric: str, values: F8, other_values: F8, *, is_ratio: bool, is_bootstrap: bool = False
) -> Paired:
    """Compare two policies on the same seeds.

    A ratio says how many times better the first is; a difference is ``values - other_values``.
    Infinite values compare by their means alone.
    """
    if not (np.isfinite(values).all() and np.isfinite(other_values).all()):
        return Paired(math.nan, math.nan, math.nan, math.nan, len(values), NO_RATIO)
    if not is_ratio:
        return difference(values, other_values, is_bootstrap=is_bootstrap)
    sides = (values, other_values) if style(metric).better == "higher" else (other_values, values)
    return ratio(*sides, is_bootstrap=is_bootstrap)


def best_of(metric: str, common: Common, *, is_bootstrap: bool = False) -> Best | None:
    """Find the best among the ranked policies.

    They are ordered by what is tested: by the geometric mean where ratios are compared, else by the
    mean. So no policy that ranks below another is better than that in the paired comparison.

    Parameters
    ----------
    metric : str
        Name of the metric; without a known direction there is no best.
    common : Common
        Its values.
    is_bootstrap : bool
        Seeds are draws of a bootstrap (`sweep.stats.inference`).

    Returns
    -------
    Best or None
        None where no policy is ranked.
    """
    better = style(metric).better
    if better is None or not common.ranked:
        return None
    values = common.values[:, common.ranked]
    by_ratio = is_ratio(metric, values)
    means = values.mean(axis=0)
    scores = np.log(np.where(values > 0, values, 1.0)).mean(axis=0) if by_ratio else means
    sign = 1.0 if better == "lower" else -1.0
    order = [common.ranked[i] for i in np.argsort(sign * scores, kind="stable")]
    first, runners_up = order[0], order[1:]
    tied = [column for column in runners_up if _ties(common, first, column)]
    comparisons = [
        compare_metric(
            metric,
            common.values[:, column],
            common.values[:, first],
            is_ratio=by_ratio,
            is_bootstrap=is_bootstrap,
        )
        for column in runners_up
    ]
    adjusted_p = holm(np.array([paired.p for paired in comparisons], dtype=np.float64))
    is_tested = len(values) >= MIN_PAIRS or all(paired.test == EXACT for paired in comparisons)
    members = [first]
    for column, paired, p in zip(runners_up, comparisons, adjusted_p, strict=True):
        # an infinite mean is worse than a finite one, and as bad as another
        is_worse = paired.test == NO_RATIO and common.mean(column) != common.mean(first)
        is_distinct = paired.test == EXACT or is_worse or not is_tested
        if not (p <= ALPHA or (is_distinct and column not in tied)):
            members.append(column)
    best_mean = common.ranked[int(np.argmin(sign * means))]
    return Best(
        common=common,
        members=tuple(members),
        tied=tuple(tied),
        is_all=len(members) == len(order),
        is_tested=is_tested,
        is_ratio=by_ratio,
        best_mean=first if _are_close(common, first, best_mean) else best_mean,
        comparisons=tuple(comparisons),
        adjusted_p=adjusted_p,
        order=tuple(order),
    )


def _ties(common: Common, first: int, second: int) -> bool:
    """Tell whether two policies have equal values with every seed."""
    a, b = common.values[:, first], common.values[:, second]
    return bool((same(a, b) | (a == b)).all())


def _are_close(common: Common, first: int, second: int) -> bool:
    a, b = common.mean(first), common.mean(second)
    return a == b or abs(a - b) <= ROUNDING * max(abs(a), abs(b))


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
