"""Speeds on classes of machines, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.cluster.speeds import class_speeds

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def speed_fields(columns: Columns, cluster: Cluster, is_needed: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of speeds, of one entry where the run does not need them."""
    if not is_needed:
        return {"w_stage_speed": np.ones((1, 1)), "c_mach_kind": np.zeros(1, np.int32)}
    speed = class_speeds(columns, cluster)
    if speed is None:  # a wide variant
        speed = np.ones((len(columns.stage_job), 1))
        return {"w_stage_speed": speed, "c_mach_kind": np.zeros(cluster.n_machines, np.int32)}
    return {"w_stage_speed": speed, "c_mach_kind": cluster.machine_class.astype(np.int32)}
