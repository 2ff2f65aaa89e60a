"""Plain value functions: the value of a job's completion over time (§4.3, Fig. 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.wing.lineage.dependencies import (
    Dependencies,
    Downloads,
    WeightFunction,
    share_of_inputs,
)
from sim.base.arrays import F8, I4, I8


@dataclass(frozen=True, eq=False)
class ValueFunctions:
    """For each job, when value is lost if it has not completed yet."""

    worth: F8  # value of the job if it completes early enough
    step0: I8  # first index of each job's steps
    time_s: F8  # time of each step, s; ascending for each job
    loss: F8  # value lost by completing after it

    def value_at(self, job: I4 | int, complete_s: F8 | float) -> F8:
        """Return the value of `job` if it completes at `complete_s` (at a step is in time)."""
        jobs, times = np.broadcast_arrays(np.asarray(job), np.asarray(complete_s, np.float64))
        lost = np.concatenate([[0.0], np.cumsum(self.loss)])
        out = np.empty(jobs.shape)
        for place in np.ndindex(jobs.shape):
            first, end = self.step0[jobs[place]], self.step0[jobs[place] + 1]
            passed = first + np.searchsorted(self.time_s[first:end], times[place], side="left")
            out[place] = self.worth[jobs[place]] - (lost[passed] - lost[first])
        return out


def value_functions(
    edges: Dependencies,
    downloads: Downloads,
    submit_s: F8,
    aggregate: F8,
    *,
    local: F8 | None = None,
    wt_fn: WeightFunction = share_of_inputs,
) -> ValueFunctions:
    """Make the value functions of all jobs, as Fig. 5 draws one.

    Completing late loses each of the job's own downloads that comes before, and, with a dependent
    job that was submitted before, the share of its aggregate value that the job gets.
    """
    n = edges.n_jobs
    known = downloads.per_job(n) if local is None else local
    loss = wt_fn(edges) * aggregate[edges.downstream]
    job = np.concatenate([edges.upstream, downloads.job])
    time_s = np.concatenate([submit_s[edges.downstream], downloads.time_s])
    lost = np.concatenate([loss, downloads.n.astype(np.float64)])
    worth = known + np.bincount(edges.upstream, weights=loss, minlength=n)
    order = np.lexsort([time_s, job])
    step0 = np.concatenate([[0], np.cumsum(np.bincount(job, minlength=n))])
    return ValueFunctions(worth, step0, time_s[order], lost[order])
