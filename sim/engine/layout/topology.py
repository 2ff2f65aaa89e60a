"""Domains of machines and the levels that gangs ask for, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.cluster.domains import asked_levels

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def topology_fields(
    columns: Columns, cluster: Cluster, has_domains: bool
) -> dict[str, NDArray[Any]]:
    """Return the fields of domains, of one entry where the run does not need them.

    Raises
    ------
    InputError
        If a gang asks for a domain of a level that is not there.
    """
    required, narrowest = asked_levels(columns, cluster)
    has_some = has_domains and bool(cluster.topology)  # or it shares a loop that has them
    n_jobs = len(columns.job_submit) if has_domains else 1
    return {
        "w_job_required": required[:n_jobs],
        "w_job_narrowest": narrowest[:n_jobs],
        "c_domain": cluster.topology.domain.copy() if has_some else np.zeros((1, 1), np.int32),
        "c_crossing": cluster.topology.factor.copy() if has_some else np.zeros(0),
    }
