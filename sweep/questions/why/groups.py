"""Smallest natural group of jobs that makes most of a loss.

Groups are jobs of a width or work of at least, or at most, some round number (1, 2 or 5 times a
power of ten); those of one user or queue; and those submitted in some of ten equal periods that
follow each other. Taken is the group of the fewest jobs that makes at least 90 % of the loss; if
that is more than a third of all jobs, the one that makes 75 %, then 50 %. Of equally many jobs it
is the one that makes more of it, then the first by the order above, the tightest first. No group,
if none is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, Mask

LEVELS = (0.9, 0.75, 0.5)
"""Shares of the loss that a group makes at least, in the order in which they are tried."""
MAX_PART = 3
"""A group has at most one of this many jobs."""
N_PERIODS = 10
STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Facts:
    """Facts of the jobs that are compared, N rows."""

    width: F8
    work_s: F8
    submit_s: F8
    user: Sequence[str]
    queue: Sequence[str]


@dataclass(frozen=True)
class Group:
    """A group of jobs.

    Attributes
    ----------
    by : str
        The fact that it is a group by.
    words : str
        Its name after "jobs".
    rows : (N,) bool
        The jobs.
    share : float
        Of the loss.
    """

    by: str
    words: str
    rows: Mask
    share: float

    @property
    def n_jobs(self) -> int:
        """Number of its jobs."""
        return int(self.rows.sum())


def smallest(facts: Facts, loss_s: F8) -> Group | None:
    """Return the smallest natural group that makes most of a loss, (N,) s of 0 or more each."""
    groups = [*candidates(facts, loss_s)]
    for level in LEVELS:
        group = _first(groups, level)
        if group is not None and group.n_jobs * MAX_PART <= max(len(loss_s), MAX_PART):
            return group
    return None


def smallest_by_fact(facts: Facts, loss_s: F8) -> list[Group]:
    """Return, of each fact, the smallest group that makes the first of `LEVELS`."""
    groups = [*candidates(facts, loss_s)]
    smallest_groups = (
        _first([group for group in groups if group.by == by], LEVELS[0])
        for by in dict.fromkeys(group.by for group in groups)
    )
    return [group for group in smallest_groups if group is not None and not group.rows.all()]


def _first(groups: Sequence[Group], level: float) -> Group | None:
    large = [group for group in groups if group.share >= level]
    return min(large, key=lambda group: (group.n_jobs, -group.share), default=None)


def candidates(facts: Facts, loss_s: F8) -> Iterator[Group]:
    """Yield all groups that have a job, in their order."""
    total = loss_s.sum()
    if not total > 0:
        return
    for by, words, rows in _named(facts):
        if rows.any():
            yield Group(by, words, rows, float(loss_s[rows].sum() / total))


def _named(facts: Facts) -> Iterator[tuple[str, str, Mask]]:
    numbers = (("width", facts.width, "task"), ("work", facts.work_s, "s of work"))
    for by, values, unit in numbers:
        bounds = _round_numbers(values)
        names = [f"{b:,.12g} {unit}{'s' * (unit == 'task' and b != 1)}" for b in bounds]
        for bound, name in [*zip(bounds, names, strict=True)][::-1]:
            yield by, f"of {name} or more", values >= bound
        for bound, name in zip(bounds, names, strict=True):
            yield by, f"of {name} or less", values <= bound
    for by, texts in (("user", facts.user), ("queue", facts.queue)):
        column = np.asarray(texts, object)
        for text in sorted({*texts} - {""}):
            yield by, f"of {by} {text}", column == text
    yield from _periods(facts.submit_s)


def _round_numbers(values: F8) -> list[float]:
    """Return the round numbers from the least value above 0 to the largest."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return []
    low, high = float(positive.min()), float(positive.max())
    first, last = (int(np.floor(np.log10(x))) for x in (low, high))
    numbers = [float(f"{step}e{power}") for power in range(first, last + 1) for step in STEPS]
    return [number for number in numbers if low <= number <= high]


def _periods(submit_s: F8) -> Iterator[tuple[str, str, Mask]]:
    low, high = float(submit_s.min()), float(submit_s.max())
    if not high > low:
        return
    period = period_of(submit_s)
    edges = low + (high - low) / N_PERIODS * np.arange(N_PERIODS + 1)
    for length in range(1, N_PERIODS + 1):
        for first in range(N_PERIODS - length + 1):
            end = first + length
            words = f"submitted from {edges[first]:,.0f} to {edges[end]:,.0f} s"
            yield "submission", words, (period >= first) & (period < end)


def period_of(submit_s: F8) -> NDArray[np.int64]:
    """Return the period of each submission, (N,), from 0 on."""
    low, high = submit_s.min(), submit_s.max()
    part = (submit_s - low) / (high - low) * N_PERIODS
    period: NDArray[np.int64] = np.minimum(part.astype(np.int64), N_PERIODS - 1)
    return period
