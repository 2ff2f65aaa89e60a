"""Goodput: the work that counts, over what the cluster could do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base import maths
from sim.base.arrays import F8
from sim.cluster.sizing import stage_demands
from sim.engine.record import Run
from sim.metrics.common import NAN, POSITIVE, Metric, done_mask
from sim.metrics.stops import lost_s
from sim.metrics.usage import arrivals, seconds_within

GOODPUT = "goodput"
METRICS = {
    GOODPUT: Metric(
        "1",
        "higher",
        "work at speed 1 that counts, over capacity, while jobs arrive",
        span=POSITIVE,
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the work that jobs did while jobs arrive, over capacity × that time.

    Work is duration × demand of tasks, as the workload has them: at speed 1, and for an elastic job
    at its greatest width. So it is not what tasks hold: a slow machine, or a width of poor
    speed-up, does less in the same room. Work that was lost (`sim.metrics.stops`) and that of jobs
    that are never done do not count. What a stage did until the last submission is its share of the
    running time that was kept. The resource with the largest value; above 1 it may be where
    machines are faster than 1. NaN without records of tasks.
    """
    columns, cluster = run.workload.columns, run.cluster
    begin, end = arrivals(run)
    if run.stopped is None or run.records is None or end <= begin:
        return {GOODPUT: NAN}
    useful_until = run.stopped.stop_s - lost_s(run, run.stopped)
    useful = run.stopped.task, run.stopped.start_s, useful_until
    done = done_mask(run)[columns.stage_job]
    goes_on = done & (run.job_finish[columns.stage_job] > end)
    so_far, in_all = (
        seconds_within(run, run.records.times, begin, until, useful, goes_on)
        for until in (end, np.inf)
    )
    share = so_far / np.where(in_all > 0, in_all, np.inf)
    work = np.where(done, columns.stage_work * np.where(goes_on, share, 1.0), 0.0)
    amounts = maths.dot(work, stage_demands(columns, cluster))
    return {GOODPUT: float((amounts / (cluster.total * (end - begin))).max())}
