"""Durations of tasks on the fastest class of machines, and the least work of elastic jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8
from sim.cluster.speeds import fastest
from sim.workload.columns import replaced
from sim.workload.elastic import has_elastic, least_work_shares

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def at_fastest(columns: Columns, cluster: Cluster) -> Columns:
    """Return the columns with the shortest durations that tasks can have on the cluster.

    Each task's duration is divided by the greatest speed of its stage on a class of machines that
    it may run on. No task of a run is shorter, so that a bound with these durations holds for any.
    An elastic job is as long as at its greatest width, and takes as little room × time as at its
    best.
    """
    speed = fastest(columns, cluster)
    if has_elastic(columns):
        share = least_work_shares(columns)[columns.stage_job]
        columns = replaced(columns, stage_work=columns.stage_work * share)
    if speed is None:
        return columns
    work: F8 = columns.stage_work / speed
    job_work: F8 = np.bincount(columns.stage_job, work, len(columns.job_submit)).astype(np.float64)
    # a new record, whose task durations are made of its runs
    return replace(
        columns,
        run_duration=columns.run_duration / np.repeat(speed, np.diff(columns.stage_run0)),
        stage_work=work,
        stage_max_s=columns.stage_max_s / speed,
        stage_min_s=columns.stage_min_s / speed,
        job_work=job_work,
    )
