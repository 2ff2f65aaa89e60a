"""Requests: what tasks hold where that is more than they need.

Users request more than their tasks use (``stages.requested_<resource>`` beside ``demand_``). A
scheduler that does not know better allocates the request: placement, shares, caps, scores and
reservations count it. So its workload is another one, whose demands are the requests; a scheduler
that refines requests has the workload itself (`sim.engine.allocation`).

A fungible resource, which tasks share and slow each other down by, is nobody's to hold: tasks
contend for it by what they use, whatever they request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from sim.base.arrays import frozen
from sim.workload.columns import replaced, stage_demand
from sim.workload.history import Features
from sim.workload.schema import DEMAND_PREFIX, REQUEST_PREFIX
from sim.workload.tables import column_or_nan, requested_resources, values, with_column

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload

_requested: WeakKeyDictionary[Workload, dict[tuple[str, ...], Workload]] = WeakKeyDictionary()


def requested(workload: Workload, cluster: Cluster) -> Workload:
    """Return the workload whose demands are its requests; itself if it tells none.

    The same object for each call.
    """
    names = tuple(r for r in requested_resources(workload.stages) if r not in cluster.fungible)
    if cluster.unit or not names:
        return workload
    by_names = _requested.setdefault(workload, {})
    if names not in by_names:
        by_names[names] = _with_requests(workload, names)
    return by_names[names]


def _with_requests(workload: Workload, names: tuple[str, ...]) -> Workload:
    stages = workload.stages
    for name in names:
        request = column_or_nan(stages, REQUEST_PREFIX + name)
        demand = values(stages, DEMAND_PREFIX + name)
        stages = with_column(stages, DEMAND_PREFIX + name, np.fmax(request, demand))
    columns = [c for c in stages.column_names if c.startswith(REQUEST_PREFIX)]
    tables = workload.stored_tables() | {"stages": stages.drop_columns(columns)}
    other = type(workload)(tables, workload.stored_durations(), workload.meta)
    quanta, demand, _ = stage_demand(other)
    features = Features(other.jobs, other.stages, other.history)
    other.__dict__["columns"] = replaced(
        workload.columns,
        stage_demand=frozen(quanta),
        stage_demand_f=frozen(demand),
        features=features,
    )
    return other
