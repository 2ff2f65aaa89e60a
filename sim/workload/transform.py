"""Transformations of workloads: selection of jobs, a time window, another load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from sim.base import maths
from sim.base.arrays import F8, I4, I8, ranges
from sim.base.errors import InputError
from sim.workload.columns import job_stage0, stage_request, stage_work_s
from sim.workload.history import calendar
from sim.workload.record import Tables
from sim.workload.recorded import drop_recorded, shift_recorded
from sim.workload.releases import shift_begins
from sim.workload.runs import Runs
from sim.workload.tables import sort_rows, take_rows, values, with_column

W = TypeVar("W", bound=Tables)


class Capacity(Protocol):
    """Capacity that a load is relative to: a `sim.Cluster`."""

    @property
    def resources(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unit(self) -> bool: ...  # noqa: D102
    @property
    def total(self) -> F8: ...  # noqa: D102


def take(workload: W, job_rows: ArrayLike) -> W:
    """Return the workload of the selected jobs, in the same order and at the same times."""
    rows = _checked_rows(job_rows, workload.n_jobs)
    if len(rows) == workload.n_jobs:
        return workload
    stage0 = job_stage0(workload)
    stages = ranges(stage0[rows], stage0[rows + 1])
    new_job = _renumber(rows, workload.n_jobs)
    new_stage = _renumber(stages, workload.n_stages)
    tasks, durations = take_tasks(workload, stages)
    tables = {
        "jobs": take_rows(workload.jobs, rows),
        "stages": _relabel(take_rows(workload.stages, stages), new_job, "job"),
        "stage_edges": _filter(workload.stage_edges, new_stage, "parent", "child"),
        "job_edges": _filter(workload.job_edges, new_job, "upstream", "downstream"),
        "downloads": _filter(workload.downloads, new_job, "job"),
        "history": workload.history,
        "training": workload.training,
        "failures": _filter_failures(workload, stages),
    }
    if tasks is not None:
        tables["tasks"] = tasks
    return type(workload)(tables, durations, workload.meta)


def take_tasks(workload: Tables, stages: I8) -> tuple[pa.Table | None, Runs | None]:
    """Return the tasks of the stages, renumbered from 0: their table, or else their runs."""
    if workload.in_runs:
        return None, workload.runs.take(stages)
    task0 = workload.stage_task0
    tasks = take_rows(workload.tasks, ranges(task0[stages], task0[stages + 1]))
    stage = np.repeat(np.arange(len(stages), dtype=np.int32), np.diff(task0)[stages])
    return with_column(tasks, "stage", stage), None


def slice_time(workload: W, begin_s: float, end_s: float) -> W:
    """Return the jobs submitted in [begin, end), times shifted so that begin becomes 0."""
    if not (np.isfinite(begin_s) and begin_s < end_s):
        raise InputError(
            f"a slice needs a finite begin before its end, not [{begin_s!r}, {end_s!r})",
            rule="empty slice",
        )
    submit = values(workload.jobs, "submit_s")
    first, last = np.searchsorted(submit, [begin_s, end_s], side="left")
    if first == last:
        raise InputError(
            f"no job is submitted in [{begin_s:g}, {end_s:g}) s; the workload's are submitted from "
            f"{submit[0]:g} to {submit[-1]:g} s",
            rule="empty slice",
        )
    return counted_from(take(workload, np.arange(first, last)), begin_s)


def counted_from(workload: W, zero_s: float) -> W:
    """Return the same jobs at times counted from `zero_s`; downloads before it come at 0."""
    history = workload.history
    for column in ("submit_s", "finish_s"):
        history = with_column(history, column, pc.subtract(history[column].chunk(0), zero_s))
    return _with_times(
        workload,
        values(workload.jobs, "submit_s") - zero_s,
        np.maximum(values(workload.downloads, "time_s") - zero_s, 0.0),
        history,
        lambda table: shift_recorded(table, zero_s),
        -zero_s,
    )


def with_calendar(workload: W) -> W:
    """Return the same workload with the day and hour of each job, and past job, as columns."""
    tables = workload.stored_tables()
    for name in ("jobs", "history"):
        for unit in ("day", "hour"):
            tables[name] = with_column(tables[name], unit, calendar(tables[name], unit))
    return type(workload)(tables, workload.stored_durations(), workload.meta)


FAR_S = 86_400.0
"""Time of the first submission from which on a run has a clock of its own: steps of 15 ps."""


def origin_s(submit_s: F8) -> float:
    """Return the time at which the clock of a run begins: a whole number of seconds, mostly 0.

    It is later only where the first submission is far from 0, as in epoch seconds, whose steps are
    longer than short tasks. The difference between a time and a whole number is exact.
    """
    first = float(submit_s[0])
    return float(np.floor(first)) if first >= FAR_S else 0.0


def mean_load(workload: Tables, cluster: Capacity, span_s: float) -> dict[str, float]:
    """Return the work submitted a second, over capacity, by resource; see `Workload.mean_load`.

    Requests count in whole quanta, as in the kernel. In a pool of slots a task takes one slot.
    """
    work = stage_work_s(workload)
    if cluster.unit:
        return {cluster.resources[0]: float(work.sum() / (span_s * cluster.total[0]))}
    request, _, quantum = stage_request(workload)
    total_work = dict(zip(workload.resources, maths.dot(work, request) * quantum, strict=True))
    check_resources("the workload", total_work, cluster)
    return {
        name: float(total_work.get(name, 0.0) / (span_s * total))
        for name, total in zip(cluster.resources, cluster.total, strict=True)
    }


def check_resources(subject: str, demand: Mapping[str, Any], cluster: Capacity) -> None:
    """Refuse a positive demand, by resource, for a resource that the cluster lacks."""
    for name, amount in demand.items():
        if np.any(np.asarray(amount) > 0) and name not in cluster.resources:
            raise InputError(
                f"{subject} demands {name}, of which the cluster has none; it has "
                f"{', '.join(cluster.resources)}: give its machines some {name}",
                rule="missing resource",
            )


def scale_load(workload: W, load: float, cluster: Capacity, span_s: float) -> W:
    """Scale arrival times to a target mean load; see `Workload.scale_load`."""
    if isinstance(load, (str, bool)) or not (np.isfinite(load) and load > 0):
        raise InputError(f"the load must be positive and finite, not {load!r}", rule="wrong load")
    submit = values(workload.jobs, "submit_s")
    current = max(mean_load(workload, cluster, span_s).values())
    if submit[-1] == submit[0] or current == 0:
        reason = "there is no work" if current == 0 else "all jobs are submitted at one instant"
        message = f"{reason}, so no scaling of arrival times gives a load of {load}"
        raise InputError(message, rule="wrong load")
    return stretch(workload, current / load)


def stretch(workload: W, factor: float) -> W:
    """Multiply the distance of jobs and downloads from the first submission by `factor`.

    A job's begin time stays as long after its submission.
    """
    submit = values(workload.jobs, "submit_s")
    first = submit[0]
    time = values(workload.downloads, "time_s")
    later = first + factor * (submit - first)
    return _with_times(
        workload,
        later,
        np.maximum(first + factor * (time - first), 0.0),
        workload.history,
        drop_recorded,
        later - submit,
    )


def _checked_rows(job_rows: ArrayLike, n_jobs: int) -> I8:
    rows = np.asarray(job_rows)
    if rows.dtype == np.bool_:
        if rows.shape != (n_jobs,):
            raise InputError(
                f"a mask of jobs needs {n_jobs} entries, not {rows.shape}", rule="row out of range"
            )
        rows = np.flatnonzero(rows)
    if rows.size == 0:
        raise InputError("no job is left; keep at least one", rule="empty workload")
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise InputError(f"rows of jobs must be whole numbers, not {rows!r}", rule="wrong type")
    rows = np.sort(rows.astype(np.int64))
    if rows[0] < 0 or rows[-1] >= n_jobs:
        bad = rows[0] if rows[0] < 0 else rows[-1]
        raise InputError(
            f"there is no row {bad} of jobs; valid: 0 to {n_jobs - 1}", rule="row out of range"
        )
    is_repeated = rows[1:] == rows[:-1]
    if is_repeated.any():
        raise InputError(
            f"row {rows[int(np.argmax(is_repeated))]} of jobs is named twice", rule="duplicate id"
        )
    return rows


def _renumber(rows: I8, n: int) -> I4:
    new = np.full(n, -1, np.int32)
    new[rows] = np.arange(len(rows), dtype=np.int32)
    return new


def _relabel(table: pa.Table, new: I4, *keys: str) -> pa.Table:
    for key in keys:
        table = with_column(table, key, new[values(table, key)])
    return table


def _filter(table: pa.Table, new: I4, *keys: str) -> pa.Table:
    keep = np.ones(table.num_rows, dtype=bool)
    for key in keys:
        keep &= new[values(table, key)] >= 0
    return _relabel(take_rows(table, np.flatnonzero(keep)), new, *keys)


def _filter_failures(workload: Tables, stages: I8) -> pa.Table:
    if workload.failures.num_rows == 0:
        return workload.failures
    task0 = workload.stage_task0
    rows = ranges(task0[stages], task0[stages + 1])
    new = _renumber(rows, workload.n_tasks)
    failures = _filter(workload.failures, new, "task")
    lost = values(failures, "lost")
    return with_column(failures, "lost", np.where(lost < 0, lost, new[lost]))


def _with_times(
    workload: W,
    submit_s: F8,
    download_s: F8,
    history: pa.Table,
    move_recorded: Callable[[pa.Table], pa.Table],
    begin_by_s: F8 | float,
) -> W:
    unchanged = ("stage_edges", "job_edges", "training", "failures")
    tables = {"history": history} | {name: getattr(workload, name) for name in unchanged}
    for name, column, time in (("jobs", "submit_s", submit_s), ("downloads", "time_s", download_s)):
        tables[name] = sort_rows(name, with_column(getattr(workload, name), column, time))
    tables["jobs"] = shift_begins(move_recorded(tables["jobs"]), begin_by_s)
    tables["stages"] = move_recorded(workload.stages)
    if not workload.in_runs:
        tables["tasks"] = move_recorded(workload.tasks)
    durations = workload.runs if workload.in_runs else None
    return type(workload)(tables, durations, workload.meta)
