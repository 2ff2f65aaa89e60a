"""The job simulator and C(p, a) (§4.1): runs of resampled copies of a job.

A compiled loop runs each copy alone on tokens of its own (`policies.jockey.kernels.copies`). Tests
hold it to `sim.simulate` to the bit: without queues and policies it takes a third of the time.
All allocations use the same copies.

C(p, a) is the distribution of the time left at progress p with a tokens. A simulated run passes
through all progress from 0 to 1. For each of the levels k / LEVELS the time left from the first
instant at that level is recorded, which is the longest time left at any instant before the next
level. So a run counts once at each level, even if its progress stalls, and the runs are independent
samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from policies.estimates.profile import Profile
from policies.jockey.indicators import Indicator
from sim.base import maths
from sim.base.arrays import F8, I4
from sim.base.random import stream

LEVELS: Final = 200
"""Number of levels of progress."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of R copies of a job of T tasks."""

    start_s: F8  # starts of tasks since the submission, (R, T) s
    finish_s: F8  # ends of tasks since the submission, (R, T) s
    order: I4  # order of ends, by row where they are equal, (R, T)


@dataclass(frozen=True, eq=False)
class Copies:
    """R resampled copies of a job of T tasks."""

    profile: Profile  # that they are drawn from
    duration_s: F8  # time that each task holds its token, failed attempts included, (R, T) s

    @cached_property
    def submit_s(self) -> F8:
        """Submission of each copy, when all before it must have ended, even with one token, s.

        Only rounding depends on it: so times equal those of the event loop to the bit.
        """
        longest_s = float(self.duration_s.sum(axis=1).max()) + float(self.profile.shape.lag_s.sum())
        apart_s = 1.0 + 1.001 * longest_s
        return np.arange(len(self.duration_s), dtype=np.float64) * apart_s

    def run(self, tokens: int) -> Runs:
        """Run every copy with `tokens` tokens."""
        from policies.jockey.kernels.copies import run_copies  # compiled: slow to import

        size = self.duration_s.shape
        runs = Runs(np.empty(size), np.empty(size), np.empty(size, np.int32))
        copies = self.duration_s, self.submit_s
        lag_s, out = self.profile.shape.lag_s, (runs.start_s, runs.finish_s, runs.order)
        run_copies(*self._shape, lag_s, *copies, tokens, *out)
        return runs

    @cached_property
    def _shape(self) -> tuple[I4, I4, I4]:
        """The stages, edges and tasks of the job, as `run_copies` takes them."""
        shape = self.profile.shape
        n_tasks, first = shape.n_tasks, shape.first_task
        missing = np.zeros(n_tasks.sum(), dtype=np.int32)
        for p, c, is_one_to_one in zip(shape.parent, shape.child, shape.kind, strict=True):
            n = min(n_tasks[p], n_tasks[c]) if is_one_to_one else n_tasks[c]
            missing[first[c] : first[c] + n] += 1
        by_parent = np.argsort(shape.parent, kind="stable")
        first_edge = np.searchsorted(shape.parent[by_parent], np.arange(len(first)))
        stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
        columns = (
            (first, first_edge),
            (shape.child[by_parent], shape.kind[by_parent]),
            (stage, missing),
        )
        stages, edges, tasks = (np.stack(pair, axis=1).astype(np.int32) for pair in columns)
        return stages, edges, tasks


def resample(profile: Profile, n_copies: int) -> Copies:
    """Draw copies of a job from its profile.

    Run time, initialisation and the number of failed attempts of each task are drawn independently
    from the records of its stage. A failed attempt takes its initialisation and a uniform part of a
    run time, and the next attempt starts at once with its token.
    """
    rng = stream(0, "jockey", "copies", profile.digest)
    shape = profile.shape
    first = np.repeat(profile.sample0[:-1], shape.n_tasks)
    width = np.repeat(np.diff(profile.sample0), shape.n_tasks)
    size = (n_copies, len(first))

    def drawn(samples: F8) -> F8:
        picked: F8 = samples[first + (rng.random(size) * width).astype(np.int64)]
        return picked

    duration = drawn(profile.run_s) + drawn(profile.init_s)
    if profile.n_failed.any():
        failed = drawn(profile.n_failed.astype(np.float64))
        for attempt in range(int(failed.max())):
            lost = drawn(profile.init_s) + rng.random(size) * drawn(profile.run_s)
            duration += np.where(failed > attempt, lost, 0.0)
    return Copies(profile, duration)


@dataclass(frozen=True, eq=False)
class Remaining:
    """Time left by allocation, level of progress and run."""

    tokens: I4  # the simulated allocations, ascending
    left_s: F8  # time left when a run first reaches a level, s; ascending over the R runs

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
        return np.minimum.accumulate(
            maths.dot(_interpolation_weights(tuple(self.tokens.tolist()), max_tokens), simulated),
            axis=0,
        ).T

    def by_run(self, level: int) -> F8:
        """Return the time left at a level by simulated allocation and rank of the run: (A, R), s.

        Equal to `quantile` at every rank.
        """
        return np.minimum.accumulate(self.left_s[:, level], axis=0)

    def mean_s(self, level: int) -> float:
        """Return the mean time left at a level under the most tokens, s."""
        return float(self.left_s[:, level].min(axis=0).mean())


@lru_cache(maxsize=64)
def _interpolation_weights(tokens: tuple[int, ...], max_tokens: int) -> F8:
    """Return the weight of each simulated allocation in 1 to `max_tokens`: (A', A)."""
    share = 1.0 / np.arange(1, max_tokens + 1)
    simulated = 1.0 / np.array(tokens[::-1])  # ascending, as np.interp wants
    weights = np.array([maths.interp(share, simulated, row[::-1]) for row in np.eye(len(tokens))]).T
    weights.setflags(write=False)
    return weights


def progress_level(progress: float) -> int:
    """Return the level of a progress."""
    return int(min(max(progress, 0.0) * LEVELS + 1e-6, LEVELS))


def simulate_remaining(copies: Copies, indicator: Indicator, tokens: I4) -> Remaining:
    """Return C(p, a): run the copies with each allocation, and record the time left by level."""
    levels = np.arange(LEVELS + 1) / LEVELS
    n_tasks = copies.profile.shape.n_tasks
    left = np.empty((len(tokens), LEVELS + 1, len(copies.duration_s)))
    for i, a in enumerate(tokens.tolist()):
        runs = copies.run(a)
        reached_s = indicator.reached(runs.finish_s, runs.order, n_tasks, levels)
        left[i] = (runs.finish_s.max(axis=1, keepdims=True) - reached_s).T
    left.sort(axis=2)
    return Remaining(tokens, left)


def allocations(max_tokens: int, n: int) -> I4:
    """Return up to `n` allocations from 1 to `max_tokens`, geometrically spaced."""
    for n_points in range(n, 100 * n):
        spaced = np.unique(np.rint(maths.geomspace(1, max_tokens, n_points)).astype(np.int32))
        if len(spaced) >= min(n, max_tokens):
            break
    return spaced


def _rank(q: float, n: int) -> int:
    return min(max(int(np.ceil(q * n - 1e-9)), 1), n)
