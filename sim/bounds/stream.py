"""Lower bound on the mean completion time of jobs that share a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import InputError
from sim.bounds import bound_arrays
from sim.cluster.sizing import stage_demands

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload


def mean_jct_bound(workload: Workload, cluster: Cluster) -> float:
    """Bound the mean completion time (finish − submit) over all jobs from below.

    For any schedule, even one that knows the future. Three facts, for every k:

    - *Alone.* No job takes less than its ``tight_lb`` (`sim.bounds.lower_bound`). So the k-th
      completion of a schedule is no earlier than the k-th of submissions plus bounds.
    - *Pooled.* Let w be the work of a job in one resource over the cluster's capacity of it. The
      jobs share that capacity, as on one machine that does w of each and may leave it at any
      instant. At no instant has a schedule of that machine ended more jobs than the one that
      always goes on with the job of which least remains (SRPT; Schrage, *A proof of the optimality
      of the shortest remaining processing time discipline*, Operations Research 16, 1968). So the
      k-th completion is no earlier than the k-th of SRPT, resource by resource. A stretched task
      gets no more of a fungible resource.
    - The mean of completions is that of the k-th completions, each of which is no earlier than the
      latest of those.

    Parameters
    ----------
    workload : Workload
        Of jobs that all end, and that are submitted at the workload's times.
    cluster : Cluster
        The cluster that they run on. Shares of queues count in the first fact alone.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InputError
        If jobs need inputs that others make: those may come later, or fail.
    """
    from sim.bounds.kernels.srpt import srpt

    columns = workload.columns
    if columns.job_input_mode.any():
        raise InputError(
            "the bound on mean completion times holds for jobs with known submission times; jobs "
            "here wait for inputs of others: use sim.lower_bound, job by job"
        )
    submit = columns.job_submit
    alone = bound_arrays(columns, cluster, tight=True)["tight_lb"]
    load = columns.stage_work[:, None] * (stage_demands(columns, cluster) / cluster.total)
    load = np.add.reduceat(load, columns.job_stage0[:-1], axis=0)
    latest = np.sort(submit + alone)
    for work in load.T:
        np.maximum(latest, np.sort(srpt(submit, np.ascontiguousarray(work))), out=latest)
    return float((latest - np.sort(submit)).mean())
