"""Who gets how many tokens, from when on: jobs as rectangles of tokens × time on one cluster.

Each job has a few allocations to choose from, each with the time that it then takes. Jobs are
placed one after the other where their expected utility is greatest; what is searched for is the
order in which that gives the most utility together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from policies.jockey.utility import Utility
from sim.base.arrays import F8, I8

TRIED: Final = 4
"""How many of the jobs that lose most are tried elsewhere in the order at a time."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What a job may get."""

    tokens: I8  # allocations, ascending
    takes_s: F8  # how long it is expected to hold them, s
    late_s: F8  # how late it would be, in each of R runs that may come, if it got them now, s


@dataclass(frozen=True, eq=False)
class Timetable:
    """A plan for J jobs."""

    order: tuple[int, ...]  # in which the jobs were placed
    tokens: I8  # what each gets, and from which step on; step 0 is now
    start: I8
    value: F8  # expected utility of each

    @property
    def total(self) -> float:
        """Expected utility of all."""
        return float(self.value.sum())


def timetable(
    jobs: Sequence[Choice], order: Sequence[int], total: int, worth: Utility, step_s: float
) -> Timetable:
    """Place the jobs in the order given, each where it is worth most; of equals the least work."""
    steps = [np.maximum(np.ceil(job.takes_s / step_s), 1).astype(np.int64) for job in jobs]
    work = sum(int((job.tokens * s).min()) for job, s in zip(jobs, steps, strict=True))
    n_steps = 2 * work // total + max(int(s.min()) for s in steps) + 1
    free = np.full(n_steps, total, dtype=np.int64)
    tokens, start = np.zeros(len(jobs), np.int64), np.zeros(len(jobs), np.int64)
    value = np.zeros(len(jobs))
    for j in order:
        job = jobs[j]
        first = _first_fit(free, job.tokens, steps[j])
        value_of = worth(job.late_s + step_s * first[:, None]).mean(axis=1)
        best = np.flatnonzero(value_of >= value_of.max() - 1e-9)
        i = best[np.argmin((job.tokens * steps[j])[best])]
        tokens[j], start[j], value[j] = job.tokens[i], first[i], value_of[i]
        free[first[i] : first[i] + steps[j][i]] -= job.tokens[i]
    return Timetable(tuple(order), tokens, start, value)


def _first_fit(free: I8, tokens: I8, steps: I8) -> I8:
    """Return the first step from which so many tokens are free for so many steps: (A,).

    After the last step of `free` all are taken to be.
    """
    n = len(free)
    at = np.arange(n)
    taken = np.where(free < tokens[:, None], at, np.iinfo(np.int64).max)
    ends = np.minimum.accumulate(taken[:, ::-1], axis=1)[:, ::-1]
    fits = ends - at >= steps[:, None]
    return np.where(fits.any(axis=1), fits.argmax(axis=1), n)


def best_timetable(
    jobs: Sequence[Choice],
    orders: Sequence[Sequence[int]],
    total: int,
    worth: Utility,
    step_s: float,
) -> Timetable:
    """Return the best plan found: of the orders given, and with single jobs moved first or last."""
    most = np.array([worth(job.late_s).mean(axis=1).max() for job in jobs])
    best = max((timetable(jobs, o, total, worth, step_s) for o in orders), key=lambda t: t.total)
    for _ in range(len(jobs)):
        worst = np.argsort(best.value - most, kind="stable")
        lost = [j for j in worst.tolist() if best.value[j] < most[j] - 1e-9]
        tried = (
            timetable(jobs, order, total, worth, step_s)
            for j in lost[:TRIED]
            for order in _moved(best.order, j)
        )
        better = next((t for t in tried if t.total > best.total + 1e-6), None)
        if better is None:
            break
        best = better
    return best


def _moved(order: Sequence[int], j: int) -> list[list[int]]:
    rest = [k for k in order if k != j]
    return [[j, *rest], [*rest, j]]
