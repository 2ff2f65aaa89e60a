"""Successive halving over paired seeds: all settings meet a few, the better half meets more.

Nothing here knows of cells: a race is told each setting's scores, a score a seed and metric, better
the lower, already taken against the default on the same seed: what a seed makes easier for all is
no merit of any.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8


def rungs(n_seeds: int) -> tuple[int, ...]:
    """Return how many seeds settings meet, rung by rung: a quarter of all, half, all."""
    found = [n_seeds]
    while found[0] > max(1, n_seeds // 4):
        found.insert(0, math.ceil(found[0] / 2))
    return tuple(found)


def n_kept(n: int) -> int:
    """Return how many of `n` settings go on to the next rung: half of them."""
    return math.ceil(n / 2)


def cost(n: int, n_seeds: int) -> int:
    """Return how many cells a race of `n` settings takes."""
    total, before = 0, 0
    for rung in rungs(n_seeds):
        total += n * (rung - before)
        n, before = n_kept(n), rung
    return total


def ranked(scores: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of settings, the best first, given the means of their scores.

    Of several metrics, front by front (those that none beats in all metrics, then those that only
    these beat, ...); inside a front, those in sparse parts of it first (crowding distance; Deb et
    al., *NSGA-II*, IEEE Transactions on Evolutionary Computation 6(2), 2002).
    """
    table = np.array(scores, dtype=np.float64).reshape(len(scores), -1)
    table = np.where(np.isfinite(table), table, math.inf)
    if table.shape[1] == 1:
        return [int(at) for at in np.argsort(table[:, 0], kind="stable")]
    order: list[int] = []
    left = list(range(len(table)))
    while left:
        best = front(table[left])
        first = [left[at] for at in best]
        sparse = _crowding(table[first])
        order += [first[at] for at in np.argsort(-sparse, kind="stable")]
        left = [at for at in left if at not in first]
    return order


def front(scores: F8) -> list[int]:
    """Return the places of the rows that no other beats: as good in all, better in one."""
    return [
        at
        for at, row in enumerate(scores)
        if not any((other <= row).all() and (other < row).any() for other in scores)
    ]


def _crowding(scores: F8) -> F8:
    """Return how far each row's neighbours in a front are from each other, metric by metric."""
    total = np.zeros(len(scores))
    for column in scores.T:
        order = np.argsort(column, kind="stable")
        low, high = column[order[0]], column[order[-1]]
        total[order[[0, -1]]] = math.inf
        if len(order) > 2 and math.isfinite(high - low) and high > low:
            total[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / (high - low)
    return total
