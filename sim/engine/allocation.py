"""Allocation: the amounts that the tasks of a run hold, and how much of the cluster it may use.

A run has one policy, so it has one amount for each task: where the workload tells requests, the
policy and the kernel get a workload with these in the place of demands, in which the truth is not
to be read; a policy that refines requests gets the demands (``policy.demands``). The run's record,
and with it bounds, power and work done, keeps the workload as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sim.cluster.carbon import carbon_cap
from sim.cluster.requests import requested

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.workload.workload import Workload


def allocated(workload: Workload, cluster: Cluster, policy: Scheduler) -> Workload:
    """Return the workload whose demands are what tasks hold under a policy."""
    refines = getattr(policy, "demands", "declared") == "true"
    return workload if refines else requested(workload, cluster)


def provisioned(workload: Workload, cluster: Cluster, policy: Scheduler) -> Cluster:
    """Return the cluster with a cap that follows the carbon intensity, if a policy has one."""
    options = getattr(policy, "carbon", None)
    if options is None or not workload.n_jobs:
        return cluster
    submit_s = workload.columns.job_submit
    cap = carbon_cap(cluster, options, float(submit_s[-1] - submit_s[0]))
    return replace(cluster, limits=(*cluster.limits, cap.delayed(float(submit_s[0]))))
