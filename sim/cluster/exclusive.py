"""Exclusive use of machines: a task, or a slot of a gang, that takes a whole one.

It is a resource: a machine has as many parts as the workload has tasks, of which an ordinary task
takes one, and an exclusive one all. It decides what fits, and counts in no share, score or cap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8, Mask, frozen
from sim.cluster.allowed import exclusive_partitions
from sim.cluster.classes import PARTS
from sim.workload.columns import replaced

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def exclusive_jobs(columns: Columns, cluster: Cluster) -> Mask:
    """Tell which jobs take whole machines, (J,): by themselves, or by a partition that admits them.

    None in a pool of slots, where a task takes one slot whatever it demands.
    """
    if cluster.unit:
        return np.zeros(len(columns.job_submit), bool)
    return columns.job_exclusive | exclusive_partitions(columns, cluster)


def machine_parts(columns: Columns, cluster: Cluster) -> I8 | None:
    """Return the parts of a machine that a task of each stage takes, (G,); None if all take one."""
    is_exclusive = exclusive_jobs(columns, cluster)
    if not is_exclusive.any():
        return None
    return np.where(is_exclusive[columns.stage_job], columns.n_tasks, 1)


def with_parts(columns: Columns, cluster: Cluster) -> tuple[Columns, Cluster]:
    """Return both with that resource, if a job takes whole machines."""
    parts = machine_parts(columns, cluster)
    if parts is None:
        return columns, cluster
    whole = np.full((cluster.n_machines, 1), float(columns.n_tasks))
    capacity = frozen(np.hstack([cluster.capacity, whole]))
    return replaced(
        columns,
        resources=(*columns.resources, PARTS),
        quantum=frozen(np.append(columns.quantum, 1.0)),
        stage_demand=frozen(np.column_stack([columns.stage_demand, parts])),
    ), replace(cluster, resources=(*cluster.resources, PARTS), capacity=capacity)
