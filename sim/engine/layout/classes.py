"""Pools of machines on which the same stages can run, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.cluster.components import Components
from sim.engine.layout.choice import allowed_classes, stage_kinds
from sim.engine.layout.columns import gang_slots
from sim.engine.layout.windows import reserved_sets
from sim.engine.plan import Fit, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

MAX_POOLS = 63
"""Pools are bits of an int64."""


def machine_pools(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    demand: I8,
    capacity: I8,
    components: Components | None,
    fit: Fit,
) -> tuple[I8, I8, I8]:
    """Return pools as bits: where stages can run, (G,); of machines, (M,); of gangs' slots, (J,).

    `demand` and `capacity` have the resources that decide what fits. A task can run, and a slot can
    be, where an empty machine has room for it, and is of its class and partitions; by these alone,
    if sizes make more pools than an int64 has bits. All is one pool on equal machines, of which the
    last may be smaller, and with other fits than Fit.STRICT. Machines of a pool have the same
    reservations, and are of one class where the policy selects classes.
    """
    n_jobs, n_stages = len(columns.job_submit), len(columns.stage_job)
    is_strict = fit in (Fit.STRICT, Fit.PER_CLASS) and not cluster.unit
    by_shape = len(cluster.machine_class) > 0
    if is_strict and not by_shape and len(cluster.reservations):
        return _reserved_pools(cluster, n_stages, n_jobs)
    if not is_strict or not by_shape:
        all_pools = np.ones(max(n_stages, len(capacity), n_jobs), np.int64)
        return all_pools[:n_stages], all_pools[: len(capacity)], all_pools[:n_jobs]
    shape, shape_of = np.unique(
        np.column_stack([capacity, reserved_sets(cluster), cluster.machine_class]),
        axis=0,
        return_inverse=True,
    )
    allowed = allowed_classes(columns, cluster)
    kind, n_kinds = stage_kinds(columns, cluster, demand)
    example = np.zeros(n_kinds, np.int64)
    example[kind] = np.arange(n_stages)
    needs = np.column_stack([demand, allowed])[example]
    job, slots = _slots(columns, demand, allowed, components)
    need, need_of = np.unique(np.concatenate([needs, slots]), axis=0, return_inverse=True)
    in_class = (np.left_shift(1, shape[:, -1]) & need[:, -1, None]) > 0
    runs = in_class.copy()
    for r in range(demand.shape[1]):
        runs &= need[:, r, None] <= shape[:, r]
    reserved = shape[:, -2]
    if plan.selects_classes:
        reserved = np.unique(shape[:, -2:], axis=0, return_inverse=True)[1].ravel()
    distinct, pool_of = np.unique(np.vstack([runs, reserved]), axis=1, return_inverse=True)
    if distinct.shape[1] > MAX_POOLS:
        distinct, pool_of = np.unique(np.vstack([in_class, reserved]), axis=1, return_inverse=True)
    _check_number(distinct.shape[1])
    distinct = distinct[:-1] > 0
    bits = np.left_shift(1, np.arange(distinct.shape[1], dtype=np.int64))
    pools = (distinct * bits).sum(axis=1)[need_of.ravel()]
    job_pools = np.where(columns.job_min_tasks > 0, np.int64(0), np.int64(-1))
    np.bitwise_or.at(job_pools, job, pools[n_kinds:])
    return pools[kind], bits[pool_of.ravel()[shape_of.ravel()]], job_pools


def _slots(
    columns: Columns, demand: I8, allowed: I8, components: Components | None
) -> tuple[I8, I8]:
    """Return the job of each kind of slots of gangs, and what it takes, with its classes."""
    slot = np.column_stack([
        gang_slots(columns, demand, unit=False, gangs=True),
        np.bitwise_and.reduceat(allowed, columns.job_stage0[:-1]),
    ])  # fmt: skip
    is_equal = columns.job_min_tasks > 0
    if components is None:
        return np.flatnonzero(is_equal), slot[is_equal]
    is_equal &= ~components.is_heterogeneous
    own = np.column_stack([demand, allowed])[components.stage]
    job = np.repeat(np.arange(len(is_equal)), np.diff(components.job0))
    return np.concatenate([np.flatnonzero(is_equal), job]), np.concatenate([slot[is_equal], own])


def _reserved_pools(cluster: Cluster, n_stages: int, n_jobs: int) -> tuple[I8, I8, I8]:
    """Return pools as `machine_pools` does where they differ by reservations alone."""
    sets = reserved_sets(cluster)
    n_pools = int(sets.max()) + 1
    _check_number(n_pools)
    every = np.int64(2**n_pools - 1)
    return np.full(n_stages, every), np.left_shift(1, sets), np.full(n_jobs, every)


def _check_number(n_pools: int) -> None:
    if n_pools > MAX_POOLS:
        raise InputError(
            f"reservations and classes of machines make {n_pools} sets of machines, at most "
            f"{MAX_POOLS} in strict order; reserve the same machines together, or set policy.fit "
            "to skip",
            rule="too many sets of machines",
        )
