"""Transforms of arrivals: a Poisson stream, a shorter span, one hour with the jobs of all hours."""

from __future__ import annotations

import numpy as np

from sim.base.errors import InputError
from sim.base.parameters import Count, NotNegative, Positive, checked
from sim.base.random import stream
from sim.transforms.parts import rebuild, repeat_jobs, sample_jobs
from sim.workload.paths import critical_path_s
from sim.workload.releases import shift_begins
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload


@checked
def arrive(
    workload: Workload, jobs: Count = 200, interval_s: NotNegative = 15.0, seed: int = 0
) -> Workload:
    """Draw jobs uniformly, with replacement; submit them as a Poisson process.

    The intervals are exponential; the first job is submitted at 0.

    Parameters
    ----------
    workload : Workload
        Workload to draw from.
    jobs : int
        Number of jobs to draw, at least 1.
    interval_s : float
        Mean time between two submissions, s; 0 for all at once.
    seed : int
        Seed of the jobs and the intervals.

    Raises
    ------
    InputError
        If a number is out of its range, or jobs depend on each other.
    """
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError(
            "the transform arrive draws jobs one by one, so they can't depend on each other or "
            "have downloads; use a workload without job_edges and downloads"
        )
    rows = stream(seed, "arrive", "which").integers(workload.n_jobs, size=jobs)
    between = stream(seed, "arrive", "when").exponential(interval_s, jobs)
    between[0] = 0.0
    seen = np.zeros(workload.n_jobs, dtype=bool)
    copy = np.zeros(jobs, dtype=bool)
    for i, row in enumerate(rows.tolist()):
        copy[i], seen[row] = seen[row], True
    transform: dict[str, object] = {"arrive": jobs, "interval_s": interval_s, "seed": int(seed)}
    return repeat_jobs(workload, rows, copy, between.cumsum(), transform)


@checked
def squeeze(workload: Workload, span_s: Positive) -> Workload:
    """Scale the times between submissions so that all jobs are submitted within `span_s`.

    Parameters
    ----------
    workload : Workload
        Workload without downloads, whose times would have to be scaled too.
    span_s : float
        Time from the first submission to the last, s; positive.

    Raises
    ------
    InputError
        If the time is not positive, or there are downloads.
    """
    if workload.downloads.num_rows:
        raise InputError(
            "the transform squeeze does not move downloads; use a workload without downloads"
        )
    submit = values(workload.jobs, "submit_s")
    span = float(submit[-1] - submit[0])
    factor = span_s / span if span else 1.0
    submit_s = submit[0] + factor * (submit - submit[0])
    jobs = with_column(shift_begins(workload.jobs, submit_s - submit), "submit_s", submit_s)
    return rebuild(workload, {"squeeze": float(span_s)}, keep_recorded=False, jobs=jobs)


HOUR_S, DAY_S = 3600.0, 86_400.0

JOBS_AN_HOUR = 14_900
"""Jobs per hour of Alibaba's whole trace: 2.86 million in 8 days, by its published histograms."""


@checked
def hour_of(
    workload: Workload, jobs: Count = JOBS_AN_HOUR, seed: int = 0, longest_s: float = DAY_S
) -> Workload:
    """Fold a sample of many hours into one hour, with as many jobs as an hour of the whole trace.

    A sample of a trace has too few jobs in any one hour to load a cluster. So the jobs of all its
    hours are submitted in one hour: each at its time within its own hour, which keeps the bursts
    within hours and averages over the day. As the sample is thinner than the trace, jobs are
    repeated until there are as many as in an hour of the whole trace: all equally often, give or
    take one. A copy is submitted at a random time of the hour.

    Parameters
    ----------
    workload : Workload
        Jobs of any span of time.
    jobs : int
        Number of jobs in the hour.
    seed : int
        Seed of the jobs that are repeated once more, and of the times of copies.
    longest_s : float
        Jobs with a longer critical path are dropped. Of the Alibaba sample that is one, whose
        three last stages are recorded to have run for 16.6 hours each, one after the other, though
        the job took 16.6 hours in all; it alone would be a quarter of the mean JCT.

    Raises
    ------
    InputError
        If `jobs` is not a whole number of at least 1, no job is left, or jobs depend on each other.
    """
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError(
            "the transform hour_of moves jobs one by one, so they can't depend on each other or "
            "have downloads; use a workload without job_edges and downloads"
        )
    short_jobs = workload.take(critical_path_s(workload.columns) <= longest_s)
    rows, copy = sample_jobs(short_jobs.n_jobs, jobs, seed)
    submit_s = values(short_jobs.jobs, "submit_s")[rows] % HOUR_S
    submit_s[copy] = HOUR_S * stream(seed, "hour").random(int(copy.sum()))
    order = submit_s.argsort(kind="stable")
    transform: dict[str, object] = {
        "hour of": short_jobs.n_jobs,
        "jobs": len(rows),
        "seed": int(seed),
    }
    return repeat_jobs(short_jobs, rows[order], copy[order], submit_s[order], transform)
