"""Reader of a table of jobs, CSV or Parquet: for logs in none of the other formats."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8
from sim.base.errors import InputError, unknown
from sim.base.parameters import checked
from sim.base.reading import (
    BadRows,
    OnBadRow,
    count_rule,
    no_job_left,
    resolution_s,
    valid_rows,
)
from sim.traces.swf import ZERO_BECOMES_S
from sim.traces.table.columns import COLUMNS, TIMES, find_columns
from sim.traces.table.csv_rows import read_csv
from sim.traces.table.parquet_rows import is_parquet, read_parquet
from sim.workload.workload import Workload

__all__ = ["read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] = MappingProxyType({}),
    on_bad_row: OnBadRow = "error",
    tasks: Literal["cpus", "job"] = "cpus",
    gang: bool = True,
) -> Workload:
    """Read a table with a row a job, of whose columns those that exist are used.

    ``submit_s``, ``start_s`` and ``end_s`` are seconds of any clock, all three of the same, or
    dates and times (``2026-03-01 09:30:00``, with or without parts of a second and a time zone;
    without one, UTC). ``run_s`` and ``limit_s`` are seconds or ``[days-]hours:minutes:seconds``.
    ``submit_s`` is required, and a run time: ``run_s``, or ``start_s`` and ``end_s``. Of start, end
    and run time, one that is missing follows from the two others.

    A row becomes a job of one stage. Jobs are sorted by submission, and times are shifted so that
    the first is 0. ``requested_s`` of ``jobs`` is ``limit_s``; ``recorded_start_s`` and
    ``recorded_finish_s`` are when the job really ran (null: unknown). Without ``job_id`` a job is
    named by the number of its row. Other columns are ignored.

    Parameters
    ----------
    path : path-like
        CSV with a header line and ``,``, ``;``, ``|`` or a tab between fields, plain or compressed;
        or Parquet. Which one is detected from content.
    columns : mapping of str to str or None
        Names of the table's columns where they differ: ``trace.columns.submit_s=Submitted``.
    on_bad_row : {"error", "skip"}
        Rows with invalid values: raise, or drop and count.
    tasks : {"cpus", "job"}
        A task per CPU, which demands one ``cpu``; or one task that demands all of them on one
        machine.
    gang : bool
        False lets the tasks of a job start one by one.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts by rule
        ``dropped`` (submission or run time unknown, jobs that never started or end before they
        start, 0 CPUs; a job_id that is in an earlier row too), ``filled`` (CPUs unknown, run times
        of 0 s, which become 0.5 s), ``noticed`` (started before the submission), ``bad_rows``, and
        in ``columns_unused`` columns that resemble a missing one.

    Raises
    ------
    InputError
        With file, line (of Parquet, row) and rule: "missing column", "unknown column",
        "wrong type", "not Parquet", "no header", "empty file", "no job left", and those of
        `sim.base.reading.read_blocks`.
    """
    chosen = {name: column for name, column in columns.items() if column is not None}
    for name in chosen:
        if name not in COLUMNS:
            raise InputError(unknown("column", name, COLUMNS), file=path, rule="unknown column")
    bad = BadRows()
    log, unused = (read_parquet if is_parquet(path) else read_csv)(
        path, lambda names: find_columns(path, names, chosen), on_bad_row, bad
    )
    n_rows = len(log["submit_s"])
    report: dict[str, Any] = {"rows": n_rows + sum(bad.values()), "bad_rows": bad}
    report |= {"dropped": {}, "filled": {}, "noticed": {}}
    if unused:
        report["columns_unused"] = dict.fromkeys(unused, n_rows)
    log = _completed(log, n_rows)
    rows = _valid_rows(log, report["dropped"])
    if not len(rows):
        raise no_job_left(path, {**bad, **report["dropped"]})
    log = {
        k: v[rows] if isinstance(v, np.ndarray) else v.take(pa.array(rows)) for k, v in log.items()
    }
    return _workload(log, tasks, gang, report)


def _completed(log: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """Return the columns with start, end and run time, each from the two others where missing."""
    unknown_s = np.full(n_rows, np.nan)
    start_s, end_s, run_s = (log.get(name, unknown_s) for name in ("start_s", "end_s", "run_s"))
    run_s = np.where(np.isnan(run_s), end_s - start_s, run_s)
    start_s = np.where(np.isnan(start_s), end_s - run_s, start_s)
    end_s = np.where(np.isnan(end_s), start_s + run_s, end_s)
    if "start_s" in log:  # no run of 0 s, but none
        run_s = np.where(np.isnan(start_s) & (run_s == 0), np.nan, run_s)
    job_id = pa.array(np.arange(1, n_rows + 1)).cast(pa.string())
    if "job_id" in log:
        job_id = pc.coalesce(log["job_id"], pc.binary_join_element_wise("row", job_id, " "))
    return {**log, "job_id": job_id, "start_s": start_s, "end_s": end_s, "run_s": run_s}


def _valid_rows(log: dict[str, Any], dropped: dict[str, int]) -> I8:
    """Return the rows that become jobs, by submission; count the others by rule."""
    run_s, cpus = log["run_s"], log.get("cpus", np.ones(len(log["run_s"])))
    rules = {
        "submission unknown": np.isnan(log["submit_s"]),
        "never started": np.isnan(run_s) & np.isnan(log["start_s"]),
        "run time unknown": np.isnan(run_s),
        "ends before it starts": (run_s < 0) | (log["end_s"] < log["start_s"]),
        "0 CPUs": cpus == 0,
    }
    rows = np.flatnonzero(valid_rows(rules, dropped))
    ids = log["job_id"].take(pa.array(rows)).dictionary_encode().indices.to_numpy()
    is_first = np.zeros(len(rows), dtype=bool)
    is_first[np.unique(ids, return_index=True)[1]] = True
    count_rule(dropped, "job_id of an earlier row", ~is_first)
    rows = rows[is_first]
    order: I8 = rows[np.argsort(log["submit_s"][rows], kind="stable")]
    return order


def _workload(log: dict[str, Any], tasks: str, gang: bool, report: dict[str, Any]) -> Workload:
    submit_s, run_s = log["submit_s"], log["run_s"]
    n_jobs, zero_s = len(submit_s), float(submit_s[0])
    filled, noticed = report["filled"], report["noticed"]
    count_rule(noticed, "started before its submission", log["start_s"] < submit_s)
    count_rule(filled, f"0 s becomes {ZERO_BECOMES_S} s", run_s == 0)
    cpus: F8 = log.get("cpus", np.full(n_jobs, np.nan))
    count_rule(filled, "CPUs unknown: 1", np.isnan(cpus))
    cpus = np.where(np.isnan(cpus), 1.0, cpus)
    n_tasks = (cpus if tasks == "cpus" else np.ones(n_jobs)).astype(np.int32)
    jobs: dict[str, Any] = {
        "job_id": log["job_id"],
        "submit_s": submit_s - zero_s,
        "min_tasks": n_tasks if gang and tasks == "cpus" else np.zeros_like(n_tasks),
        "recorded_start_s": log["start_s"] - zero_s,
        "recorded_finish_s": log["end_s"] - zero_s,
    }
    for name, default in (("user", ""), ("queue", "default")):
        if name in log:
            count_rule(filled, f"{name} unknown: {default!r}", np.asarray(log[name].is_null()))
            jobs[name] = log[name].fill_null(default).dictionary_encode()
    if "limit_s" in log:
        jobs["requested_s"] = log["limit_s"]
    if "priority" in log:
        jobs["priority"] = np.nan_to_num(log["priority"])
    return Workload.from_tables(
        jobs=jobs,
        stages={
            "job": np.arange(n_jobs, dtype=np.int32),
            "n_tasks": n_tasks,
            "duration_s": np.where(run_s == 0, ZERO_BECOMES_S, run_s),
            "demand_cpu": np.ones(n_jobs) if tasks == "cpus" else cpus,
        },
        meta={
            "name": "table",
            "quantum": {"cpu": 1.0},
            "offset_s": zero_s,
            "resolution_s": resolution_s(*(log[name] for name in TIMES)),
            "report": {**report, "jobs": n_jobs},
        },
    )
