"""Sentences that warn of a log: what no reading of it puts right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.traces.sacct.columns import Log
from sim.workload.peaks import in_use_at_starts
from sim.workload.schema import LICENSE_PREFIX

MAX_SHARE = 0.02
"""Share of jobs or work from which on a user is told."""


def clusters(log: Log) -> Iterator[str]:
    """Say that one simulated cluster is to run what several did."""
    if "Cluster" in log:
        names = sorted(name for name in log["Cluster"].unique().to_pylist() if name)
        if len(names) > 1:
            yield (
                f"the log has jobs of {len(names)} clusters ({', '.join(names[:5])}), which are "
                "simulated as one: choose one with sacct --clusters"
            )


def censored(is_running: Mask, jobs: F8, cpu_s: F8) -> Iterator[str]:
    """Say that many jobs still ran when the log was written."""
    shares = [
        float(np.nansum(amount[is_running]) / max(np.nansum(amount), 1e-9))
        for amount in (jobs, cpu_s)
    ]
    if max(shares) > MAX_SHARE:
        yield (
            f"{int(is_running.sum()):,} jobs still ran when the log was written (censored): "
            f"{100 * shares[0]:.1f} % of the jobs, {100 * shares[1]:.1f} % of the CPU time known; "
            "end it earlier (trace.end_s), or export it later"
        )


def licences(counts: Mapping[str, I8], start_s: F8, finish_s: F8, job: I8) -> Iterator[str]:
    """Say which licences the jobs of a log asked for: the cluster has any number of them.

    Parameters
    ----------
    counts : dict of str to (K,) int64
        Number of each licence that K records held.
    start_s, finish_s : (K,) float64
        When they ran.
    job : (K,) int64
        Job of each.
    """
    if not counts:
        return
    requests = np.zeros(len(job), dtype=bool)
    peaks = []
    for name, n in counts.items():
        requests |= n > 0
        peak = in_use_at_starts(start_s, finish_s, n.astype(np.float64)).max()
        peaks.append(f"{name}: at most {peak:,.0f} in use")
    n_asked, n_jobs = len(np.unique(job[requests])), int(job.max()) + 1
    yield (
        f"{n_asked:,} of {n_jobs:,} jobs asked for licences ({', '.join(peaks)}); they wait for "
        f"them if cluster.limits says how many there are, as in {{of: {LICENSE_PREFIX}{name}, "
        "at_most: 4}"
    )
