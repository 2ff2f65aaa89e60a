"""Successive halving over paired seeds: all settings run on a few, the better half on more.

It is independent of cells: its input is each setting's scores, a score a seed and metric, the lower
the better, relative to the default on the same seed: an easy seed is no merit of any setting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim.base.arrays import F8


def rungs(n_seeds: int) -> tuple[int, ...]:
    """Return the number of seeds of each rung: a quarter of all, half, all."""
    steps = [n_seeds]
    while steps[0] > max(1, n_seeds // 4):
        steps.insert(0, math.ceil(steps[0] / 2))
    return tuple(steps)


def n_kept(n: int) -> int:
    """Return the number of `n` settings that advance to the next rung: half of them."""
    return math.ceil(n / 2)


def cost(n: int, n_seeds: int) -> int:
    """Return the number of cells of a race of `n` settings."""
    total, before = 0, 0
    for rung in rungs(n_seeds):
        total += n * (rung - before)
        n, before = n_kept(n), rung
    return total


def ranked(scores: Sequence[Sequence[float]]) -> list[int]:
    """Rank settings by the means of their scores; return their indices, best first.

    With several metrics, front by front (settings that none beats in all metrics, then those that
    only these beat, ...); inside a front, settings in sparse parts of it first (crowding distance;
    Deb et al., *NSGA-II*, IEEE Transactions on Evolutionary Computation 6(2), 2002).
    """
    table = np.array(scores, dtype=np.float64).reshape(len(scores), -1)
    table = np.where(np.isfinite(table), table, math.inf)
    if table.shape[1] == 1:
        return [int(index) for index in np.argsort(table[:, 0], kind="stable")]
    order: list[int] = []
    remaining = list(range(len(table)))
    while remaining:
        best_front = front(table[remaining])
        current = [remaining[index] for index in best_front]
        distances = _crowding(table[current])
        order += [current[index] for index in np.argsort(-distances, kind="stable")]
        remaining = [index for index in remaining if index not in current]
    return order


def front(scores: F8) -> list[int]:
    """Return the indices of the Pareto front: rows that no other equals in all and beats in one."""
    return [
        index
        for index, row in enumerate(scores)
        if not any((other <= row).all() and (other < row).any() for other in scores)
    ]


def _crowding(scores: F8) -> F8:
    """Compute each row's crowding distance: the distance of its neighbours, summed over metrics."""
    total = np.zeros(len(scores))
    for column in scores.T:
        order = np.argsort(column, kind="stable")
        low, high = column[order[0]], column[order[-1]]
        total[order[[0, -1]]] = math.inf
        if len(order) > 2 and math.isfinite(high - low) and high > low:
            total[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / (high - low)
    return total
