"""Fields of the tree of quotas (`sim.cluster.quotas`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.cluster.quotas import NO_LIMIT, QuotaTree, quota_tree

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def tree_of(
    columns: Columns, cluster: Cluster, resources: tuple[str, ...], total: I8, quantum: F8
) -> QuotaTree | None:
    """Return the tree of the workload's queues; None without quotas."""
    if cluster.queue_mode != "quota":
        return None
    return quota_tree(cluster.quotas, columns.queue_names, resources, total, quantum)


def quota_fields(tree: QuotaTree | None, checks: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of the tree, with one row where there is none."""
    if tree is None:
        absent = np.zeros((1, 1), np.int64)
        no_weights = np.ones(1)
        path, row = np.zeros((1, 1), np.int32), np.zeros(1, np.int32)
        tree = QuotaTree(row, absent, absent, absent, no_weights, path, np.zeros(1, bool), False)
    fields: dict[str, NDArray[Any]] = {
        "c_org_path": tree.path,
        "c_node_parent": tree.parent,
        "c_node_weight": tree.weight,
        "c_node_limit": tree.limit,
        "c_node_local": tree.local,
        "c_node_nominal": tree.nominal,
        "c_node_borrows": np.any(tree.nominal < NO_LIMIT, axis=1).astype(np.int8),
        "c_quota_limits": tree.is_limited.astype(np.int8),
        "state_node_used": np.zeros_like(tree.limit),
        "state_node_taken": np.zeros_like(tree.limit),
        "state_node_planned": np.zeros_like(tree.limit),
        "state_sum_node": np.zeros_like(tree.limit if checks else tree.limit[:1]),
    }
    return fields
