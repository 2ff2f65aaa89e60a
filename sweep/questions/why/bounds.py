"""Bounds of jobs over time: start gate and run limit, and tasks that started and that run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask, offsets
from sim.engine.plan import NO_LIMIT
from sweep.driver.captured_run import BOUNDS
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Bounds(NamedTuple):
    """Bounds of a job, and its tasks that have started (but those stopped) and that run."""

    gate: Steps
    limit: Steps
    started: Steps
    running: Steps


class BoundsOfJobs:
    """Bounds of all jobs of a run, by job."""

    def __init__(self, attempts: Attempts) -> None:
        self._a = attempts
        sets = attempts.captured.bounds
        none = np.zeros(0, np.int32)
        jobs = np.concatenate([none, *(change.jobs for change in sets)])
        order = np.argsort(jobs, kind="stable")
        times = np.repeat([c.time_s for c in sets], [len(c.jobs) for c in sets])
        self._times: F8 = times[order].astype(np.float64)
        self._values = {
            name: np.concatenate([none, *(c.values[name] for c in sets)])[order] for name in BOUNDS
        }
        n_jobs = len(attempts.run.job_submit)
        self._job0 = offsets(np.bincount(jobs, minlength=n_jobs))

    def job_bounds(self, job: int) -> Bounds:
        """Return the bounds of a job; a job with an overflow queue is not bound."""
        a, rows = self._a, slice(int(self._job0[job]), int(self._job0[job + 1]))
        overflows = self._values["overflow_queue"][rows] >= 0
        gate, limit = (
            Steps(self._times[rows], _from_unbound(self._values[name][rows], overflows))
            for name in ("start_gate", "run_limit")
        )
        own = a.rows_of(job)
        count, placed, end = a.count[own], a.placed_s[own], a.end_s[own]
        lost = np.where(a.is_whole[own], np.inf, end)
        return Bounds(
            gate, limit, from_changes(placed, lost, count), from_changes(placed, end, count)
        )


def _from_unbound(values: I4, overflows: Mask) -> I8:
    bound = np.where(overflows, NO_LIMIT, values)
    return np.concatenate([[NO_LIMIT], bound]).astype(np.int64)
