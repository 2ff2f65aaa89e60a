"""Fields of the tree of quotas (`sim.cluster.quotas`), and of flavors (`sim.cluster.flavors`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import PolicyError
from sim.cluster.flavors import flavors_of, no_flavors, ranks, tries
from sim.cluster.quotas import NO_LIMIT, Quota, QuotaTree, quota_tree
from sim.engine.plan import Fit, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def tree_of(
    columns: Columns, cluster: Cluster, resources: tuple[str, ...], capacity: I8, quantum: F8
) -> QuotaTree | None:
    """Return the tree of the workload's queues; None without quotas. `capacity`: (M, R) quanta."""
    if cluster.queue_mode != "quota":
        return None
    flavors = flavors_of(
        cluster.quotas, resources, cluster.classes, cluster.machine_class, capacity
    )
    total = capacity.sum(axis=0)
    return quota_tree(cluster.quotas, columns.queue_names, resources, total, quantum, flavors)


def quota_fields(tree: QuotaTree | None, checks: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of the tree, with one row where there is none."""
    if tree is None:
        absent = np.zeros((1, 1), np.int64)
        no_weights = np.ones(1)
        path, row = np.zeros((1, 1), np.int32), np.zeros(1, np.int32)
        columns = no_flavors(np.zeros(1, np.int64))
        tree = QuotaTree(
            row, absent, absent, absent, no_weights, path, np.zeros(1, bool), False, columns
        )
    n_resources = tree.flavors.column.shape[1]
    fields: dict[str, NDArray[Any]] = {
        "c_org_path": tree.path,
        "c_node_parent": tree.parent,
        "c_node_weight": tree.weight,
        "c_node_limit": tree.limit,
        "c_node_local": tree.local,
        "c_node_nominal": tree.nominal,
        "c_node_borrows": np.any(tree.nominal < NO_LIMIT, axis=1).astype(np.int8),
        "c_quota_limits": tree.is_limited.astype(np.int8),
        "state_node_used": np.zeros((len(tree.parent), n_resources), np.int64),
        "state_node_taken": np.zeros_like(tree.limit),
        "state_node_planned": np.zeros_like(tree.limit),
        "state_sum_node": np.zeros_like(tree.limit if checks else tree.limit[:1]),
    }
    return fields


def flavor_fields(
    columns: Columns,
    cluster: Cluster,
    tree: QuotaTree | None,
    demand: I8,
    job_total: I8,
    present: bool,
) -> dict[str, NDArray[Any]]:
    """Return the flavors of machines, and which sets of them stages and gangs try in turn.

    `demand` (G, R), `job_total` (J, R). A row of ``c_tries`` has the tries of a queue for what is
    taken of the resources with flavors, then -1.
    """
    if not present:
        row = np.zeros(1, np.int32)
        return {
            "c_mach_flavor": row, "c_flavor_column": np.zeros((1, 1), np.int64),
            "c_tries": np.full((1, 1), -1, np.int32), "c_try": np.zeros((1, 2), np.int64),
            "c_org_least": np.zeros(1, np.int8),
            "w_stage_tries": row, "w_job_tries": row,
        }  # fmt: skip
    # a run without flavors may share a loop that has them
    queues = columns.queue_names
    nodes = {name: cluster.quotas.get(name, Quota()) for name in queues}
    flavors = no_flavors(demand[0]) if tree is None else tree.flavors
    rank = ranks(nodes, queues, flavors)
    by_flavor = flavors.by_flavor
    known: dict[bytes, int] = {}
    rows: list[list[tuple[int, int]]] = []

    def row_of(queue: int, demanded: Mask) -> int:
        key = bytes([*demanded.tolist()]) + queue.to_bytes(4, "big")
        if key not in known:
            known[key] = len(rows)
            rows.append(tries(rank[queue], flavors, demanded, cluster.resources))
        return known[key]

    def rows_of(queue: I4, amounts: I8) -> I4:
        pairs = np.column_stack([queue, (amounts > 0) & by_flavor])
        distinct, index = np.unique(pairs, axis=0, return_inverse=True)
        own = [row_of(int(pair[0]), pair[1:] > 0) for pair in distinct]
        return np.array(own, np.int32)[index.ravel()]

    stage_rows = rows_of(columns.job_queue[columns.stage_job], demand)
    gangs = len(job_total) == len(columns.job_queue)
    job_rows = rows_of(columns.job_queue, job_total) if gangs else np.zeros(1, np.int32)
    first = np.cumsum([0, *map(len, rows)])
    table = np.full((len(rows), max(map(len, rows), default=0) + 1), -1, np.int32)
    for i, own in enumerate(rows):
        table[i, : len(own)] = first[i] + np.arange(len(own))
    every = [pair for own in rows for pair in own] or [(0, 0)]
    choices = [node.flavor_choice for node in nodes.values()]
    return {
        "c_mach_flavor": flavors.sets(cluster.machine_class, len(cluster.capacity)),
        "c_flavor_column": flavors.column,
        "c_tries": table,
        "c_try": np.array(every, np.int64),
        "c_org_least": np.array([choice != "first" for choice in choices], np.int8),
        "w_stage_tries": stage_rows,
        "w_job_tries": job_rows,
    }


def queue_strategies(
    columns: Columns, cluster: Cluster, plan: Plan
) -> tuple[Fit, NDArray[np.int8]]:
    """Return the fit of all queues, and which of them let jobs pass where they differ, (O,).

    Raises
    ------
    PolicyError
        If a queue has a strategy, and jobs do not wait in order.
    """
    absent = np.zeros(1, np.int8)
    if not any(node.strategy for node in cluster.quotas.values()):
        return plan.fit, absent
    plans = plan.reservations > 0 or plan.replan is not None
    if plans or plan.fit == Fit.PACK or plan.held_machines:
        reason = (
            "with reservations or plans nothing blocks or passes what waits" if plans
            else "with fit pack machines choose tasks" if plan.fit == Fit.PACK
            else "machines are held for the first of all queues"
        )  # fmt: skip
        raise PolicyError(
            f"cluster.quotas has a strategy of a queue, and {reason}; leave out strategy, or set "
            "policy.fit to strict or skip and hold no machines"
        )
    own = [cluster.quotas[q].strategy if q in cluster.quotas else "" for q in columns.queue_names]
    skips = np.array([name == "skip" or (not name and plan.fit == Fit.SKIP) for name in own])
    if skips.all():
        return Fit.SKIP, absent
    strict = Fit.STRICT if plan.fit == Fit.SKIP else plan.fit
    return strict, skips.astype(np.int8) if skips.any() else absent
