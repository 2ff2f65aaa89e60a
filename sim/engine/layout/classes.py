"""Pools of machines on which the same stages can run, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import PolicyError
from sim.engine.layout.choice import allowed_classes, stage_kinds
from sim.engine.plan import Fit, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

MAX_POOLS = 63
"""Pools are bits of an int64."""


def machine_pools(
    columns: Columns, cluster: Cluster, plan: Plan, demand: I8, capacity: I8
) -> tuple[I8, I8]:
    """Return the pools in which each stage can run, (G,), and that of each machine, (M,), as bits.

    `demand` and `capacity` have the resources that decide what fits. A stage can run where an empty
    machine has room for its task, and is of its class. Without Fit.PER_CLASS all is one pool.
    """
    if plan.fit != Fit.PER_CLASS or cluster.unit:
        n_stages = len(columns.stage_job)
        return np.ones(n_stages, np.int64), np.ones(len(capacity), np.int64)
    classes = cluster.machine_class if len(cluster.machine_class) else np.zeros(len(capacity))
    shape, shape_of = np.unique(
        np.column_stack([capacity, classes.astype(np.int64)]), axis=0, return_inverse=True
    )
    kind, n_kinds = stage_kinds(columns, cluster, demand)
    example = np.zeros(n_kinds, np.int64)
    example[kind] = np.arange(len(kind))
    runs = (np.left_shift(1, shape[:, -1]) & allowed_classes(columns, cluster)[example, None]) > 0
    for r in range(demand.shape[1]):
        runs &= demand[example, r, None] <= shape[:, r]
    distinct, pool_of = np.unique(runs, axis=1, return_inverse=True)
    if distinct.shape[1] > MAX_POOLS:
        raise PolicyError(
            f"fit=per_class: the machines are {distinct.shape[1]} pools by the tasks that can run "
            f"on them; at most {MAX_POOLS} are simulated: take fewer kinds of machines or demands"
        )
    bits = np.left_shift(1, np.arange(distinct.shape[1], dtype=np.int64))
    return (distinct * bits).sum(axis=1)[kind], bits[pool_of.ravel()[shape_of.ravel()]]
