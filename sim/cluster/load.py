"""How loaded a cluster is by a workload while jobs arrive, and how large one of a wished load is.

The offered load of a resource is the share of it that would be in use, from the first submission
to the last, on a cluster that never leaves room free while something waits (a fluid: tasks cut as
finely as one likes, on one large machine). What such a cluster has not done by the last submission
is a tail, and does not count. With A(t) the work that could be done by t if there were room for
everything (`sim.workload.inflow`), a cluster of C has done by the end T the least over t of
A(t) + C (T - t): it was last without anything waiting at some t, and has been full since.

A cluster that is full all along has a share in use of 1 however small it is, so that beyond
`STEADY` the load is in proportion: what arrives is what a cluster at that load does meanwhile, and
half as large a cluster has twice the load. And half of what could be done in time always counts,
however late it comes. See docs/decisions/0012-offered-load.md.
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

STEADY = 0.9
"""The highest load at which what is in use says how much arrives."""

AT_LEAST = 0.5
"""The part of the work that could be done in time which counts whatever comes of it."""


FACTS = ("n_machines", "offered_load", "arrival_scale")
"""What is said of the cluster of a cell: how many machines (slots, of a pool), the load of its
bottleneck, and how many times as far apart as in the trace jobs come."""

MOST_TRIES, NEAR, EXTREME = 100, 1e-6, 1e9
"""Of a stretch of arrivals: how often it is mended, how near it must come, how far it may go."""


def offered_load(inflow: Inflow, cluster: Capacity) -> dict[str, float]:
    """Return the offered load of each of the cluster's resources.

    Raises
    ------
    InputError
        If the workload demands what the cluster has none of.
    """
    work = _work(inflow, cluster)
    of = {name: _load(inflow.time_s, work[name], each) for name, each in _totals(cluster)}
    return {name: float(load) for name, load in of.items()}


def count_for_load(inflow: Inflow, single: Capacity, load: float) -> float:
    """Return how many times `single` (a slot, a machine) has `load` at its bottleneck.

    Raises
    ------
    InputError
        As `offered_load`.
    """
    work = _work(inflow, single)
    return max(_capacity(inflow.time_s, work[name], load) / each for name, each in _totals(single))


def stretch_to_load(workload: Workload, load: float, cluster: Capacity) -> tuple[Workload, float]:
    """Stretch arrivals until a cluster's bottleneck has the load; return by what, too.

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
            "leave cluster.load out",
            rule="wrong load",
        )
    for _ in range(MOST_TRIES):
        now = max(offered_load(stretched.inflow, cluster).values())
        if now == 0:
            break
        if abs(now / load - 1.0) < NEAR:
            return stretched, factor
        factor *= now / load
        if not EXTREME > factor > 1 / EXTREME:
            break
        stretched = transform.stretch(workload, factor)
    raise InputError(
        f"no stretch of arrivals brings the offered load to {load:g}: jobs last too long beside "
        "the time between them, or there is no work; leave cluster.load out, or take another "
        "cluster.count",
        rule="wrong load",
    )


def _capacity(time: F8, work: F8, load: float) -> float:
    """Return how much of a resource has this load."""
    steady, end = min(load, STEADY), time[-1]
    after = time - (1.0 - steady) * end
    some = after > 1e-9 * end
    fluid = (work[some] / after[some]).min()
    return float(max(fluid, AT_LEAST * work[-1] / (steady * end)) * steady / load)


def _load(time: F8, work: F8, capacity: float) -> float:
    """Return the load of so much of a resource."""
    end, most = time[-1], _capacity(time, work, STEADY)
    if capacity < most:
        return STEADY * most / capacity
    done = (work + capacity * (end - time)).min()
    return float(max(done, AT_LEAST * work[-1]) / (capacity * end))


def _totals(cluster: Capacity) -> list[tuple[str, float]]:
    return list(zip(cluster.resources, cluster.total.tolist(), strict=True))


def _work(inflow: Inflow, cluster: Capacity) -> Mapping[str, F8]:
    """Return the work of each of the cluster's resources, summed up over time."""
    if cluster.unit:
        return {cluster.resources[0]: inflow.work[-1]}
    of = dict(zip(inflow.resources[:-1], inflow.work[:-1], strict=True))
    transform.check_resources(
        "the workload", {name: work[-1] for name, work in of.items()}, cluster
    )
    nothing = np.zeros_like(inflow.time_s)
    return {name: of.get(name, nothing) for name in cluster.resources}
