"""Jobs of a site that run and wait now, beside those that ended, and nodes that are closed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sim.base.arrays import Mask
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits
from sim.traces.sites.notes import Notes
from sim.transforms.parts import rebuild
from sim.workload.schema import NOW, RECORDED
from sim.workload.tables import column_or_default, with_column
from sim.workload.workload import Workload

NO_LIMIT_S = 86_400.0
"""Run time that stands in for an unknown one, s; every draw replaces it."""
CLOSED_S = 30 * 86_400.0
"""Time for which a node stays closed that is closed now, s."""


def with_open_jobs(workload: Workload, waits: Mask, runs: Mask, now_s: float) -> Workload:
    """Return the workload without the starts and ends that stood in for unknown ones.

    Parameters
    ----------
    waits, runs : (J,) bool
        Jobs that have no start yet, and those that have one, and no end.
    now_s : float
        When its queue was written, s after the first submission.
    """
    job_of_stage = workload.columns.stage_job
    tables = {"jobs": workload.jobs, "stages": workload.stages}
    for column, is_open in zip(RECORDED, (waits, waits | runs), strict=True):
        for name, flags in (("jobs", is_open), ("stages", is_open[job_of_stage])):
            known = np.where(flags, np.nan, column_or_default(tables[name], column))
            tables[name] = with_column(tables[name], column.name, known)
    return rebuild(workload, None, **tables).with_meta({NOW: now_s})


def startable(
    workload: Workload, config: Mapping[str, Any], notes: Notes, source: str
) -> Workload | None:
    """Return the workload without the waiting jobs that could never start, which are noted.

    None if no job is left.

    :param config: Options of the cluster.
    :param source: Where notes say that the jobs are from.
    """
    cluster = Cluster.mixed(config["shape"]).with_partitions(config.get("partitions") or {})
    cluster = cluster.with_limits(config.get("limits") or (), config.get("accounts"))
    cluster = cluster.with_reservations(config.get("reservations") or ())
    if config.get("quotas"):
        cluster = cluster.with_quotas(config["quotas"])
    if config.get("topology"):
        cluster = cluster.with_topology(config["topology"])
    if _obstacle(workload, cluster) is None:
        return workload
    starts = np.ones(workload.n_jobs, bool)
    waiting = np.isnan(column_or_default(workload.jobs, RECORDED[0]))
    for row in np.flatnonzero(waiting).tolist():
        obstacle = _obstacle(workload.take([row]), cluster)
        if obstacle is not None:
            starts[row] = False
            name = workload.jobs["job_id"][row].as_py()
            notes.add(source, f"job {name} can never start", obstacle)
    return workload.take(starts) if starts.any() else None


def _obstacle(workload: Workload, cluster: Cluster) -> str | None:
    """Return why a job of a workload can never start; None if each can."""
    try:
        check_fits(workload, cluster)
    except InputError as error:
        return error.message
    return None


def close(cluster: dict[str, Any], machines: Iterable[int], now_s: float) -> None:
    """Let machines that are closed now stay so for a month, if no outage says how long."""
    rows = [*cluster.get("outages", ())]
    known = {row["machine"] for row in rows if row.get("until_s", np.inf) > now_s}
    for i in machines:
        if i not in known:
            rows.append({"machine": i, "from_s": now_s, "until_s": now_s + CLOSED_S})
            rows[-1] |= {"drain": True, "known": True}
    if rows:
        cluster["outages"] = rows
