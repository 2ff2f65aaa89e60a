"""The job simulator and C(p, a) (§4.1): resampled copies of a job, run by `sim.simulate` itself.

All copies of a job are one workload, one after the other on a pool of as many slots as the job has
tokens. Each is submitted when the one before must have ended. So each copy runs alone, as on tokens
of its own, and the kernel runs them at full speed. All allocations use the same copies.

C(p, a) is the distribution of the time left at progress p with a tokens. A simulated run passes
through all progress from 0 to 1. For each of the levels k / LEVELS the time left from the first
instant at that level is recorded, which is the longest time left at any instant before the next
level. So a run counts once at each level, even if its progress stalls, and the runs are independent
samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

import sim
from policies.base import Policy
from policies.estimates.profile import Profile
from policies.jockey.indicators import Indicator
from sim.base import maths
from sim.base.arrays import F8, I4
from sim.base.random import stream
from sim.workload.schema import EDGE_KINDS

LEVELS: Final = 200
"""Number of levels of progress."""


@dataclass(frozen=True, eq=False)
class Copies:
    """R resampled copies of a job of n tasks."""

    profile: Profile  # that they are drawn from
    duration_s: F8  # time that each task holds its token, failed attempts included, s
    workload: sim.Workload  # the copies as jobs

    def run(self, tokens: int) -> tuple[F8, F8]:
        """Run every copy with `tokens` tokens; return starts and finishes of tasks, s."""
        result = self._result(tokens)
        assert result.task_start is not None
        return self._elapsed_s(result, result.task_start), self._finish_s(result)

    def finish_s(self, tokens: int) -> F8:
        """Run every copy with `tokens` tokens; return finishes of tasks, s."""
        return self._finish_s(self._result(tokens))

    def _result(self, tokens: int) -> sim.Result:
        return sim.simulate(self.workload, sim.Cluster.slots(tokens), Policy(), record="tasks")

    def _finish_s(self, result: sim.Result) -> F8:
        assert result.task_finish is not None
        return self._elapsed_s(result, result.task_finish)

    def _elapsed_s(self, result: sim.Result, time_s: F8) -> F8:
        """Return times since the submission of each copy, s."""
        elapsed_s = time_s.reshape(self.duration_s.shape) - result.job_submit[:, None]
        return np.maximum(elapsed_s, 0.0, out=elapsed_s)


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
    return Copies(profile, duration, _spaced_workload(profile, duration))


def _spaced_workload(profile: Profile, duration_s: F8) -> sim.Workload:
    """Make a job of each row, spaced so that no two overlap, even with one token."""
    shape, n_copies = profile.shape, len(duration_s)
    n_stages = len(shape.n_tasks)
    apart_s = 1.0 + 1.001 * float(duration_s.sum(axis=1).max())
    stage = np.repeat(np.arange(n_stages), shape.n_tasks)
    offset = np.arange(n_copies)[:, None] * n_stages
    kinds = np.array(EDGE_KINDS)[shape.kind]
    return sim.Workload.from_tables(
        jobs={
            "job_id": [f"copy-{i}" for i in range(n_copies)],
            "submit_s": np.arange(n_copies) * apart_s,
        },
        stages={
            "job": np.repeat(np.arange(n_copies), n_stages),
            "n_tasks": np.tile(shape.n_tasks, n_copies),
        },
        tasks={"stage": (stage + offset).ravel(), "duration_s": duration_s.ravel()},
        stage_edges={
            "parent": (shape.parent + offset).ravel(),
            "child": (shape.child + offset).ravel(),
            "kind": np.tile(kinds, n_copies).tolist(),
        },
        validate=False,
    )


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
            maths.dot(self._interpolation_weights(max_tokens), simulated), axis=0
        ).T

    def by_run(self, level: int) -> F8:
        """Return the time left at a level by simulated allocation and rank of the run: (A, R), s.

        Equal to `quantile` at every rank.
        """
        return np.minimum.accumulate(self.left_s[:, level], axis=0)

    def _interpolation_weights(self, max_tokens: int) -> F8:
        """Return the weight of each simulated allocation in 1 to `max_tokens`: (A', A)."""
        share = 1.0 / np.arange(1, max_tokens + 1)
        simulated = 1.0 / self.tokens[::-1]  # ascending, as np.interp wants
        return np.array(
            [maths.interp(share, simulated, row[::-1]) for row in np.eye(len(self.tokens))]
        ).T


def progress_level(progress: float) -> int:
    """Return the level of a progress."""
    return int(min(max(progress, 0.0) * LEVELS + 1e-6, LEVELS))


def simulate_remaining(copies: Copies, indicator: Indicator, tokens: I4) -> Remaining:
    """Return C(p, a): run the copies with each allocation, and record the time left by level."""
    levels = np.arange(LEVELS + 1) / LEVELS
    n_tasks = copies.profile.shape.n_tasks
    left = np.empty((len(tokens), LEVELS + 1, len(copies.duration_s)))
    for i, a in enumerate(tokens.tolist()):
        finish_s = copies.finish_s(a)
        reached = indicator.reached(finish_s, n_tasks, levels)
        left[i] = (finish_s.max(axis=1, keepdims=True) - reached).T
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
