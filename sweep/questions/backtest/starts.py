"""Starts of a log's jobs, and the resolution of its times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8
from sim.base.reading.clock import MIN_TIMES, UNITS_S, resolution_s
from sim.workload.schema import NOW, RECORDED, SUBMITTED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload

MAX_OFF_UNIT = 0.01
"""Share of waits that may be no multiple of the resolution."""


@dataclass(frozen=True)
class Starts:
    """Starts of the J jobs of a log.

    Attributes
    ----------
    release_s : (J,) float64
        ``submit_s`` of the workload: when a job was submitted or, by its reader, free to start; of
        one that a simulation releases after others, when the log did.
    start_s : (J,) float64
        Recorded starts, never before the release, s; NaN if unknown: not recorded, or so long
        before the release that the log's clock was wrong.
    early_s : (J,) float64
        By how much such a start is before the release, s; else 0.
    resolution_s : float
        Coarsest unit of the recorded times and waits, s. A start is rounded by up to that much.
    """

    release_s: F8
    start_s: F8
    early_s: F8
    resolution_s: float

    @property
    def n_early(self) -> int:
        """Number of jobs that started before their release."""
        return int((self.early_s > 0).sum())

    @property
    def n_unrecorded(self) -> int:
        """Number of jobs whose start is not recorded."""
        return int(np.isnan(self.start_s).sum()) - self.n_early


def find_starts(workload: Workload) -> Starts:
    """Find the starts that a log records."""
    logged_s = column_or_default(workload.jobs, SUBMITTED)
    release_s = np.fmax(workload.columns.job_submit, logged_s)
    start_s, finish_s = (column_or_default(workload.jobs, column) for column in RECORDED)
    unit_s = workload.meta.get("resolution_s") or resolution_s(release_s, start_s, finish_s)
    unit_s = _resolution_of_waits(start_s - release_s, float(unit_s))
    is_early = start_s < release_s - unit_s
    early_s = np.where(is_early, release_s - start_s, 0.0)
    known_s = np.where(is_early, np.nan, np.maximum(start_s, release_s))
    return Starts(release_s, known_s, early_s, unit_s)


def written_s(workload: Workload) -> float:
    """Return when a log with jobs that run and wait was written, s; infinity for others.

    Waits count up to then, in the log and in simulations: of a job that starts later only a part of
    the wait is known, and without it the longest waits would be left out of the log's alone.
    """
    return float(workload.meta.get(NOW, np.inf))


def no_starts(starts: Starts) -> str:
    """Say why a log of which no start is known has none."""
    if not starts.n_early:
        return "the log does not tell when jobs started; a backtest needs it"
    return (
        f"each of the log's {starts.n_early:,} recorded starts is before the job's submission, so "
        "its clock, or the time zone of a column, is wrong; a backtest needs right ones"
    )


def _resolution_of_waits(wait_s: F8, unit_s: float) -> float:
    """Return the coarsest unit of nearly all waits, if it is coarser than `unit_s`, s."""
    wait_s = wait_s[np.isfinite(wait_s)]
    if len(np.unique(wait_s)) < MIN_TIMES:
        return unit_s
    for coarse_s in UNITS_S:
        if coarse_s <= unit_s:
            break
        rest_s = np.abs(wait_s - np.rint(wait_s / coarse_s) * coarse_s)
        if (rest_s < 1e-6).mean() >= 1 - MAX_OFF_UNIT:
            return coarse_s
    return unit_s
