"""Fitted tables of recurring jobs, a JSON file that `python -m sim fit` writes.

Strata divide the jobs by their number of tasks and the queue of NSDI 2022, §5.2.1, to which their
size belongs. A stratum has its share of the jobs, the distributions of their size and width, and
how often their programs had run before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.dataclass_json import load, save
from sim.base.parameters import Positive

FORMAT = "recurring tables 3"
"""First entry of the file."""
MADE_BY = "make it with `python -m sim fit WORKLOAD FILE --generator recurring`"
WIDE = 3
"""Minimum number of tasks of a wide job (NSDI 2022, §5.2.1)."""
BOUNDS_S = (1e3, 1e4, 1e5, 1e6)
"""Upper bounds of the paper's queues, summed task durations of a job, s."""
HEAVY = 0.7
"""The heaviest jobs are the smallest set of jobs that has this share of all work."""
NEAR_JOBS = 5
"""Two of them are in one group if the one arrives at most this many jobs after the other."""
CLASSES = ("new", "once", "often")
"""Programs that never ran in the history, that ran once, and more often."""


@dataclass(frozen=True)
class Stratum:
    """Jobs that are all thin or all wide, of one queue."""

    thin: bool
    large: bool  # a job's task durations add up to the first of `BOUNDS_S` or more
    jobs: Positive  # share of the jobs
    # quantiles of a job's summed task durations, s, at the probabilities (i + 0.5) / n
    work_s: tuple[Positive, ...]
    widths: tuple[tuple[int, float], ...]  # number of tasks, and its weight
    # for each of `CLASSES` the share of the stratum's jobs, then programs per job of the workload
    # and runs in the history per job of the workload
    runs: tuple[tuple[float, float, float], ...]
    # median and 90th percentile over jobs of variation over space; only its rank counts, between
    # strata
    over_space: tuple[float, float]

    def check(self) -> None:
        """Raise ValueError on impossible sizes, widths or classes."""
        if not self.work_s or any(a > b for a, b in pairwise(self.work_s)):
            raise ValueError("must have rising work_s")
        min_width = 1 if self.thin else WIDE
        if not self.widths or min(width for width, _ in self.widths) < min_width:
            raise ValueError(f"must have widths of at least {min_width}")
        if len(self.runs) != len(CLASSES):
            raise ValueError(f"must have runs of {', '.join(CLASSES)} programs")


@dataclass(frozen=True)
class Tables:
    """Parameters of the generator; ratios are per job of the workload."""

    strata: tuple[Stratum, ...]
    history_only: tuple[float, float]  # programs that only the history has, and their runs, per job
    # users per job, and the share of the variance of programs' mean task durations, as logarithms,
    # that is between users; the same of requests
    users: tuple[float, float]
    requests: tuple[float, float]
    # share of the jobs whose program has become faster since the history, and the mean logarithm
    # of the speed-up (exponential, at most 100-fold)
    stale: tuple[float, float]
    # share of the heaviest jobs (`HEAVY`) that are near another one (`NEAR_JOBS`), the share of
    # the heaviest jobs' work that these have, and groups of near jobs per heaviest job
    together: tuple[float, float, float]
    # mean logarithm, weighted by work, over the heaviest jobs: mean task duration in their user's
    # history over their own; None where no user is known
    unlike_user: float | None
    # share of the runs with an input much larger than usual: the rarer these are, the higher a
    # variation over time can be
    large: float
    # median and 90th percentile over jobs of variation over time and over space
    # (`policies.slearn.task_variation`); mean, median and 90th percentile of the load in windows
    over_time: tuple[float, float]
    over_space: tuple[float, float]
    load: tuple[float, float, float]
    history_days: int  # length of the history, and of the window that `over_time` is measured in
    provenance: Mapping[str, Any]

    def check(self) -> None:
        """Raise ValueError without strata, or if the percentiles of `over_time` do not rise."""
        if not self.strata or not 0 < self.over_time[0] < self.over_time[1]:
            raise ValueError("must have strata, and two rising numbers as over_time")


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to a file, atomically."""
    save(path, FORMAT, tables)


def read_tables(path: str | os.PathLike[str]) -> Tables:
    """Read tables that `write_tables` wrote."""
    return load(Tables, path, FORMAT, MADE_BY)


def heaviest(work_s: F8) -> I8:
    """Return the rows of the heaviest jobs, the largest first."""
    order = np.argsort(-work_s, kind="stable")
    cum_work_s = np.cumsum(work_s[order])
    return order[: int(np.searchsorted(cum_work_s, HEAVY * cum_work_s[-1])) + 1]


def quantiles_at(logs: F8, share: F8) -> F8:
    """Interpolate quantiles, known at the probabilities (i + 0.5) / n, at the shares `share`."""
    position = np.clip(share * len(logs) - 0.5, 0, len(logs) - 1)
    low = np.minimum(position.astype(np.int64), max(len(logs) - 2, 0))
    high = np.minimum(low + 1, len(logs) - 1)
    values: F8 = logs[low] + (position - low) * (logs[high] - logs[low])
    return values
