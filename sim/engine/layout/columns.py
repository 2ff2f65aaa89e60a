"""Resources, tasks, stages and jobs in the kernel's order and units."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4, I8, frozen
from sim.base.errors import PolicyError, unknown
from sim.cluster.classes import PARTS
from sim.engine.kernels.release import HARD
from sim.workload.columns import capacity_quanta

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.cluster.quotas import QuotaTree
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns
    from sim.workload.releases import Releases


NO_CAP = np.iinfo(np.int64).max // 4


def order_resources(cluster: Cluster, plan: Plan) -> tuple[tuple[str, ...], int, int]:
    """Return the resources in the kernel's order, how many are rigid, how many decide what fits.

    Rigid ones, which can't be overbooked, come first, then the fungible ones that decide what fits.
    """
    fitting = plan.fit_resources or cluster.resources
    if PARTS in cluster.resources:
        fitting = (*fitting, PARTS)
    for name in fitting:
        if name not in cluster.resources:
            raise PolicyError(unknown("resource in fit_resources", name, cluster.resources))
    rigid = tuple(name for name in cluster.resources if name not in cluster.fungible)
    for name in rigid:
        if name not in fitting:
            raise PolicyError(
                f"fit_resources leaves out {name}, which can't be overbooked; only fungible "
                f"resources may be left out (here: {', '.join(cluster.fungible) or 'none'}); "
                f"name {name} too, or declare it fungible in the cluster"
            )
    deciding = rigid + tuple(name for name in cluster.fungible if name in fitting)
    rest = tuple(name for name in cluster.fungible if name not in fitting)
    return deciding + rest, len(rigid), len(deciding)


def resource_quanta(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> F8:
    """Return the size of a quantum of each resource, (R,)."""
    if cluster.unit:
        return np.ones(1)
    quantum = dict(zip(columns.resources, columns.quantum, strict=True))
    return np.array([quantum.get(name, 1.0) for name in resources])


def demand_quanta(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> I8:
    """Return the demand of a task of each stage in quanta: (G, R), in the kernel's order."""
    if cluster.unit:
        return np.ones((1, 1), dtype=np.int64)
    if columns.resources == resources:
        return columns.stage_demand
    index = {name: i for i, name in enumerate(columns.resources)}
    demand = np.zeros((len(columns.stage_job), len(resources)), dtype=np.int64)
    for r, name in enumerate(resources):
        if name in index:
            demand[:, r] = columns.stage_demand[:, index[name]]
    return demand


def required_free(demand: I8, n_rigid: int, n_fit: int) -> I8:
    """Return the free room that each stage requires, in quanta.

    The demand; below any possible room for resources left out, and for fungible ones not demanded.
    """
    required = demand.copy()
    required[:, n_fit:] = -NO_CAP
    fungible = required[:, n_rigid:n_fit]
    fungible[fungible == 0] = -NO_CAP
    return required


def scale_fields(resources: tuple[str, ...], capacity: I8, n_fit: int) -> dict[str, F8]:
    """Return what amounts are multiplied by, to be shares: 0 for parts of machines."""
    counted = np.array([float(name != PARTS) for name in resources])
    total = capacity.sum(axis=0)
    fitting = np.maximum(capacity[:, :n_fit], 1).astype(np.float64)
    return {
        "c_scale": np.where(total > 0, counted / np.maximum(total, 1), 0.0),
        "c_mach_scale": counted / np.maximum(capacity.max(axis=0), 1),
        "c_alignment_scale": counted[:n_fit] / fitting**2,
    }


def organisations(
    columns: Columns,
    cluster: Cluster,
    total: I8,
    resources: tuple[str, ...],
    tree: QuotaTree | None,
) -> tuple[I4, I8, F8]:
    """Return each job's organisation, the caps [O, R] in quanta, and the weights [O].

    Parts of machines have no cap.
    """
    if tree is not None:
        n_queues, by_flavor = len(columns.queue_names), tree.flavors.by_flavor
        limit = tree.limit[:n_queues, tree.flavors.column[0]].copy()
        limit[:, by_flavor] = NO_CAP  # each column has its own
        return columns.job_queue, limit, tree.weight[:n_queues]
    n_jobs = len(columns.job_submit)
    if cluster.queue_mode == "global":
        cap = np.full((1, len(total)), NO_CAP, dtype=np.int64)
        return np.zeros(n_jobs, dtype=np.int32), cap, np.ones(1)
    names = columns.queue_names
    table = cluster.queue_share or {name: 1 / len(names) for name in names}
    share = np.array([table[name] for name in names])
    cap = np.full((len(names), len(total)), NO_CAP, dtype=np.int64)
    if cluster.queue_mode == "hard":
        is_parts = np.array([name == PARTS for name in resources])
        cap = np.where(is_parts, NO_CAP, capacity_quanta(np.outer(share, total), np.ones(1)))
    return columns.job_queue, cap, share


def gang_slots(columns: Columns, demand: I8, unit: bool, gangs: bool) -> I8:
    """Return the room of one held slot of each job: the largest demand of any of its stages."""
    if not gangs:
        return np.zeros((1, demand.shape[1]), dtype=np.int64)
    if unit:
        return np.ones((len(columns.job_submit), 1), dtype=np.int64)
    return np.maximum.reduceat(demand, columns.job_stage0[:-1], axis=0)


def weighted_work(columns: Columns, plan: Plan) -> F8:
    """Return the initial remaining work of each job, weighted by stage: (J,)."""
    stage_work, expected_s = columns.stage_work, plan.stages["expected_s"]
    if not np.isnan(expected_s).all():
        stage_work = np.diff(columns.stage_task0) * expected_s
    weighted = stage_work * plan.stages["weight"]
    for name, column in (("weight", plan.stages["weight"]), ("expected_s", stage_work)):
        if not np.isfinite(column).all():
            raise PolicyError(f"stage column {name!r} must be finite, for all stages or for none")
    return np.add.reduceat(weighted, columns.job_stage0[:-1])


def has_remote_penalty(columns: Columns, n_machines: int) -> bool:
    """Tell whether any task takes longer on a machine without its input."""
    slower = (columns.stage_home >= 0) & (columns.stage_remote_factor > 1)
    return n_machines > 1 and bool(slower.any())


def o2o_bits(columns: Columns, restarts: bool) -> I1:
    """Return bit 0 if ready tasks are a heap, bit 1 if the stage has one-to-one children: (G,)."""
    bits = ((columns.stage_n_o2o > 0) | restarts).astype(np.int8)
    bits[columns.job_width_min[columns.stage_job] > 0] = 0  # they all are ready, or none
    parents = np.repeat(np.arange(len(bits)), np.diff(columns.edge0))
    bits[parents[columns.edge_kind == 1]] |= 2
    return bits


def missing_parent_tasks(columns: Columns, n_tasks: int, heaps: bool) -> I4:
    """Count the one-to-one parents' tasks that each task waits for: (T,); (1,) without heaps."""
    if not heaps:
        return np.zeros(1, dtype=np.int32)
    is_one_to_one = columns.edge_kind == 1
    parent = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.edge0))[is_one_to_one]
    child = columns.edge_child[is_one_to_one]
    sizes = np.diff(columns.stage_task0)
    pairs = np.minimum(sizes[parent], sizes[child])
    first = np.repeat(columns.stage_task0[child], pairs)
    within = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return np.bincount(first + within, minlength=n_tasks).astype(np.int32)


def stage_lags(columns: Columns, cluster: Cluster) -> F8:
    """Return the lag of each stage behind its parents, s; an empty array where none lags."""
    lag_s = columns.stage_lag + cluster.stage_lag_s
    return frozen(lag_s if lag_s.any() else lag_s[:0].copy())


def input_fields(columns: Columns, reads_inputs: bool, releases: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of jobs that wait for others, of one entry each where none does."""
    n = len(columns.job_submit) if reads_inputs else 1
    first, reader, kind, delay_s = columns.releases.edges
    if not releases:  # hard edges alone
        first, reader, kind, delay_s = columns.input0, columns.input_reader, kind[:0], delay_s[:0]
    if not reads_inputs:
        first, reader = np.zeros(1, dtype=np.int64), reader[:0]
    is_hard = kind == HARD if releases else np.ones(len(reader), bool)
    return {
        "w_job_input_mode": columns.job_input_mode[:n],
        "w_job_poll_lag": columns.job_poll_lag[:n],
        "w_input0": first,
        "w_input_reader": reader,
        "w_input_kind": kind,
        "w_input_delay": delay_s,
        "state_job_missing": np.bincount(reader[is_hard], minlength=n).astype(np.int32),
        **_release_fields(columns.releases, releases),
    }


def _release_fields(releases: Releases, present: bool) -> dict[str, NDArray[Any]]:
    group, group0, group_job = releases.namesakes
    needed, n = releases.n_needed
    jobs: dict[str, NDArray[Any]] = {
        "w_job_begin": releases.begin_s,
        "w_job_needs_any": releases.needs_any,
        "w_job_singleton": releases.is_singleton.astype(np.int8),
        "w_job_name": group,
        "state_job_unmet": needed,
        "state_job_possible": n,
    }
    return {name: column.copy() if present else column[:1] for name, column in jobs.items()} | {
        "w_name_job0": group0,
        "w_name_job": group_job,
        "state_name_first": group0[:-1].copy(),
        "state_name_running": np.zeros(len(group0) - 1, np.int32),
    }


def preemption_fields(
    columns: Columns, plan: Plan, features: Collection[str]
) -> dict[str, NDArray[Any]]:
    """Return the fields of jobs that may preempt others, and of their checkpoints."""
    n_saving = None if "CHECKPOINTS" in features else 1
    grace_s = 0.0 if plan.preemption is None else plan.preemption.grace_s
    return {
        "p_grace": np.array([grace_s]),
        "w_job_preempts": columns.job_preempts.view(np.int8)[
            : None if "PREEMPTS" in features else 1
        ],
        "w_job_checkpoint": columns.job_checkpoint[:n_saving],
        "w_job_restart": columns.job_restart[:n_saving],
    }


def job_limits(columns: Columns, enforces: bool, is_needed: bool) -> F8:
    """Return the limit of run time at which each job is ended, (J,) s; inf for none.

    (1,) if the run does not need them.
    """
    if not enforces:
        return np.full(len(columns.job_submit) if is_needed else 1, np.inf)
    limit: F8 = np.where(np.isnan(columns.job_requested), np.inf, columns.job_requested)
    return limit
