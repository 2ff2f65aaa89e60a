"""When jobs come: a stream out of a few, a burst out of a stream, an hour out of many."""

from __future__ import annotations

import numpy as np

from sim.base.errors import InputError
from sim.base.parameters import Count, NotNegative, Positive, checked
from sim.base.random import stream
from sim.transforms.parts import rebuilt, repeat_jobs, sample_jobs
from sim.workload.paths import critical_path_s
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload


@checked
def arrive(
    workload: Workload, jobs: Count = 200, interval_s: NotNegative = 15.0, seed: int = 0
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
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("jobs that depend on each other can't be drawn one by one")
    rows = stream(seed, "arrive", "which").integers(workload.n_jobs, size=jobs)
    between = stream(seed, "arrive", "when").exponential(interval_s, jobs)
    between[0] = 0.0
    seen = np.zeros(workload.n_jobs, dtype=bool)
    copy = np.zeros(jobs, dtype=bool)
    for at, row in enumerate(rows.tolist()):
        copy[at], seen[row] = seen[row], True
    transform: dict[str, object] = {"arrive": jobs, "interval_s": interval_s, "seed": int(seed)}
    return repeat_jobs(workload, rows, copy, between.cumsum(), transform)


@checked
def squeeze(workload: Workload, span_s: Positive) -> Workload:
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
    if workload.downloads.num_rows:
        raise InputError("jobs whose output is downloaded can't be squeezed together")
    submit = values(workload.jobs, "submit_s")
    span = float(submit[-1] - submit[0])
    factor = span_s / span if span else 1.0
    jobs = with_column(workload.jobs, "submit_s", submit[0] + factor * (submit - submit[0]))
    return rebuilt(workload, {"squeeze": float(span_s)}, jobs=jobs)


HOUR_S, DAY_S = 3600.0, 86_400.0

JOBS_AN_HOUR = 14_900
"""Jobs an hour of Alibaba's whole trace: 2.86 million in 8 days, by its published histograms."""


@checked
def hour_of(
    workload: Workload, jobs: Count = JOBS_AN_HOUR, seed: int = 0, longest_s: float = DAY_S
) -> Workload:
    """Build an hour of jobs out of a sample of many hours.

    A sample of a trace has too few jobs in any one hour to load a cluster. So the jobs of all its
    hours come in one: each at its time within its own hour, which keeps the bursts within hours
    and averages the day out. To make up for the thinning, jobs are repeated until there are as
    many as in an hour of the whole trace, each as often as any other, one more or less; a
    repetition comes at a random time of the hour.

    Parameters
    ----------
    workload : Workload
        Jobs of whatever time.
    jobs : int
        How many come in the hour.
    seed : int
        Seed of which are repeated once more, and of when repetitions come.
    longest_s : float
        Jobs with a longer critical path are left out. Of the Alibaba sample that is one, whose
        three last stages are recorded to have run for 16.6 hours each, one after the other, though
        the job took 16.6 hours in all; it alone would be a quarter of the mean JCT.

    Raises
    ------
    InputError
        If `jobs` is no whole number from 1 on, no job is left, or jobs depend on each other.
    """
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("an hour can't be built of jobs that depend on each other")
    kept = workload.take(critical_path_s(workload.columns) <= longest_s)
    rows, copy = sample_jobs(kept.n_jobs, jobs, seed)
    at = values(kept.jobs, "submit_s")[rows] % HOUR_S
    at[copy] = HOUR_S * stream(seed, "hour").random(int(copy.sum()))
    order = at.argsort(kind="stable")
    transform: dict[str, object] = {"hour of": kept.n_jobs, "jobs": len(rows), "seed": int(seed)}
    return repeat_jobs(kept, rows[order], copy[order], at[order], transform)
