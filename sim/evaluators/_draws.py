"""Draws of a queue's unknowns at an instant: how long its jobs run, and which jobs come next.

Run times are drawn as fractions of the limit from past jobs of the same user and queue, or if they
are few of the user, of the queue, or of all. Of a job that runs already only those count that are
longer than it has run. Jobs that come are those of the past again, from a random moment on, and
from the first after the last (a circular block bootstrap; Politis and Romano 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.transforms.parts import rebuild, repeat_jobs
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default, values
from sim.workload.workload import Workload

MIN_PAST = 8
"""Smallest number of past jobs of a group from which run times are drawn."""
MAX_PAST = 20_000
"""Largest number of jobs that ended before; of more, the last ones."""


@dataclass(frozen=True)
class Instant:
    """Jobs of a log at an instant.

    Attributes
    ----------
    workload : Workload
        Those that had been submitted.
    rows : (J,) int64
        Their rows in the whole log.
    time_s : float
        The instant, s.
    start_s, end_s : (J,) float64
        When they had started, and ended; NaN for not yet.
    """

    workload: Workload
    rows: I8
    time_s: float
    start_s: F8
    end_s: F8

    @property
    def waits(self) -> Mask:
        """Flags of the jobs that had not started, (J,)."""
        flags: Mask = np.isnan(self.start_s)
        return flags

    @property
    def is_open(self) -> Mask:
        """Flags of the jobs that had not ended, (J,)."""
        flags: Mask = np.isnan(self.end_s)
        return flags


def instant_of(workload: Workload, time_s: float, left_out: Mask | None = None) -> Instant:
    """Return the jobs that had been submitted at an instant, but for those to leave out."""
    start_s, end_s = (column_or_default(workload.jobs, column) for column in RECORDED)
    is_known = workload.columns.job_submit <= time_s
    if left_out is not None:
        is_known &= ~left_out
    ended = np.flatnonzero(is_known & (end_s <= time_s))  # False for NaN
    is_known[ended[:-MAX_PAST]] = False
    rows = np.flatnonzero(is_known)
    start_s, end_s = (np.where(x[rows] <= time_s, x[rows], np.nan) for x in (start_s, end_s))
    return Instant(workload.take(rows), rows, time_s, start_s, end_s)


class RunTimes:
    """Run times of the jobs that had not ended, drawn from those that had."""

    def __init__(self, instant: Instant) -> None:
        columns = instant.workload.columns
        limit_s = columns.job_requested
        past = np.flatnonzero(~instant.is_open & ~instant.waits)
        run_s = instant.end_s - instant.start_s
        # of jobs without a limit as they are
        scale_s = np.where(limit_s > 0, limit_s, 1.0)
        queue = values(instant.workload.jobs, "queue").astype(np.int64)
        self._share = run_s[past] / scale_s[past]
        self._past, self._limit_s = past, limit_s
        self._has_limit = limit_s[past] > 0
        self._user, self._queue = columns.job_user, queue
        self._scale_s = scale_s
        self._age_s = np.where(instant.waits, 0.0, instant.time_s - instant.start_s)
        self.open_rows = np.flatnonzero(instant.is_open)
        self._choices = [self._choice(int(row)) for row in self.open_rows]

    def draw(self, rng: Stream) -> F8:
        """Draw the run time of each job that had not ended, s."""
        uniform = rng.random(len(self.open_rows))
        return np.array(
            [c[int(u * len(c))] for c, u in zip(self._choices, uniform.tolist(), strict=True)]
        )

    def _choice(self, row: int) -> F8:
        """Return the run times from which that of a job is drawn, s."""
        has_limit, age_s = bool(self._limit_s[row] > 0), float(self._age_s[row])
        is_like = (self._has_limit == has_limit) & (
            self._share * self._scale_s[row] > max(age_s, 0.0)
        )
        is_users = self._user[self._past] == self._user[row]
        is_queues = self._queue[self._past] == self._queue[row]
        for group in (is_users & is_queues, is_users, is_queues, np.ones(len(is_like), bool)):
            share: F8 = self._share[group & is_like]
            if len(share) >= MIN_PAST:
                break
        if len(share):  # of all, if no group has enough
            run_s: F8 = share * float(self._scale_s[row])
            return run_s
        limit_s = float(self._limit_s[row])
        return np.array([max(limit_s if has_limit else 2 * age_s, age_s + 1.0, 1.0)])


def drawn_workload(instant: Instant, run_s: F8, rng: Stream, *, arrivals: bool = True) -> Workload:
    """Return the jobs with drawn run times, and behind them those that come, if any do.

    Parameters
    ----------
    run_s : (J,) float64
        Run time of each job, s; NaN to leave it.
    """
    workload, time_s = instant.workload, instant.time_s
    runs = workload.runs
    longest_s = np.maximum.reduceat(workload.columns.stage_max_s, workload.columns.job_stage0[:-1])
    factor = np.where(np.isnan(run_s) | (longest_s <= 0), 1.0, run_s / longest_s)
    job_of_run = workload.columns.stage_job[runs.stage]
    drawn = rebuild(workload, None, runs.with_durations(runs.duration_s * factor[job_of_run]))
    if not arrivals:
        return drawn
    submit_s = workload.columns.job_submit
    begin_s = time_s - rng.random() * (time_s - float(submit_s[0]))
    is_later = submit_s > begin_s
    later_s = np.where(
        is_later, time_s + submit_s - begin_s,
        2 * time_s - begin_s + submit_s - float(submit_s[0]),
    )  # fmt: skip
    order = np.argsort(later_s, kind="stable")
    rows = np.concatenate([np.arange(len(submit_s)), order])
    is_copy = np.arange(len(rows)) >= len(submit_s)
    times_s = np.concatenate([submit_s, np.maximum(later_s[order], submit_s[-1])])
    return repeat_jobs(drawn, rows, is_copy, times_s, {"starts": time_s})
