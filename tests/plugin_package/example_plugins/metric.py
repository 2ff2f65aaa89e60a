"""Completion time of the slowest job."""

import numpy as np

from sim.metrics.common import Metric

METRICS = {"example_jct_max_s": Metric("s", "lower", "largest job completion time")}


def compute(run, bounds):
    """Compute the largest finish minus submission of the jobs done."""
    jct_s = run.job_finish - run.job_submit
    return {"example_jct_max_s": float(np.nanmax(jct_s)) if np.isfinite(jct_s).any() else np.nan}
