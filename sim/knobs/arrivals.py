"""When jobs come: a stream out of a few, a burst out of a stream."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import InputError
from sim.base.random import stream
from sim.knobs.parts import check_positive, rebuilt, replaced
from sim.knobs.repeat import repeat_jobs
from sim.workload.tables import values

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def arrive(
    workload: Workload, jobs: int = 200, interval_s: float = 15.0, seed: int = 0
) -> Workload:
    """Let jobs, drawn evenly out of those there are, come one after the other at random.

    Intervals are exponential, as in a Poisson process; the first job comes at 0.

    Parameters
    ----------
    workload : Workload
        What to draw from, with replacement.
    jobs : int
        How many come, at least 1.
    interval_s : float
        Mean time between two, s; 0 for all at once.
    seed : int
        Seed of which, and when.

    Raises
    ------
    InputError
        If a number is out of its range, or jobs depend on each other.
    """
    if type(jobs) is not int or jobs < 1:
        raise InputError(f"a stream needs a whole number of jobs from 1 on, not {jobs!r}")
    if not (math.isfinite(interval_s) and interval_s >= 0):
        raise InputError(f"interval_s must be finite and at least 0, not {interval_s!r}")
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("jobs that depend on each other can't be drawn one by one")
    rows = stream(seed, "arrive", "which").integers(workload.n_jobs, size=jobs)
    between = stream(seed, "arrive", "when").exponential(interval_s, jobs)
    between[0] = 0.0
    seen = np.zeros(workload.n_jobs, dtype=bool)
    copy = np.zeros(jobs, dtype=bool)
    for at, row in enumerate(rows.tolist()):
        copy[at], seen[row] = seen[row], True
    knob: dict[str, object] = {"arrive": jobs, "interval_s": interval_s, "seed": int(seed)}
    return repeat_jobs(workload, rows, copy, between.cumsum(), knob)


def squeeze(workload: Workload, span_s: float) -> Workload:
    """Let the same jobs come within another time, in the same order and rhythm.

    Parameters
    ----------
    workload : Workload
        Without downloads, which could not move along.
    span_s : float
        From the first submission to the last, s; positive.

    Raises
    ------
    InputError
        If the time is not positive, or there are downloads.
    """
    check_positive("the time within which jobs come", span_s)
    if workload.downloads.num_rows:
        raise InputError("jobs whose output is downloaded can't be squeezed together")
    submit = values(workload.jobs, "submit_s")
    span = float(submit[-1] - submit[0])
    factor = span_s / span if span else 1.0
    jobs = replaced(workload.jobs, "submit_s", submit[0] + factor * (submit - submit[0]))
    return rebuilt(workload, workload.stages, {"squeeze": float(span_s)}, jobs=jobs)
