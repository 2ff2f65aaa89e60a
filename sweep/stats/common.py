"""Common ground of a comparison: the seeds on which every ranked policy has a value.

A mean over other seeds is of other jobs: it is never compared. A policy with values on fewer than
half of the seeds is not ranked, so that it does not shrink the others' common ground.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, Mask


@dataclass(frozen=True)
class Common:
    """Values of one metric by seed and policy, all of the same seeds.

    Means, orders and tests of a comparison are taken from here and from nowhere else.
    """

    values: F8  # (n_seeds, n_policies); NaN in all of a column that is not ranked
    seeds: tuple[int, ...]  # positions among all seeds, ascending
    ranked: tuple[int, ...]  # columns, ascending
    n_all: int  # seeds that any of the policies has a value of

    def mean(self, column: int) -> float:
        """Mean of a column over the common seeds; NaN if it is not ranked."""
        return float(self.values[:, column].mean()) if len(self.values) else np.nan

    def rows(self, by_seed: F8) -> F8:
        """Return the rows of the common seeds of another metric by seed."""
        return by_seed[list(self.seeds)]


def common_seeds(by_seed: F8) -> Common:
    """Find the policies to rank, and the seeds on which all of them have a value.

    Parameters
    ----------
    by_seed : (n_seeds, n_policies) float64
        A metric; NaN where a policy has no value.
    """
    present = ~np.isnan(by_seed)
    n_all = int(present.any(axis=1).sum())
    ranked = _ranked(present, n_all)
    seeds = np.flatnonzero(present[:, ranked].all(axis=1)) if ranked else np.empty(0, np.int64)
    values = np.full((len(seeds), by_seed.shape[1]), np.nan)
    values[:, ranked] = by_seed[seeds][:, ranked]
    return Common(values, tuple(seeds.tolist()), tuple(ranked), n_all)


def _ranked(present: Mask, n_all: int) -> list[int]:
    """Return the columns that share at least half of the seeds; empty if none has so many.

    The column with the fewest values goes first, of equals the last.
    """
    counts = present.sum(axis=0)
    ranked = [column for column, n in enumerate(counts.tolist()) if n and 2 * n >= n_all]
    while len(ranked) > 1 and 2 * int(present[:, ranked].all(axis=1).sum()) < n_all:
        ranked.remove(min(reversed(ranked), key=lambda column: int(counts[column])))
    return ranked
