"""Speeds on classes of machines, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.cluster.speeds import class_speeds

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def speed_fields(
    columns: Columns, cluster: Cluster, features: frozenset[str]
) -> dict[str, NDArray[Any]]:
    """Return the fields of speeds and classes, of one entry where the run does not need them."""
    kind, speed = cluster.machine_class.astype(np.int32), None
    if len(kind) == 0:
        kind = np.zeros(cluster.n_machines, np.int32)
    if not features & {"CLASS_SPEEDS", "RUNS_ON"}:
        kind = kind[:1]
    if "CLASS_SPEEDS" in features:
        speed = class_speeds(columns, cluster)
        if speed is None:  # a wide variant
            speed = np.ones((len(columns.stage_job), max(len(cluster.classes), 1)))
    return {"w_stage_speed": np.ones((1, 1)) if speed is None else speed, "c_mach_kind": kind}
