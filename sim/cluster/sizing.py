"""Sizing of a cluster for a workload; demands and queue shares of a workload on a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.parameters import Positive, checked
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits
from sim.cluster.load import count_for_load
from sim.cluster.requests import requested
from sim.workload.columns import Columns
from sim.workload.tables import values
from sim.workload.workload import Workload


@checked
def full_count(workload: Workload, shape: Any, load: Positive, *, tails: bool = False) -> float:
    """Return the number of slots or machines for a target load, before slots are rounded.

    As many as bring the offered load of the bottleneck resource (`sim.cluster.load`) to `load`, and
    no fewer than the largest gang needs. With `tails` all work counts, also the work that can't be
    done before the last submission (`Workload.mean_load`).
    """
    unit = unit_cluster(shape)
    if tails:
        at_load = max(workload.mean_load(unit).values()) / load
    else:
        at_load = count_for_load(workload.inflow, unit, load)
    full = max(at_load, _count_for_gangs(workload, unit))
    check_fits(workload, scale_cluster(unit, full))
    return full


def stage_demands(columns: Columns, cluster: Cluster) -> F8:
    """Return the demand of a task of each stage for each of the cluster's resources, (G, R)."""
    n_stages = len(columns.stage_job)
    if cluster.unit:
        return np.ones((n_stages, 1))
    demand = np.zeros((n_stages, len(cluster.resources)))
    for i, name in enumerate(columns.resources):
        demanded = columns.stage_demand[:, i]
        if name in cluster.resources:
            demand[:, cluster.resources.index(name)] = demanded * columns.quantum[i]
        elif demanded.any():
            job = int(columns.stage_job[int(np.argmax(demanded > 0))])
            raise InputError(
                f"the job in row {job} demands {name!r}, of which the cluster has none; it has "
                f"{', '.join(cluster.resources)}: give its machines {name}=... too",
                rule="missing resource",
            )
    return demand


def stage_shares(columns: Columns, cluster: Cluster) -> F8:
    """Return each stage's demands per task as fractions of a machine, (G, R)."""
    demands, whole = stage_demands(columns, cluster), machine_capacity(cluster)
    shares: F8 = demands / np.where(whole > 0, whole, 1.0)
    return shares


def machine_capacity(cluster: Cluster) -> F8:
    """Return the capacity of a machine, or of one slot of a pool, (R,).

    Of machines that are not alike it is the greatest of each resource: the first may lack some.
    """
    capacity: F8 = cluster.capacity.max(axis=0) if not cluster.unit else np.ones(1)
    return capacity


def queue_shares(columns: Columns, cluster: Cluster) -> F8:
    """Return the share of the cluster of each of the workload's queues."""
    names = columns.queue_names
    if cluster.queue_mode == "global" or not cluster.queue_share:
        return np.full(len(names), 1 / max(1, len(names)))
    used = np.bincount(columns.job_queue, minlength=len(names)) > 0
    for name, has_jobs in zip(names, used, strict=True):
        if has_jobs and name not in cluster.queue_share:
            raise InputError(
                f"queue {name!r} has jobs but no share; the cluster has shares for "
                f"{', '.join(sorted(cluster.queue_share))}",
                rule="missing share",
            )
    share = np.array([cluster.queue_share.get(name, 0.0) for name in names])
    return share if cluster.queue_mode == "hard" else share / share.sum()


def unit_cluster(shape: Any, fungible: Sequence[str] = ()) -> Cluster:
    """Build the cluster of one slot, of one machine of that shape, or of the listed machines."""
    if isinstance(shape, Sequence) and not isinstance(shape, str):
        return Cluster.mixed(shape, fungible=fungible)
    if isinstance(shape, Mapping):
        return Cluster.machines(1, fungible=fungible, **shape)
    if shape != "slots":
        raise InputError(
            f"unknown cluster shape {shape!r}; valid: 'slots', the resources of one machine, "
            "e.g. {cpu: 16, mem: 128}, or a list of kinds of machines",
            rule="unknown shape",
        )
    return Cluster.slots(1)


def scale_cluster(unit: Cluster, count: float) -> Cluster:
    """Build the cluster of `count` times the slot or machines of `unit`; slots are rounded."""
    if len(unit.machine_class):
        return unit.fraction(count)
    if unit.unit:
        whole = math.floor(count + 0.5)
        return Cluster.slots(1 if 0 < count < 1 else whole)
    shape = dict(zip(unit.resources, unit.capacity[0], strict=True))
    return Cluster.machines(count, fungible=unit.fungible, **shape)


def _count_for_gangs(workload: Workload, unit: Cluster) -> int:
    """Count the slots or machines with room for each gang; a slot fits any stage of its job."""
    gang = values(workload.jobs, "min_tasks").astype(np.int64)
    if not gang.any():
        return 1
    if unit.unit:
        return int(gang.max())
    demand = stage_demands(requested(workload, unit).columns, unit)
    slot = np.maximum.reduceat(demand, workload.columns.job_stage0[:-1], axis=0)
    with np.errstate(divide="ignore"):
        on_one = np.floor(unit.total / slot * (1 + 1e-12)).min(axis=1)
    # if no slot fits a machine, no number of machines helps; the check that follows reports it
    return int(np.ceil(gang / np.maximum(on_one, 1)).max())
