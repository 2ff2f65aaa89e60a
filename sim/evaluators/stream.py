"""Evaluator of mean completion time against a lower bound over all schedules.

DAGPS's online experiments (Grandl et al., MSR-TR-2016-19, §8.2, §8.5) have no such bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.bounds.stream import mean_jct_bound
from sim.evaluators import Evaluation, Simulate, simulation


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Simulate once.

    Returns
    -------
    metrics : dict of str to float
        Those of `sim.evaluators.simulation`, and ``jct_mean_lb_s``, the bound of
        `sim.bounds.stream.mean_jct_bound` on the jobs done, s, and ``gap_lb_mean``, the mean
        completion time over it - 1. Where other policies fail other jobs, theirs is another bound.
    jobs : pyarrow.Table
        That of `sim.evaluators.simulation`.
    """
    metrics, jobs = simulation.evaluate(run, workload, cluster, policy, seed)
    done = np.isfinite(jobs["finish_s"].to_numpy()) & ~jobs["failed"].to_numpy()
    bound = mean_jct_bound(workload, cluster, done)
    more = {"jct_mean_lb_s": bound, "gap_lb_mean": metrics["jct_mean_s"] / bound - 1.0}
    return {**metrics, **more}, jobs
