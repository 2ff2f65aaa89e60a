"""Natural group of jobs on which a loss falls.

Groups are jobs whose tasks or work are at least, or at most, some round number (1, 2 or 5 times a
power of ten); those of one user or queue; and those submitted in some of ten equal periods that
follow each other. Of the groups of at most half of the jobs that make at least half of the loss,
taken is the one whose share of the loss exceeds its share of the jobs the most, by at least a
fifth of the whole: 90 % of the loss by 5 % of the jobs (85) before 95 % by 40 % (55). Of equal ones
it is the one of fewer jobs, then the first by the order above, the tightest first. There is none
where a loss is spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, Mask

MIN_LOSS, MAX_JOBS, MIN_EXCESS = 0.5, 0.5, 0.2
"""Least share of the loss, largest share of the jobs, and least difference between the two."""
N_PERIODS = 10
STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Facts:
    """Facts of the jobs that are compared, N rows."""

    n_tasks: F8
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


def concentrated(facts: Facts, loss_s: F8) -> Group | None:
    """Return the natural group on which a loss falls, (N,) s of 0 or more each; None for none."""
    return _first(candidates(facts, loss_s), len(loss_s))


def concentrated_by_fact(facts: Facts, loss_s: F8) -> list[Group]:
    """Return such a group of each fact that has one."""
    groups = [*candidates(facts, loss_s)]
    by_fact = (
        _first([group for group in groups if group.by == by], len(loss_s))
        for by in dict.fromkeys(group.by for group in groups)
    )
    return [group for group in by_fact if group is not None]


def _first(groups: Iterable[Group], n_jobs: int) -> Group | None:
    """Return the group whose share of the loss exceeds that of the jobs the most."""
    fitting = [
        group
        for group in groups
        if group.share >= MIN_LOSS
        and (group.n_jobs <= MAX_JOBS * n_jobs or group.n_jobs == 1)
        and _excess(group, n_jobs) >= MIN_EXCESS
    ]
    return max(fitting, key=lambda group: (_excess(group, n_jobs), -group.n_jobs), default=None)


def _excess(group: Group, n_jobs: int) -> float:
    return round(group.share - group.n_jobs / n_jobs, 12)


def candidates(facts: Facts, loss_s: F8) -> Iterator[Group]:
    """Yield all groups that have a job, in their order."""
    total = loss_s.sum()
    if not total > 0:
        return
    for by, words, rows in _named(facts):
        if rows.any():
            yield Group(by, words, rows, float(loss_s[rows].sum() / total))


def _named(facts: Facts) -> Iterator[tuple[str, str, Mask]]:
    numbers = (("tasks", facts.n_tasks, "task"), ("work", facts.work_s, "s of work"))
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
