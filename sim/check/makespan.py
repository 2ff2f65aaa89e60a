"""A lower bound on the makespan of a run, which no schedule may beat."""

from __future__ import annotations

import numpy as np

from sim.bounds import bound_arrays
from sim.bounds.at_fastest import at_fastest
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import queue_shares, stage_demands
from sim.workload.workload import Workload


def makespan_bound(workload: Workload, cluster: Cluster) -> float:
    """Bound from below the time between the first submission and the last completion, s.

    The greatest of: for each job, its submission plus its ``new_lb``; for each instant of
    submission, the work submitted from then on over the capacity it may use: the cluster's, and,
    where queues are hard, each queue's own work over its own share (of a fungible resource, all).
    """
    columns = at_fastest(workload.columns, cluster)
    submit = columns.job_submit - columns.job_submit[0]
    bound = float((submit + bound_arrays(workload.columns, cluster)["new_lb"]).max())
    load = columns.stage_work[:, None] * (stage_demands(columns, cluster) / cluster.total)
    work = np.add.reduceat(load, columns.job_stage0[:-1], axis=0)
    groups = [(np.arange(len(submit)), 1.0)]
    if cluster.queue_mode == "hard":
        shares = queue_shares(columns, cluster)
        queues = np.unique(columns.job_queue)
        groups += [(np.flatnonzero(columns.job_queue == q), float(shares[q])) for q in queues]
    fungible = [name in cluster.fungible for name in cluster.resources]
    for rows, share in groups:
        left = np.cumsum(work[rows][::-1], axis=0)[::-1] / np.where(fungible, 1.0, share)
        bound = max(bound, float((submit[rows] + left.max(axis=1)).max()))
    return bound
