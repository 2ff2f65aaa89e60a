"""Resources as the kernel has them: in its order, in quanta, with the caps of organisations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PolicyError, unknown
from sim.workload.columns import capacity_quanta

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]

NO_CAP = np.iinfo(np.int64).max // 4


def order_resources(cluster: Cluster, plan: Plan) -> tuple[tuple[str, ...], int, int]:
    """Return the resources in the kernel's order, how many are rigid, how many decide what fits.

    Those that can't be overbooked come first, then the fungible ones that are looked at.
    """
    wanted = plan.fit_resources or cluster.resources
    for name in wanted:
        if name not in cluster.resources:
            raise PolicyError(unknown("resource in fit_resources", name, cluster.resources))
    rigid = tuple(name for name in cluster.resources if name not in cluster.fungible)
    for name in rigid:
        if name not in wanted:
            raise PolicyError(
                f"fit_resources leaves out {name}, which can't be overbooked; only fungible "
                f"resources may be left out (here: {', '.join(cluster.fungible) or 'none'}); "
                f"name {name} too, or declare it fungible in the cluster"
            )
    looked_at = rigid + tuple(name for name in cluster.fungible if name in wanted)
    rest = tuple(name for name in cluster.fungible if name not in wanted)
    return looked_at + rest, len(rigid), len(looked_at)


def quantum_of(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> F8:
    """Return how much of each resource a quantum is, (R,)."""
    if cluster.unit:
        return np.ones(1)
    known = dict(zip(columns.resources, columns.quantum, strict=True))
    return np.array([known.get(name, 1.0) for name in resources])


def demand_of(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> I8:
    """Return what a task of each stage holds, in quanta: (G, R), in the kernel's order."""
    if cluster.unit:
        return np.ones((1, 1), dtype=np.int64)
    if columns.resources == resources:
        return columns.stage_demand
    at = {name: i for i, name in enumerate(columns.resources)}
    demand = np.zeros((len(columns.stage_job), len(resources)), dtype=np.int64)
    for r, name in enumerate(resources):
        if name in at:
            demand[:, r] = columns.stage_demand[:, at[name]]
    return demand


def must_be_free(demand: I8, n_rigid: int, n_fit: int) -> I8:
    """Return the demands, lower than any room where a resource is left out or not demanded."""
    must = demand.copy()
    must[:, n_fit:] = -NO_CAP
    fungible = must[:, n_rigid:n_fit]
    fungible[fungible == 0] = -NO_CAP
    return must


def organisations(columns: Columns, cluster: Cluster, total: I8) -> tuple[I4, I8, F8]:
    """Return each job's organisation, the caps [O, R] in quanta, and the weights [O]."""
    n_jobs = len(columns.job_submit)
    if cluster.queue_mode == "global":
        cap = np.full((1, len(total)), NO_CAP, dtype=np.int64)
        return np.zeros(n_jobs, dtype=np.int32), cap, np.ones(1)
    names = columns.queue_names
    table = cluster.queue_share or {name: 1 / len(names) for name in names}
    share = np.array([table[name] for name in names])
    cap = np.full((len(names), len(total)), NO_CAP, dtype=np.int64)
    if cluster.queue_mode == "hard":
        cap = capacity_quanta(np.outer(share, total), np.ones(1))
    return columns.job_queue, cap, share


def most_running(demand: I8, total: I8, n_tasks: int, unit: bool) -> int:
    """Bound how many tasks can run at once: each holds at least the least dominant share."""
    if unit:
        return min(n_tasks, int(total[0]))
    dominant = (demand / np.maximum(total, 1)).max(axis=1, initial=0.0)
    least = dominant.min()
    if least <= 0:
        return n_tasks
    return int(min(n_tasks, np.ceil(len(total) / least) + 1))


def gang_slots(columns: Columns, demand: I8, unit: bool) -> I8:
    """Return what one held slot of each job holds: the most that any of its stages demands."""
    if unit:
        return np.ones((len(columns.job_submit), 1), dtype=np.int64)
    most: I8 = np.maximum.reduceat(demand, columns.job_stage0[:-1], axis=0)
    return most
