"""Speeds of tasks on classes of machines: a task's duration is divided by its machine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8
from sim.cluster.allowed import allowed_codes

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def class_speeds(columns: Columns, cluster: Cluster) -> F8 | None:
    """Return the speed of each stage's tasks on each of the cluster's classes, (G, C).

    None if all are 1, as on equal machines and in a pool of slots.
    """
    if cluster.unit or not {*columns.speed_classes} & {*cluster.classes}:
        return None
    speed = np.ones((len(columns.stage_job), len(cluster.classes)))
    for i, name in enumerate(cluster.classes):
        if name in columns.speed_classes:
            speed[:, i] = columns.stage_speed[:, columns.speed_classes.index(name)]
    return None if (speed == 1.0).all() else speed


def fastest(columns: Columns, cluster: Cluster) -> F8 | None:
    """Return the greatest speed of each stage on a class that it may run on, (G,); None if all 1.

    A stage that may run on none has speed 1.
    """
    speed = class_speeds(columns, cluster)
    if speed is None:
        return None
    present = np.unique(cluster.machine_class)
    allowed = allowed_codes(columns, cluster)[:, None] >> present & 1 > 0
    best = np.where(allowed, speed[:, present], 0.0).max(axis=1)
    return np.where(best > 0, best, 1.0)
