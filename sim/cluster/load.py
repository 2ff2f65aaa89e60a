"""Offered load of a workload on a cluster, and the cluster size or arrivals for a target load.

The offered load of a resource is the share of it that would be in use, from the first submission
to the last, on a cluster that never leaves room free while something waits (a fluid: tasks split
arbitrarily, on one large machine, at speed 1). Work that such a cluster has not done by the last
submission is a tail, and does not count. With A(t) the work that could be done by t if there were
room for everything (`sim.workload.inflow`), a cluster of C has done by the end T the least over t
of A(t) + C (T - t): it was last without anything waiting at some t, and has been full since.

A cluster that is full throughout has a share in use of 1 however small it is, so that beyond
`MAX_STEADY_LOAD` the load is in proportion: the arriving work over the work that a cluster at that
load does meanwhile, and half as large a cluster has twice the load. And half of the work that could
be done in time always counts, however late it comes. See docs/decisions/0012-offered-load.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.workload import transform
from sim.workload.inflow import Inflow
from sim.workload.tables import values
from sim.workload.transform import Capacity
from sim.workload.workload import Workload

MAX_STEADY_LOAD = 0.9
"""Highest load that equals the share in use."""

MIN_SHARE = 0.5
"""Part of the work that could be done in time that always counts."""


CLUSTER_COLUMNS = ("n_machines", "offered_load", "arrival_scale")
"""Columns of a cell about its cluster: number of machines (slots, of a pool), load of its
bottleneck, and the factor by which arrivals were stretched."""

MAX_TRIES, TOLERANCE, MAX_FACTOR = 100, 1e-6, 1e9
"""Fixed-point iteration of a stretch of arrivals: steps, relative tolerance, largest factor."""


def offered_load(inflow: Inflow, cluster: Capacity) -> dict[str, float]:
    """Return the offered load of each of the cluster's resources.

    Raises
    ------
    InputError
        If the workload demands a resource that the cluster lacks.
    """
    work = _work(inflow, cluster)
    loads = {name: _load(inflow.time_s, work[name], total) for name, total in _totals(cluster)}
    return {name: float(load) for name, load in loads.items()}


def count_for_load(inflow: Inflow, single: Capacity, load: float) -> float:
    """Return the number of units of `single` (a slot, a machine) with `load` at the bottleneck.

    Raises
    ------
    InputError
        As `offered_load`.
    """
    work = _work(inflow, single)
    return max(
        _capacity(inflow.time_s, work[name], load) / total for name, total in _totals(single)
    )


def amounts_for_load(inflow: Inflow, load: float) -> dict[str, float]:
    """Return the amount of each resource, and of slots, that would have this load.

    Resources that no task demands are left out.
    """
    amounts = zip(inflow.resources, inflow.work, strict=True)
    return {name: _capacity(inflow.time_s, work, load) for name, work in amounts if work[-1] > 0}


def stretch_to_load(workload: Workload, load: float, cluster: Capacity) -> tuple[Workload, float]:
    """Stretch arrivals until a cluster's bottleneck has the load; return the factor, too.

    Downloads move along, the history stays as it is (`sim.workload.transform.stretch`).

    Raises
    ------
    InputError
        If all jobs come at one instant, there is no work, or no stretch gives the load.
    """
    factor, stretched = 1.0, workload
    submit = values(workload.jobs, "submit_s")
    if submit[0] == submit[-1]:
        raise InputError(
            "all jobs are submitted at one instant, so no stretch of arrivals gives a load; "
            "set cluster.load=null",
            rule="wrong load",
        )
    for _ in range(MAX_TRIES):
        current = max(offered_load(stretched.inflow, cluster).values())
        if current == 0:
            break
        if abs(current / load - 1.0) < TOLERANCE:
            return stretched, factor
        factor *= current / load
        if not MAX_FACTOR > factor > 1 / MAX_FACTOR:
            break
        stretched = transform.stretch(workload, factor)
    raise InputError(
        f"no stretch of arrivals brings the offered load to {load:g}: jobs last too long compared "
        "with the time between them, or there is no work; set cluster.load=null, or another "
        "cluster.count",
        rule="wrong load",
    )


def _capacity(time: F8, work: F8, load: float) -> float:
    """Return the amount of a resource with this load."""
    steady, end = min(load, MAX_STEADY_LOAD), time[-1]
    after = time - (1.0 - steady) * end
    is_after = after > 1e-9 * end
    fluid = (work[is_after] / after[is_after]).min()
    return float(max(fluid, MIN_SHARE * work[-1] / (steady * end)) * steady / load)


def _load(time: F8, work: F8, capacity: float) -> float:
    """Return the load of this amount of a resource."""
    end, steady_capacity = time[-1], _capacity(time, work, MAX_STEADY_LOAD)
    if capacity < steady_capacity:
        return MAX_STEADY_LOAD * steady_capacity / capacity
    done = (work + capacity * (end - time)).min()
    return float(max(done, MIN_SHARE * work[-1]) / (capacity * end))


def _totals(cluster: Capacity) -> list[tuple[str, float]]:
    return list(zip(cluster.resources, cluster.total.tolist(), strict=True))


def _work(inflow: Inflow, cluster: Capacity) -> Mapping[str, F8]:
    """Return the cumulative work of each of the cluster's resources over time."""
    if cluster.unit:
        return {cluster.resources[0]: inflow.work[-1]}
    work_by_resource = dict(zip(inflow.resources[:-1], inflow.work[:-1], strict=True))
    transform.check_resources(
        "the workload", {name: work[-1] for name, work in work_by_resource.items()}, cluster
    )
    no_work = np.zeros_like(inflow.time_s)
    return {name: work_by_resource.get(name, no_work) for name in cluster.resources}
