"""Domains of machines and the levels that gangs ask for, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4
from sim.base.errors import InputError
from sim.cluster.domains import asked_levels

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def _check_elastic(columns: Columns, cluster: Cluster, narrowest: I4) -> None:
    """Refuse elastic jobs that ask for a domain: their machines change while they run."""
    is_both = (narrowest >= 0) & (columns.job_width_min > 0)
    if is_both.any():
        j = int(np.argmax(is_both))
        level = cluster.topology.levels[narrowest[j]]
        raise InputError(
            f"the job in row {j} is elastic and asks for one domain of the level {level!r}, and an "
            "elastic job takes any machine that gets free as it grows; leave out "
            "topology_required and topology_preferred, or width_min",
            rule="elastic in a domain",
        )


def topology_fields(
    columns: Columns, cluster: Cluster, has_domains: bool
) -> dict[str, NDArray[Any]]:
    """Return the fields of domains, of one entry where the run does not need them.

    Raises
    ------
    InputError
        If an elastic job asks for a domain, or a gang for one of a level that is not there.
    """
    required, narrowest = asked_levels(columns, cluster)
    _check_elastic(columns, cluster, narrowest)
    has_some = has_domains and bool(cluster.topology)  # or it shares a loop that has them
    n_jobs = len(columns.job_submit) if has_domains else 1
    return {
        "w_job_required": required[:n_jobs],
        "w_job_narrowest": narrowest[:n_jobs],
        "c_domain": cluster.topology.domain.copy() if has_some else np.zeros((1, 1), np.int32),
        "c_crossing": cluster.topology.factor.copy() if has_some else np.zeros(0),
    }
