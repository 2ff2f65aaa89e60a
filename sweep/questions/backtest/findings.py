"""Findings of a log's audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8

MAX_HEAD_COULD_START = 0.03
"""Share from which on no policy that serves one pool in order can have produced a log."""


@dataclass(frozen=True)
class PoolAudit:
    """Findings about one pool of a log: the whole cluster, or a partition."""

    name: str
    n_jobs: int
    head_could_start: float
    wait_s: float  # time in which some job of it waits


@dataclass(frozen=True)
class Audit:
    """Findings about a log of jobs.

    Attributes
    ----------
    n_jobs, n_waited : int
        Jobs whose start is known, and those of them that waited for longer than `grace_s`.
    head_could_start : float
        Share of the time in which some job waits and the first in line has fitted for longer than
        `grace_s`; 0 if none ever waits. Each pool has a line of its own, and both times are summed
        over pools.
    grace_s : float
        Time that a job that fits may take to start, s.
    peak_over_capacity : float
        Excess of the largest recorded use over the capacity, as a fraction of it; 0 if use is never
        above it for longer than `grace_s`.
    over_capacity_s : float
        Time of such periods, s.
    lags_s : (L,) float64
        Lag from room to start, s, of each job that fitted, with all before it in line, as it
        started.
    lag_median_s, lag_p95_s : float
        Median and 95th percentile of `lags_s`; NaN if it is empty.
    resolution_s : float
        Coarsest unit of the recorded times and waits, s.
    over_limit : float
        Fraction of the jobs with a limit that ran past it by more than `resolution_s`.
    n_unrecorded, n_early : int
        Jobs whose start is not recorded, and jobs that started before their release: the log's
        clock was wrong. Their waits are unknown.
    early_s : float
        By how much a start is before the release at most, s.
    by_priority : bool
        True if the line is in the order of the log's priorities, else of submission.
    pools : tuple of PoolAudit
        Pools: the partitions, where the log has several, else the cluster.
    sentences : tuple of str
        A sentence for each finding.
    """

    n_jobs: int
    n_waited: int
    head_could_start: float
    grace_s: float
    peak_over_capacity: float
    over_capacity_s: float
    lags_s: F8
    lag_median_s: float
    lag_p95_s: float
    resolution_s: float
    over_limit: float
    n_unrecorded: int
    n_early: int
    early_s: float
    by_priority: bool
    pools: tuple[PoolAudit, ...]
    sentences: tuple[str, ...]

    @property
    def launch_lags_s(self) -> F8:
        """Lags that may be launch lags, s.

        All of them, or those up to `grace_s` of a log that is not in order: there longer ones have
        another cause.
        """
        return self.lags_s if self.is_in_order else self.lags_s[self.lags_s <= self.grace_s]

    def to_json(self) -> dict[str, Any]:
        """Return all but the sample of lags as JSON values; null for NaN."""
        values = {k: v for k, v in asdict(self).items() if k != "lags_s"}
        return {k: None if isinstance(v, float) and np.isnan(v) else v for k, v in values.items()}

    @property
    def is_in_order(self) -> bool:
        """True if a policy that serves one pool in the order of its line can have made the log."""
        return self.head_could_start <= MAX_HEAD_COULD_START
