"""An hour of jobs out of a sample of many hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.errors import InputError
from sim.base.random import stream
from sim.knobs.repeat import repeat_jobs, sample_jobs
from sim.workload.tables import values

if TYPE_CHECKING:
    from sim.workload.workload import Workload

HOUR_S, DAY_S = 3600.0, 86_400.0

JOBS_AN_HOUR = 14_900
"""Jobs an hour of Alibaba's whole trace: 2.86 million in 8 days, by its published histograms."""


def hour_of(
    workload: Workload, jobs: int = JOBS_AN_HOUR, seed: int = 0, longest_s: float = DAY_S
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
    from sim.workload.paths import critical_path_s

    if type(jobs) is not int or jobs < 1:
        raise InputError(f"an hour needs a whole number of jobs from 1 on, not {jobs!r}")
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("an hour can't be built of jobs that depend on each other")
    kept = workload.take(critical_path_s(workload.columns) <= longest_s)
    rows, copy = sample_jobs(kept.n_jobs, jobs, seed)
    at = values(kept.jobs, "submit_s")[rows] % HOUR_S
    at[copy] = HOUR_S * stream(seed, "hour").random(int(copy.sum()))
    order = at.argsort(kind="stable")
    knob: dict[str, object] = {"hour of": kept.n_jobs, "jobs": len(rows), "seed": int(seed)}
    return repeat_jobs(kept, rows[order], copy[order], at[order], knob)
