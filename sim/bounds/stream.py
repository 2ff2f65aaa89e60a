"""Lower bound on the mean completion time of jobs that share a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import Mask
from sim.bounds import bound_arrays, waits_for_inputs
from sim.bounds.at_fastest import at_fastest
from sim.bounds.pace import Pace
from sim.cluster.sizing import stage_demands

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload


def mean_jct_bound(workload: Workload, cluster: Cluster, done: Mask | None = None) -> float:
    """Bound the mean completion time (finish − submission) of jobs from below.

    For any schedule that ends these jobs, even one that knows the future. Four facts, for every k:

    - *Alone.* No job takes less than its ``tight_lb`` (`sim.bounds.lower_bound`). So the k-th
      completion of a schedule is no earlier than the k-th of submissions plus bounds.
    - *Pooled.* Let w be the work of a job in one resource over the cluster's capacity of it. The
      jobs share that capacity, as on one machine that does w of each and may leave it at any
      instant. At no instant has a schedule of that machine ended more jobs than the one that
      always goes on with the job of which least remains (SRPT; Schrage, *A proof of the optimality
      of the shortest remaining processing time discipline*, Operations Research 16, 1968). So the
      k-th completion is no earlier than the k-th of SRPT, resource by resource. A stretched task
      gets no more of a fungible resource. Other jobs only take capacity away. Where the cluster
      is faster at times, all that holds with work for time (`sim.bounds.pace`).
    - The mean of completions is that of the k-th completions, each of which is no earlier than the
      latest of those.
    - *Waiting for inputs.* A job that polls for the outputs of others is submitted when it has
      them. As a schedule may delay them, and so its submission, it counts by its ``tight_lb``
      alone, and its work not at all.

    Parameters
    ----------
    workload : Workload
        Of J jobs.
    cluster : Cluster
        The cluster that they run on. Shares of queues count in the first fact alone.
    done : (J,) bool, optional
        The jobs that end; by default all. Others, such as those that fail, leave the mean.

    Returns
    -------
    float
        Seconds; NaN if no job ends.
    """
    from sim.bounds.kernels.srpt import srpt

    columns = at_fastest(workload.columns, cluster)
    waits = waits_for_inputs(columns)
    ends = np.ones_like(waits) if done is None else done
    if not ends.any():
        return float("nan")
    pooled = np.flatnonzero(ends & ~waits)
    submit = columns.job_submit[pooled] - columns.job_submit[:1]
    alone = bound_arrays(workload.columns, cluster, tight=True)["tight_lb"]
    load = columns.stage_work[:, None] * (stage_demands(columns, cluster) / cluster.total)
    load = np.add.reduceat(load, columns.job_stage0[:-1], axis=0)[pooled]
    latest = np.sort(submit + alone[pooled])
    pace = Pace(cluster.slowdowns)
    for work in load.T:
        ends_s = srpt(pace.work_s(submit), np.ascontiguousarray(work))
        np.maximum(latest, np.sort(pace.time_s(ends_s)), out=latest)
    total = (latest - np.sort(submit)).sum() + alone[ends & waits].sum()
    return float(total / ends.sum())
