"""The clock of a run: 0 is near the first submission, from which times of the cluster count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sim.cluster.cluster import Cluster
from sim.engine.batches import TaskRecords
from sim.engine.record import Run
from sim.workload.workload import Workload


def on_own_clock(workload: Workload, cluster: Cluster) -> tuple[Workload, Cluster]:
    """Return both on the clock of their run, which begins at `Workload.origin_s`.

    The times of the cluster's outages, slow periods and reservations, counted from the first
    submission, count from there.
    """
    own = workload.on_own_clock
    first_s = float(own.columns.job_submit[0]) if own.n_jobs else 0.0
    return own, cluster.delayed(first_s)


def run_on_own_clock(
    run: Callable[..., Run], workload: Workload, cluster: Cluster, *args: Any, **options: Any
) -> dict[str, Any]:
    """Run on that clock; return the fields of the run, with the workload's times.

    ``own`` is the run on its own clock, whose differences between times have all their bits; None
    if that is the workload's.
    """
    own_workload, own_cluster = on_own_clock(workload, cluster)
    own = run(own_workload, own_cluster, *args, **options)
    fields = dict(vars(own))
    if own_workload is workload and own_cluster is cluster:
        return fields
    fields |= {"workload": workload, "cluster": cluster, "own": own}
    return fields | (_later(own, workload) if workload.origin_s else {})


def _later(run: Run, workload: Workload) -> dict[str, Any]:
    """Return the times of a run, counted as the workload's."""
    by_s, stopped = workload.origin_s, run.stopped
    if stopped is not None:
        start_s, stop_s = stopped.start_s + by_s, stopped.stop_s + by_s
        stopped = replace(stopped, start_s=start_s, stop_s=stop_s)
    return {
        "job_submit": run.job_submit + by_s,
        "job_eligible": None if run.job_eligible is None else run.job_eligible + by_s,
        "job_start": run.job_start + by_s,
        "job_finish": run.job_finish + by_s,
        "records": None if run.records is None else _later_records(run.records, workload),
        "stopped": stopped,
        "task_placed": None if run.task_placed is None else run.task_placed + by_s,
        "limits_set": [(time_s + by_s, *rest) for time_s, *rest in run.limits_set],
    }


def _later_records(records: TaskRecords, workload: Workload) -> TaskRecords:
    start_s, end_s = (times + workload.origin_s for times in (records.start_s, records.finish_s))
    columns = None if records.columns is None else workload.columns
    return replace(records, start_s=start_s, end_s=end_s, columns=columns)
