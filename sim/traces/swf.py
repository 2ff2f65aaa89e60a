"""Reader of the Standard Workload Format: logs of the Parallel Workloads Archive.

A line has 18 fields; comments begin with ``;``.

Source: Chapin et al., *Benchmarks and standards for the evaluation of parallel job schedulers*,
JSSPP 1999; https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, Mask
from sim.base.parameters import checked
from sim.base.reading import (
    BadRows,
    CommentStripper,
    Field,
    Layout,
    OnBadRow,
    count_rule,
    first_line,
    no_job_left,
    open_text,
    read_columns,
    resolution_s,
    valid_rows,
)
from sim.workload.workload import Workload

FIELDS = (
    "job_number", "submit_time", "wait_time", "run_time", "allocated_processors",
    "average_cpu_time", "used_memory", "requested_processors", "requested_time", "requested_memory",
    "status", "user_id", "group_id", "executable", "queue", "partition", "preceding_job",
    "think_time",
)  # fmt: skip
"""Fields of a line, in order; -1 means unknown."""
_WHOLE = (
    "allocated_processors", "requested_processors", "status", "user_id", "executable", "queue",
    "partition", "preceding_job",
)  # fmt: skip
_COMPLETED = 1
_PARTIAL = (2, 3, 4)
_MAX_NUMBER = 1e12
"""Largest valid number: times and memory of real logs are far smaller."""
_KIB_PER_GIB = 2.0**20
ZERO_BECOMES_S = 0.5
"""Duration of jobs whose run time is logged as 0 s: logs count whole seconds."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    status: Literal["all", "completed"] = "all",
    processors: Literal["allocated", "requested"] = "allocated",
    gang: bool = True,
    memory: Literal["none", "requested", "used"] = "none",
    groups: bool = False,
) -> Workload:
    """Read a log of parallel jobs.

    A line becomes a job of one stage with a task per processor. All tasks last the run time and
    demand one ``cpu``. As rigid parallel jobs start as a whole, ``min_tasks`` is the number of
    tasks. ``job_id``, ``user``, ``queue`` and ``template`` (the executable) are the numbers in the
    log; unknown ones are "", an unknown queue is "default". Jobs are sorted by submission, those of
    the same second by their order in the log, and times are shifted so that the first is 0. Columns
    of ``jobs``: ``partition``, if the log has any (it is no queue: partitions are parts of the
    machine); ``requested_s``, the run time that the user requested (null: unknown);
    ``recorded_start_s`` and ``recorded_finish_s`` have when the job really ran (null: the log does
    not tell its wait).

    Parameters
    ----------
    path : path-like
        Plain or gzipped (detected from content). The file is read in blocks; memory holds only its
        jobs.
    on_bad_row : {"error", "skip"}
        Lines without exactly 18 fields, or with text or a number below -1 or above 1e12: raise, or
        drop and count.
    status : {"all", "completed"}
        Keep all jobs, or only those of status 1.
    processors : {"allocated", "requested"}
        Number of processors to use; the other one if it is unknown.
    gang : bool
        False lets the tasks of a job start one by one.
    memory : {"none", "requested", "used"}
        Memory per processor that tasks demand as ``mem``, in GiB: none, as requested or as used;
        unknown is 0.
    groups : bool
        A column ``user_group``, too: the user's group in the log, "" if unknown.

    Returns
    -------
    Workload
        ``meta["header"]`` has the log's ``; Key: value`` comments (``MaxProcs`` is the size of the
        machine), ``meta["resolution_s"]`` the resolution of its times. ``meta["report"]`` counts by
        rule ``dropped`` (submission, run time or processors unknown; lines of partial executions,
        as the whole execution has its own line; a job number that is on an earlier line too; with
        ``status="completed"``, other jobs), ``filled`` (processors taken from the other field,
        unknown users, queues and executables, run times of 0 s, which become 0.5 s) and ``noticed``
        (submissions out of order; preceding jobs, which are ignored).

    Raises
    ------
    InputError
        With file, line and rule: see `sim.base.reading.read_blocks`; "empty file",
        "no job left".
    """
    bad = BadRows()
    fields = {name: Field("number", low=-1, high=_MAX_NUMBER) for name in FIELDS}
    fields |= {name: Field("whole", low=-1, high=_MAX_NUMBER) for name in _WHOLE}
    fields["job_number"] = Field("whole", required=True)
    first_line(path)  # refuses files that are not text
    with open_text(path) as raw:
        rows = CommentStripper(path, raw)
        layout = Layout(FIELDS, delimiter=" ", lines=rows.line_of)
        log = read_columns(path, rows, layout, fields, on_bad_row, bad)
    report: dict[str, Any] = {"rows": len(log["status"]) + sum(bad.values()), "jobs": 0}
    report |= {"dropped": {}, "filled": {}, "noticed": {}, "bad_rows": bad}
    is_kept = _valid_lines(log, status == "completed", report["dropped"])
    if not is_kept.any():
        raise no_job_left(path, {**bad, **report["dropped"]})
    submit = log["submit_time"]
    is_late = is_kept & (submit < np.maximum.accumulate(np.where(is_kept, submit, -np.inf)))
    count_rule(report["noticed"], "submitted before the line above", is_late)
    row = np.flatnonzero(is_kept)
    row = row[np.argsort(submit[row], kind="stable")]
    log = {name: column[row] for name, column in log.items()}
    report["jobs"] = len(row)
    count_rule(report["noticed"], "preceding job ignored", log["preceding_job"] >= 0)
    filled, submit = report["filled"], log["submit_time"]
    start = submit + _known(log["wait_time"])
    finish = start + log["run_time"]
    n_tasks = _processors(log, processors, filled).astype(np.int32)
    jobs: dict[str, Any] = {
        "job_id": _text(log["job_number"]),
        "submit_s": submit - submit[0],
        "template": _names(log, "executable", "", filled),
        "user": _names(log, "user_id", "", filled),
        "queue": _names(log, "queue", "default", filled),
        "min_tasks": n_tasks if gang else np.zeros_like(n_tasks),
        "requested_s": pa.array(_known(log["requested_time"]), from_pandas=True),
        "recorded_start_s": start - submit[0],
        "recorded_finish_s": finish - submit[0],
    }
    if (log["partition"] >= 0).any():
        jobs["partition"] = _names(log, "partition", "", filled).dictionary_encode()
    if groups:
        jobs["user_group"] = _names(log, "group_id", "", filled).dictionary_encode()
    is_zero = log["run_time"] == 0
    count_rule(filled, f"0 s becomes {ZERO_BECOMES_S} s", is_zero)
    stages: dict[str, Any] = {
        "job": np.arange(len(row), dtype=np.int32),
        "n_tasks": n_tasks,
        "duration_s": np.where(is_zero, ZERO_BECOMES_S, log["run_time"]),
        "demand_cpu": np.ones(len(row)),
    }
    quantum = {"cpu": 1.0}
    if memory != "none":
        known = _known(log[f"{memory}_memory"])
        count_rule(filled, f"{memory} memory unknown: 0", np.isnan(known))
        stages["demand_mem"] = np.nan_to_num(known) / _KIB_PER_GIB
        quantum["mem"] = 1e-6
    meta = {
        "name": "swf",
        "quantum": quantum,
        "offset_s": float(submit[0]),
        "resolution_s": resolution_s(submit, start, finish),
        "header": rows.header,
        "report": report,
    }
    return Workload.from_tables(jobs=jobs, stages=stages, meta=meta)


def _valid_lines(log: dict[str, F8], completed: bool, dropped: dict[str, int]) -> Mask:
    """Mark the lines that become jobs; count the others by rule."""
    processors = np.fmax(log["allocated_processors"], log["requested_processors"])
    rules = {
        "partial execution": np.isin(log["status"], _PARTIAL),
        "submission unknown": ~(log["submit_time"] >= 0),
        "run time unknown": ~(log["run_time"] >= 0),
        "processors unknown": ~(processors >= 1),
    }
    if completed:
        rules["not completed"] = log["status"] != _COMPLETED
    is_kept = valid_rows(rules, dropped)
    rows = np.flatnonzero(is_kept)
    is_repeated = np.ones(len(rows), dtype=bool)
    is_repeated[np.unique(log["job_number"][rows], return_index=True)[1]] = False
    count_rule(dropped, "job number of an earlier line", is_repeated)
    is_kept[rows[is_repeated]] = False
    return is_kept


def _processors(log: dict[str, F8], chosen: str, filled: dict[str, int]) -> F8:
    other = "requested" if chosen == "allocated" else "allocated"
    n_processors = log[f"{chosen}_processors"]
    missing = ~(n_processors >= 1)
    count_rule(filled, f"{chosen} processors unknown: {other}", missing)
    return np.where(missing, log[f"{other}_processors"], n_processors)


def _names(log: dict[str, F8], name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    missing = ~(log[name] >= 0)
    count_rule(filled, f"{name.removesuffix('_id')} unknown: {unknown!r}", missing)
    texts = _text(np.where(missing, -1, log[name])).to_numpy(zero_copy_only=False)
    return pa.array(np.where(missing, unknown, texts), pa.string())


def _known(column: F8) -> F8:
    return np.where(column >= 0, column, np.nan)


def _text(numbers: F8) -> pa.Array:
    return pa.array(numbers.astype(np.int64)).cast(pa.string())
