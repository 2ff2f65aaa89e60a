"""Jobs of a log as they really ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.questions.backtest.findings import Audit
from sweep.questions.backtest.starts import find_starts, written_s


@dataclass(frozen=True)
class LoggedJobs:
    """Jobs of a log as they really ran, in the order of submission.

    Attributes
    ----------
    job : (N,) int64
        Rows of ``jobs``: those whose start is known (`sweep.questions.backtest.starts`), or that
        still waited when the log was written: they start then.
    submit_s, start_s, finish_s : (N,) float64
        Submission, or by its reader the time from which the job was free to start; recorded start
        and end (NaN if unknown), s.
    grace_s : float
        Wait up to which a job did not wait: the log's resolution, or the 95th percentile of its lag
        if that is more, s.
    resolution_s : float
        Resolution of the log's times, s.
    """

    job: I8
    submit_s: F8
    start_s: F8
    finish_s: F8
    grace_s: float
    resolution_s: float

    @property
    def wait_s(self) -> F8:
        """Recorded waits, (N,) float64, s: never below 0."""
        wait: F8 = self.start_s - self.submit_s
        return wait

    @property
    def waited(self) -> Mask:
        """Flags of jobs that waited: for longer than the grace."""
        flags: Mask = self.wait_s > self.grace_s
        return flags


def logged_jobs(workload: Workload, findings: Audit) -> LoggedJobs:
    """Return the jobs of a log whose wait is known, with the grace that its audit found.

    Up to when the log was written, if that is known (`sweep.questions.backtest.starts.written_s`).
    """
    starts, end_s = find_starts(workload), written_s(workload)
    start_s = np.minimum(starts.start_s, end_s)
    if np.isfinite(end_s):
        waits = np.isnan(start_s) & (starts.early_s == 0) & (starts.release_s <= end_s)
        start_s[waits] = end_s
    rows = np.flatnonzero(~np.isnan(start_s))
    finish_s = column_or_default(workload.jobs, RECORDED[1])
    return LoggedJobs(
        rows,
        starts.release_s[rows],
        start_s[rows],
        finish_s[rows],
        findings.grace_s,
        starts.resolution_s,
    )
