"""Checks before a run that each job can start under the cluster's caps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.cluster.allowed import unadmitted_jobs
from sim.cluster.cap_groups import MAX_CAP, Groups, amounts, cap_groups
from sim.cluster.caps import MINUTES, SUBMITTED, Cap

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns
    from sim.workload.workload import Workload


def check_caps(
    workload: Workload,
    cluster: Cluster,
    needs: I8,
    quantum: F8,
    resources: tuple[str, ...],
) -> None:
    """Refuse caps under which some job never starts, or that can't be counted.

    `needs` of each job at once, (J, R) in quanta of `resources`.
    """
    columns = workload.columns
    groups = cap_groups(columns, cluster)
    if not groups:
        return
    jobs = groups.jobs()
    is_rejected = unadmitted_jobs(columns, cluster)[jobs]
    for i, row in enumerate(groups.caps):
        is_of_row = (groups.cap[groups.group] == i) & ~is_rejected
        is_of_row &= ~groups.is_spared
        job, number = jobs[is_of_row], groups.lasting[groups.group[is_of_row]]
        need = np.ones(len(job))
        if row.resource in resources:
            r = resources.index(row.resource)
            need = needs[job, r] * quantum[r]
        elif row.resource is not None:
            need = np.zeros(len(job))
        else:
            need = amounts(columns, row)[job].astype(np.float64)
        if row.counted.endswith(MINUTES):
            _check_limits(workload, row, job)
            need = need * np.ceil(columns.job_requested[job]) / 60
            _check_sum(columns, cluster, row, job, dict(zip(resources, quantum, strict=True)))
        over = need > number * (1 + 1e-9)
        if row.counted != SUBMITTED and over.any():
            _refuse(workload, row, int(job[np.argmax(over)]), float(need[over][0]), groups, i)


def _refuse(workload: Workload, row: Cap, job: int, need: float, groups: Groups, i: int) -> None:
    own = groups.group[groups.job_group0[job] : groups.job_group0[job + 1]]
    group = min((int(g) for g in own if groups.cap[g] == i), key=lambda g: groups.lasting[g])
    lasting = f"is {groups.lasting[group]:g}" + " after its last change" * bool(row.changes)
    key = "/".join(groups.key[group]) or "all jobs"
    name = workload.jobs["job_id"][job].as_py()
    raise InputError(
        f"{row.name}: job {name!r} (row {job}) needs {need:g} {row.counted} to start, and the cap "
        f"of {key} {lasting}, so that it would wait for ever; raise the cap, or "
        "drop the job",
        rule="larger than its cap",
    )


def _check_limits(workload: Workload, row: Cap, job: I8) -> None:
    """Refuse jobs without a limit, which may use any number of minutes."""
    has_none = ~np.isfinite(workload.columns.job_requested[job])
    if has_none.any():
        first = int(job[np.argmax(has_none)])
        raise InputError(
            f"{row.name} counts the minutes left to the limits of jobs, and job "
            f"{workload.jobs['job_id'][first].as_py()!r} (row {first}) has none; give all jobs a "
            "limit (requested_s)",
            rule="cap of minutes without limits",
        )


def _check_sum(
    columns: Columns, cluster: Cluster, row: Cap, job: I8, quantum: Mapping[str, float]
) -> None:
    """Refuse amounts × times whose sum exceeds what a counter holds."""
    r = cluster.resources.index(str(row.resource))
    quanta = float(cluster.total[r]) / quantum.get(str(row.resource), 1.0)
    longest_s = float(columns.job_requested[job].max(initial=0))
    if quanta * longest_s > MAX_CAP:
        raise InputError(
            f"{row.name}: {cluster.total[r]:g} {row.resource} in quanta of "
            f"{quantum.get(str(row.resource), 1.0):g}, for up to {longest_s:g} s, are more than a "
            "counter holds; state a coarser quantum of the resource in the workload",
            rule="cap of minutes too fine",
        )
