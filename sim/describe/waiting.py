"""Capacities at which tasks wait: how much is in use when they come, if nothing waits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim.describe.dataset import Dataset
from sim.workload.columns import stage_demand, stage_work_s
from sim.workload.inflow import SLOT
from sim.workload.peaks import in_use_at_starts
from sim.workload.tables import values

SHARES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0)
"""Shares of tasks that would wait, of the points of a curve."""


def waiting(data: Dataset) -> pa.Table:
    """Return a row a resource and share: from which capacity on no more than that share waits.

    Columns ``resource``, ``share`` (of the tasks), ``capacity`` (amount of the resource) and
    ``mean`` (its use on average while jobs arrive, below which a queue only grows). A task would
    wait where more than the capacity is in use just after it has started, if none waited: an
    estimate, as those that wait shift those that follow, and as machines leave room unused.
    """
    workload = data.workload
    assert workload is not None
    start_s, finish_s = data.spans_s
    n_tasks = values(workload.stages, "n_tasks").astype(np.float64)
    _, demand, _ = stage_demand(workload)
    submit_s = values(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    work_s = stage_work_s(workload)
    per_task = {name: demand[:, r] for r, name in enumerate(workload.resources)}
    per_task[SLOT] = np.ones(workload.n_stages)
    rows = []
    order = np.argsort(np.concatenate([finish_s, start_s]), kind="stable")
    stage = order[order >= len(start_s)] - len(start_s)
    for name, amount in per_task.items():
        in_use = in_use_at_starts(start_s, finish_s, amount * n_tasks)
        by_use = np.argsort(in_use, kind="stable")
        weight = (n_tasks * (amount > 0))[stage][by_use].cumsum()
        if not weight[-1]:
            continue
        for share in SHARES:
            k = min(int(np.searchsorted(weight, (1 - share) * weight[-1])), len(weight) - 1)
            rows.append(
                {
                    "resource": name,
                    "share": share,
                    "capacity": float(in_use[by_use][k]),
                    "mean": float((work_s * amount).sum()) / span_s if span_s else np.nan,
                }
            )
    return pa.Table.from_pylist(rows)
