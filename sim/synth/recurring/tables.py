"""What a workload of recurring jobs is drawn from, as `python -m sim fit` writes it: JSON.

Jobs are told apart by how many tasks they have and in which queue of NSDI 2022, §5.2.1, their size
belongs: a stratum has its share of the jobs, how large and how wide they are, and how often the
programs that they are runs of had run before.
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

FORMAT = "recurring tables 2"
"""First entry of the file."""
MADE_BY = "make it with `python -m sim fit WORKLOAD FILE --generator recurring`"
WIDE = 3
"""From how many tasks on a job is wide (NSDI 2022, §5.2.1)."""
BOUNDS_S = (1e3, 1e4, 1e5, 1e6)
"""Where the queues of the paper end, summed task durations of a job, s."""
HEAVY = 0.7
"""The heaviest jobs are the largest that have this share of all work, as few as can be."""
NEAR_TURNS = 5
"""Two of them are together if the one comes at most this many jobs after the other."""
CLASSES = ("new", "once", "often")
"""Programs that never ran in the history, that ran once, and more often."""


@dataclass(frozen=True)
class Stratum:
    """Jobs that are all thin or all wide, of one queue."""

    thin: bool
    large: bool  # whether a job's tasks add up to the first of `BOUNDS_S` or more
    jobs: Positive  # share of the jobs
    # quantiles of a job's summed task durations, s, at the probabilities (i + 0.5) / n
    work_s: tuple[Positive, ...]
    widths: tuple[tuple[int, float], ...]  # number of tasks, and its weight
    # for each of `CLASSES` the share of the stratum's jobs, then programs and runs of the past,
    # for each job of the workload
    runs: tuple[tuple[float, float, float], ...]
    # median and 90th percentile over jobs of variation over space: who varies more than whom
    over_space: tuple[float, float]

    def check(self) -> None:
        """Refuse jobs that are of no stratum."""
        if not self.work_s or any(a > b for a, b in pairwise(self.work_s)):
            raise ValueError("must have rising work_s")
        least = 1 if self.thin else WIDE
        if not self.widths or min(width for width, _ in self.widths) < least:
            raise ValueError(f"must have widths of at least {least}")
        if len(self.runs) != len(CLASSES):
            raise ValueError(f"must have runs of {', '.join(CLASSES)} programs")


@dataclass(frozen=True)
class Tables:
    """All that is drawn from."""

    strata: tuple[Stratum, ...]
    gone: tuple[float, float]  # programs that only the history has, and their runs, for each job
    # users for each job, and the share of the variance of programs' mean task durations, as
    # logarithms, that is between users; the same of what is requested
    users: tuple[float, float]
    requests: tuple[float, float]
    # share of the jobs whose program has become faster since the history, and the mean of the
    # logarithm by which it has (exponential, at most 100-fold)
    stale: tuple[float, float]
    # of the heaviest jobs (`HEAVY`) the share that another comes close to (`NEAR_TURNS`), the share
    # of their work that these have, and groups of such for each of them
    together: tuple[float, float, float]
    # of the heaviest jobs, by work, the mean logarithm of the mean task duration of their user's
    # history over their own; None where no user is known
    unlike_user: float | None
    # share of the runs with an input much larger than usual: the rarer, the higher a variation
    # over time can be
    large: float
    # median and 90th percentile over jobs of variation over time and over space
    # (`sim.describe.slearn`); mean, median and 90th percentile of the load in windows
    over_time: tuple[float, float]
    over_space: tuple[float, float]
    load: tuple[float, float, float]
    history_days: int  # length of the history, and of the window that `over_time` is measured in
    provenance: Mapping[str, Any]

    def check(self) -> None:
        """Refuse tables without strata, and a variation over time that does not rise."""
        if not self.strata or not 0 < self.over_time[0] < self.over_time[1]:
            raise ValueError("must have strata, and two rising numbers as over_time")


def write_tables(tables: Tables, path: str | os.PathLike[str]) -> None:
    """Write `tables` to a file, whole or not at all."""
    save(path, FORMAT, tables)


def read_tables(path: str | os.PathLike[str]) -> Tables:
    """Read what `write_tables` wrote."""
    return load(Tables, path, FORMAT, MADE_BY)


def heaviest(work_s: F8) -> I8:
    """Return the rows of the heaviest jobs, the largest first."""
    order = np.argsort(-work_s, kind="stable")
    upto = np.cumsum(work_s[order])
    return order[: int(np.searchsorted(upto, HEAVY * upto[-1])) + 1]


def quantiles_at(logs: F8, share: F8) -> F8:
    """Return quantiles given at the probabilities (i + 0.5) / n, at others."""
    place = np.clip(share * len(logs) - 0.5, 0, len(logs) - 1)
    low = np.minimum(place.astype(np.int64), max(len(logs) - 2, 0))
    high = np.minimum(low + 1, len(logs) - 1)
    found: F8 = logs[low] + (place - low) * (logs[high] - logs[low])
    return found
