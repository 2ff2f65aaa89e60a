"""Waits of one schedule by reason, summed by user, queue and period."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

import sim
from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError, unknown
from sweep.driver.captured_run import Captured
from sweep.questions.why.attempts import read_attempts
from sweep.questions.why.sentences import percent, reason_words, seconds
from sweep.questions.why.splits import AGAIN, RUNNING, Split, Splitter

MAX_JOBS = 20_000
"""Largest number of jobs whose waits are split: those that took longest beyond their own work."""
HOUR_S, DAY_S = 3600.0, 86_400.0
MAX_HOURS = 48
"""A log of at most so many hours is cut into hours, a longer one into days."""
MIN_EXCESS = 0.05
"""Least difference between a group's share of the wait and of the jobs that a sentence names."""
_FIRST_DATE_S = 1e8
"""Zero of a clock, s, from which on it counts since 1970."""
HOUR, DAY = "hour", "day"
PERIODS_S = {HOUR: HOUR_S, DAY: DAY_S}


@dataclass(frozen=True)
class GroupWaits:
    """Waits of the jobs of a user, queue or period.

    Attributes
    ----------
    name : str
        Of the group.
    n_jobs : int
        Number of its jobs.
    waits : dict of str to float
        Their waits by reason, s.
    """

    name: str
    n_jobs: int
    waits: dict[str, float]

    @property
    def wait_s(self) -> float:
        """Sum of its waits."""
        return sum(self.waits.values())


class Waits:
    """Waits of the jobs that are done in a run, split by reason.

    Attributes
    ----------
    name : str
        The policy, or another name of the schedule.
    jobs : (N,) int64
        Rows of the jobs that are split.
    n_done, n_jobs : int
        Number of the jobs that are done, and of all.
    """

    def __init__(self, captured: Captured, name: str, max_jobs: int = MAX_JOBS) -> None:
        self.captured, self.name = captured, name
        self.splitter = Splitter(read_attempts(captured))
        run = self.splitter.attempts.run
        done = np.flatnonzero(~run.job_failed & np.isfinite(run.job_finish))
        self.n_done, self.n_jobs = len(done), len(run.job_finish)
        if not len(done):
            raise InputError("no job is done: there are no waits to explain")
        self.jobs = done if len(done) <= max_jobs else np.sort(self._longest(done, max_jobs))

    def _longest(self, done: I8, max_jobs: int) -> I8:
        """Return the jobs that took longest beyond the critical paths of their stages."""
        run = self.splitter.attempts.run
        bounds = sim.lower_bound(run.workload, run.cluster)["cp_len"].to_numpy()
        beyond_s = (run.job_finish - run.job_submit - bounds)[done]
        return done[np.argsort(-beyond_s, kind="stable")[:max_jobs]]

    @cached_property
    def splits(self) -> list[Split]:
        """Completion time of each of the jobs, split."""
        return [self.splitter.split(job) for job in self.jobs.tolist()]

    @cached_property
    def wait_s(self) -> F8:
        """Wait of each of the jobs, (N,) s."""
        return np.array([split.wait_s for split in self.splits])

    @cached_property
    def waits(self) -> dict[str, float]:
        """Waits of all these jobs by reason, the longest first, s."""
        return self._sum(np.ones(len(self.jobs), bool))

    @cached_property
    def running_s(self) -> float:
        """Time in which their chains ran, s."""
        sums = (split.seconds.get(name, 0.0) for split in self.splits for name in (RUNNING, AGAIN))
        return sum(sums)

    @property
    def period(self) -> str:
        """The default period: hours of a short log, else days."""
        span_s = float(np.ptp(self._clock_s))
        return HOUR if span_s <= MAX_HOURS * HOUR_S else DAY

    @property
    def columns(self) -> list[str]:
        """The columns of which there are groups: of jobs, with several values, and the period."""
        names = ("user", "queue", self.period)
        return [name for name in names if len({*self.labels(name)}) > 1]

    def by(self, column: str) -> list[GroupWaits]:
        """Return the waits of each group: those of a period in order, else the longest first.

        Parameters
        ----------
        column : str
            A column of jobs, ``hour`` or ``day`` (of submission).

        Raises
        ------
        InputError
            If there is no such column.
        """
        names = self.labels(column)
        code: dict[str, int] = {}
        codes = np.array([code.setdefault(name, len(code)) for name in names])
        groups = [
            GroupWaits(name, int((codes == k).sum()), self._sum(codes == k))
            for name, k in code.items()
        ]
        if column in PERIODS_S:
            first_s = np.full(len(code), np.inf)
            np.minimum.at(first_s, codes, self._clock_s)
            return [groups[k] for k in np.argsort(first_s, kind="stable").tolist()]
        return sorted(groups, key=lambda group: (-group.wait_s, group.name))

    def labels(self, column: str) -> list[str]:
        """Return the group of each job."""
        if column in PERIODS_S:
            return self._periods(PERIODS_S[column])
        table = self.splitter.attempts.run.workload.jobs
        if column not in table.column_names:
            raise InputError(unknown("column of jobs", column, [*table.column_names, *PERIODS_S]))
        texts = table[column].cast(pa.string()).take(pa.array(self.jobs)).to_pylist()
        return [text or "none" for text in texts]

    def _sum(self, rows: Mask) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for k in np.flatnonzero(rows).tolist():
            for reason, wait_s in self.splits[k].waits.items():
                sums[reason] += wait_s
        return {reason: sums[reason] for reason in sorted(sums, key=lambda r: -sums[r])}

    @property
    def _clock_s(self) -> F8:
        """Submissions on the clock of the log, (N,) s."""
        run = self.splitter.attempts.run
        zero_s = float(run.workload.meta.get("offset_s") or 0.0)
        submit_s: F8 = run.job_submit[self.jobs] + self.captured.result.workload.origin_s
        return submit_s + zero_s

    def _periods(self, length_s: float) -> list[str]:
        clock_s = self._clock_s
        is_dated = float(clock_s.min()) > _FIRST_DATE_S
        number = np.floor(clock_s / length_s) if is_dated else (clock_s - clock_s.min()) // length_s
        return [_period_name(int(k), length_s, is_dated=is_dated) for k in number.tolist()]


def summary(waits: Waits) -> tuple[str, ...]:
    """Return how long jobs waited and for what, and whose wait it mainly is."""
    total_s, n = float(waits.wait_s.sum()), len(waits.jobs)
    if not total_s:
        return (f"No job waited under {waits.name}.",)
    n_waited = int((waits.wait_s > 0).sum())
    remainder = "" if n == waits.n_done else f", the {n:,} that took longest of {waits.n_done:,},"
    first = (
        f"{n_waited:,} of {n:,} jobs{remainder} waited under {waits.name}, {seconds(total_s / n)} "
        f"on average beside {seconds(waits.running_s / n)} of running: {listed(waits.waits)}."
    )
    groups = [(column, group) for column in waits.columns for group in waits.by(column)]
    excess = [group.wait_s / total_s - group.n_jobs / n for _, group in groups]
    if not excess or max(excess) < MIN_EXCESS:
        kinds = " or ".join(waits.columns)
        second = (f"No {kinds} has much more of the wait than of the jobs.",)
        return (first, *second) if kinds else (first,)
    column, group = groups[int(np.argmax(excess))]
    return first, (
        f"{percent(group.wait_s / total_s)} of the wait is that of {percent(group.n_jobs / n)} of "
        f"the jobs, of {column} {group.name}: {listed(group.waits)}."
    )


def notes(waits: Waits) -> list[str]:
    """Return what is left out."""
    lines = []
    if waits.n_done < waits.n_jobs:
        left_out = waits.n_jobs - waits.n_done
        lines.append(f"{left_out:,} of {waits.n_jobs:,} jobs are not done: left out.")
    return lines


def listed(seconds_of: dict[str, float], n: int = 3) -> str:
    """Write the largest reasons of a wait with their shares."""
    total_s = sum(seconds_of.values())
    if not total_s:
        return "no wait"
    parts = [(reason, s / total_s) for reason, s in seconds_of.items() if s / total_s >= 0.0005]
    return ", ".join(f"{percent(share)} for {reason_words(r)}" for r, share in parts[:n])


def largest(groups: Sequence[GroupWaits], n: int, *, in_order: bool) -> list[GroupWaits]:
    """Return the `n` groups of the longest waits, in the order of all if that is one of time."""
    longest = sorted(groups, key=lambda group: -group.wait_s)[:n]
    return [group for group in groups if group in longest] if in_order else longest


def _period_name(number: int, length_s: float, *, is_dated: bool) -> str:
    if not is_dated:
        return f"{number + 1:,}"
    moment = dt.datetime.fromtimestamp(number * length_s, tz=dt.UTC)
    return moment.strftime("%Y-%m-%d" if length_s == DAY_S else "%Y-%m-%d %H:00")
