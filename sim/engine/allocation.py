"""Allocation: the amounts that the tasks of a run hold, requests or what they truly need.

A run has one policy, so it has one amount for each task: where the workload tells requests, the
policy and the kernel get a workload with these in the place of demands, in which the truth is not
to be read; a policy that refines requests gets the demands (``policy.demands``). The run's record,
and with it bounds, power and work done, keeps the workload as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.cluster.requests import requested

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.workload.workload import Workload


def allocated(workload: Workload, cluster: Cluster, policy: Scheduler) -> Workload:
    """Return the workload whose demands are what tasks hold under a policy."""
    refines = getattr(policy, "demands", "declared") == "true"
    return workload if refines else requested(workload, cluster)
