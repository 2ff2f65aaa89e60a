"""Rules of partitions, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I4
from sim.cluster.allowed import job_tiers

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def tiers_in_order(columns: Columns, cluster: Cluster, tiers: bool) -> I4:
    """Return the tier of each job, the least for the highest: (J,); (1,) without `tiers`."""
    return -job_tiers(columns, cluster) if tiers else np.zeros(1, np.int32)
