"""C(p, a): the distribution of the time that is left at progress p with a tokens (§4.1).

A simulated run passes through every progress from 0 to 1. At each of the levels k / LEVELS it is
noted how long the run still takes from the first instant there: the longest that is left at any of
its instants before the next level. So a run counts once at each level, however long it stands
still, and the runs are independent samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from policies.jockey.copies import Copies
from policies.jockey.indicators import Indicator
from sim.base.arrays import F8, I4

LEVELS: Final = 200
"""Levels of progress that are told apart."""


@dataclass(frozen=True, eq=False)
class Remaining:
    """What is left, by allocation, level of progress and run."""

    tokens: I4  # the simulated allocations, ascending
    left_s: F8  # time that is left when a run first reaches a level, s; ascending over the R runs

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.left_s.shape[2])

    def quantile(self, q: float, max_tokens: int) -> F8:
        """Return a quantile of C for every allocation: (LEVELS + 1, max_tokens), s.

        The order statistic ⌈q R⌉ of the runs: 1 for the worst case. More tokens never take longer,
        by a running minimum; between simulated allocations it is linear in 1/a, as in Amdahl's law.
        """
        simulated = np.minimum.accumulate(self.left_s[:, :, _rank(q, self.n_runs) - 1], axis=0)
        return np.minimum.accumulate(self._between(max_tokens) @ simulated, axis=0).T

    def by_run(self, level: int, max_tokens: int) -> F8:
        """Return what is left at a level, by allocation and rank among the runs: (A', R), s.

        As `quantile` of every rank, for 1 to A' = `max_tokens` tokens.
        """
        simulated = np.minimum.accumulate(self.left_s[:, level], axis=0)
        return np.minimum.accumulate(self._between(max_tokens) @ simulated, axis=0)

    def _between(self, max_tokens: int) -> F8:
        """Return the weight of each simulated allocation in 1 to `max_tokens`: (A', A)."""
        share = 1.0 / np.arange(1, max_tokens + 1)
        at = 1.0 / self.tokens[::-1]  # ascending, as np.interp wants
        return np.array([np.interp(share, at, row[::-1]) for row in np.eye(len(self.tokens))]).T

    def exceeded_by(self, q: float, confidence: float = 0.95) -> float:
        """Return the largest fraction of runs that may take longer than the quantile says.

        The sampling error of R runs, whatever the distribution: of an order statistic of rank k
        the fraction of all runs that lie below is distributed as Beta(k, R + 1 - k).
        """
        from scipy import stats  # slow to import, and every command lists the policies

        k = _rank(q, self.n_runs)
        return float(1.0 - stats.beta.ppf(1.0 - confidence, k, self.n_runs + 1 - k))

    def interval_s(self, q: float, confidence: float = 0.95) -> F8:
        """Return what surely holds the quantile at progress 0: (A, 2), s, by the binomial.

        The upper end is inf where that needs a rank beyond the R runs, as for the worst case.
        """
        from scipy import stats

        whole = np.concatenate([self.left_s[:, 0], np.full((len(self.tokens), 1), np.inf)], axis=1)
        tail = (1.0 - confidence) / 2
        low = int(stats.binom.ppf(tail, self.n_runs, q))
        high = int(stats.binom.ppf(1.0 - tail, self.n_runs, q))
        return np.stack([whole[:, max(low - 1, 0)], whole[:, min(high, self.n_runs)]], axis=1)

    @cached_property
    def mean_s(self) -> F8:
        """The mean over the runs: (A, LEVELS + 1), s."""
        return np.asarray(self.left_s.mean(axis=2))


def level_of(progress: float) -> int:
    """Return the level that a progress has reached."""
    return int(min(max(progress, 0.0) * LEVELS + 1e-6, LEVELS))


def simulated(copies: Copies, indicator: Indicator, tokens: I4) -> Remaining:
    """Run the copies with each allocation, and note what is left at each level."""
    levels = np.arange(LEVELS + 1) / LEVELS
    n_tasks = copies.profile.shape.n_tasks
    left = np.empty((len(tokens), LEVELS + 1, len(copies.duration_s)))
    for i, a in enumerate(tokens.tolist()):
        _, finish_s = copies.run(a)
        reached = indicator.reached(finish_s, n_tasks, levels)
        left[i] = (finish_s.max(axis=1, keepdims=True) - reached).T
    left.sort(axis=2)
    return Remaining(tokens, left)


def allocations(max_tokens: int, n: int) -> I4:
    """Return `n` allocations from 1 to `max_tokens`, or all, closer together where they are few."""
    for tried in range(n, 100 * n):
        spaced = np.unique(np.rint(np.geomspace(1, max_tokens, tried)).astype(np.int32))
        if len(spaced) >= min(n, max_tokens):
            break
    return spaced


def _rank(q: float, n: int) -> int:
    return min(max(int(np.ceil(q * n - 1e-9)), 1), n)
