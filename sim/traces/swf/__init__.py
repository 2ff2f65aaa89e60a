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

from sim.base.arrays import F8, I4
from sim.base.parameters import checked
from sim.base.reading import (
    Account,
    BadRows,
    CommentStripper,
    Field,
    Layout,
    OnBadRow,
    count_rule,
    distinct_ids,
    first_line,
    no_job_left,
    open_text,
    read_columns,
    resolution_s,
)
from sim.traces.swf.lines import known, preceding_jobs, processors_of, select
from sim.workload.amounts import with_account
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
_START = "UnixStartTime"
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
    preceding: Literal["edges", "ignore"] = "edges",
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

    A job number that another line has too is another job (``17#2``), unless the lines are the same:
    logs were put together then. Times of a log behind a second header with another
    ``UnixStartTime`` are shifted to the clock of the first. Lines of partial executions (status 2
    to 4) are left out where the job has a whole line, else they are joined into one job. A job that
    got no processor never ran: it is no job of 0 s. A requested time of 0 is no limit.

    Parameters
    ----------
    path : path-like
        Plain or compressed (detected from content). The file is read in blocks; memory holds only
        its jobs.
    on_bad_row : {"error", "skip"}
        Lines with fewer than 18 fields, or with text or a number below -1 or above 1e12: raise, or
        drop and count. Of lines with more fields the first 18 are read.
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
    preceding : {"edges", "ignore"}
        Preceding jobs: a job is submitted at the later of its own time and its think time after
        the end of the job that it waits for; or only at its own time.

    Returns
    -------
    Workload
        ``meta["header"]`` has the log's ``; Key: value`` comments (``MaxProcs`` is the size of the
        machine), ``meta["resolution_s"]`` the resolution of its times. ``meta["report"]`` has the
        log's account (`sim.base.reading.account`) and counts by rule ``dropped`` (jobs that never
        started; submission, run time or processors unknown; repeated lines, lines of partial
        executions; with ``status="completed"``, other jobs), ``filled`` (processors taken from the
        other field, unknown users, queues and executables, run times of 0 s, which become 0.5 s)
        and ``noticed`` (submissions out of order, numbers of several jobs).

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
        layout = Layout(FIELDS, delimiter=" ", lines=rows.line_of, more_fields=True)
        log = read_columns(path, rows, layout, fields, on_bad_row, bad)
    warnings = _shift_clocks(log, rows)
    report: dict[str, Any] = {"rows": len(log["status"]) + sum(bad.values()), "jobs": 0}
    report |= {"dropped": {}, "filled": {}, "noticed": {}, "bad_rows": bad}
    log, row, account = select(log, status == "completed", bad, report)
    account.warnings += warnings
    if not len(row):
        raise no_job_left(path, bad, report["dropped"])
    submit = log["submit_time"][row]
    count_rule(
        report["noticed"],
        "submitted before the line above",
        submit < np.maximum.accumulate(submit),
    )
    row = row[np.argsort(submit, kind="stable")]
    log = {name: column[row] for name, column in log.items()}
    report["jobs"] = len(row)
    tables = {**_jobs(log, groups, report), **_edges(log, preceding, account)}
    n_tasks = _processors(log, processors, report["filled"], account).astype(np.int32)
    tables["jobs"]["min_tasks"] = n_tasks if gang else np.zeros_like(n_tasks)
    tables["jobs"] |= tables.pop("inputs")
    quantum = {"cpu": 1.0}
    tables["stages"] = {
        "job": np.arange(len(row), dtype=np.int32),
        "n_tasks": n_tasks,
        "duration_s": _durations(log, n_tasks, report["filled"], account),
        "demand_cpu": np.ones(len(row)),
    }
    if memory != "none":
        known_kib = known(log[f"{memory}_memory"])
        count_rule(report["filled"], f"{memory} memory unknown: 0", np.isnan(known_kib))
        tables["stages"]["demand_mem"] = np.nan_to_num(known_kib) / _KIB_PER_GIB
        quantum["mem"] = 1e-6
    zero_s = float(log["submit_time"][0])
    start, finish = (tables["jobs"][f"recorded_{name}_s"] for name in ("start", "finish"))
    meta = {
        "name": "swf",
        "quantum": quantum,
        "offset_s": zero_s,
        "resolution_s": resolution_s(log["submit_time"], start + zero_s, finish + zero_s),
        "header": rows.header,
        "report": report,
    }
    return with_account(Workload.from_tables(**tables, meta=meta), account, bad)


def _jobs(log: dict[str, F8], groups: bool, report: dict[str, Any]) -> dict[str, Any]:
    """Return the table of jobs, in the order of the log's lines."""
    filled, submit = report["filled"], log["submit_time"]
    start = submit + known(log["wait_time"])
    span_s = np.where(np.isnan(log["span_s"]), log["run_time"], log["span_s"])
    names, is_again = distinct_ids(_text(log["job_number"]))
    count_rule(report["noticed"], "job number of an earlier job: another job", is_again)
    jobs: dict[str, Any] = {
        "job_id": names,
        "submit_s": submit - submit[0],
        "template": _names(log, "executable", "", filled),
        "user": _names(log, "user_id", "", filled),
        "queue": _names(log, "queue", "default", filled),
        "requested_s": pa.array(_limits(log), from_pandas=True),
        "recorded_start_s": start - submit[0],
        "recorded_finish_s": start + span_s - submit[0],
    }
    if (log["partition"] >= 0).any():
        jobs["partition"] = _names(log, "partition", "", filled).dictionary_encode()
    if groups:
        jobs["user_group"] = _names(log, "group_id", "", filled).dictionary_encode()
    return {"jobs": jobs}


def _limits(log: dict[str, F8]) -> F8:
    """Return the requested run times, s; NaN for none, as 0 is, too."""
    return np.where(log["requested_time"] > 0, log["requested_time"], np.nan)


def _edges(log: dict[str, F8], preceding: str, account: Account) -> dict[str, Any]:
    """Return the edges from preceding jobs, and the columns of jobs that wait for them."""
    is_named = log["preceding_job"] >= 0
    upstream = preceding_jobs(log["job_number"], log["preceding_job"])
    if preceding == "ignore":
        rule = "preceding job (preceding=ignore)"
        account.add(rule, by_option=True, edges=float(is_named.sum()))
        return {"inputs": {}}
    waits = upstream >= 0
    if is_named.any():
        account.count(edges=float(waits.sum()))
        account.add(
            "preceding job that is not in the workload", edges=float((is_named & ~waits).sum())
        )
    if not waits.any():
        return {"inputs": {}}
    return {
        "job_edges": {
            "upstream": upstream[waits].astype(np.int32),
            "downstream": np.flatnonzero(waits).astype(np.int32),
        },
        "inputs": {
            "input_mode": pa.array(np.where(waits, "poll", "none")),
            "poll_lag_s": np.where(waits, np.nan_to_num(known(log["think_time"])), 0.0),
        },
    }


def _processors(log: dict[str, F8], chosen: str, filled: dict[str, int], account: Account) -> F8:
    """Return the processors of each job, and enter the work that the other field would give."""
    other = "requested" if chosen == "allocated" else "allocated"
    processors, is_other = processors_of(log, chosen)
    count_rule(filled, f"{chosen} processors unknown: {other}", is_other)
    if chosen == "requested":
        allocated, _ = processors_of(log, "allocated")
        more_s = float(np.sum((allocated - processors) * log["run_time"]))
        account.change("requested processors, not allocated ones", cpu_s=more_s)
    return processors


def _durations(log: dict[str, F8], n_tasks: I4, filled: dict[str, int], account: Account) -> F8:
    """Return the run time of each job, s; that of 0 s becomes half a second."""
    is_zero = log["run_time"] == 0
    rule = f"0 s becomes {ZERO_BECOMES_S} s"
    count_rule(filled, rule, is_zero)
    account.change(rule, cpu_s=-ZERO_BECOMES_S * float(n_tasks[is_zero].sum()))
    return np.where(is_zero, ZERO_BECOMES_S, log["run_time"])


def _shift_clocks(log: dict[str, F8], rows: CommentStripper) -> list[str]:
    """Shift times behind a second header to the clock of the first; return warnings."""
    begin_s = _unix_s(rows.header.get(_START, ""))
    parts = [(row, value) for row, key, value in rows.changes if key == _START and row]
    bounds = [*(row for row, _ in parts), len(log["submit_time"])]
    warnings = []
    for (row, value), end in zip(parts, bounds[1:], strict=True):
        later_s = _unix_s(value)
        if begin_s is None or later_s is None:
            warnings.append(
                f"the header behind {row:,} jobs has the {_START} {value!r}, the first one "
                f"{rows.header.get(_START, '')!r}: their times are read as if of one clock"
            )
            continue
        part = log["submit_time"][row:end]
        part[part >= 0] += later_s - begin_s
    return warnings


def _unix_s(text: str) -> float | None:
    """Return the start time of a header, s since 1970; None if it has none."""
    try:
        time_s = float(text.split()[0])
    except (ValueError, IndexError):
        return None
    return time_s if 0 < time_s <= _MAX_NUMBER else None


def _names(log: dict[str, F8], name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    missing = ~(log[name] >= 0)
    count_rule(filled, f"{name.removesuffix('_id')} unknown: {unknown!r}", missing)
    texts = _text(np.where(missing, -1, log[name])).to_numpy(zero_copy_only=False)
    return pa.array(np.where(missing, unknown, texts), pa.string())


def _text(numbers: F8) -> pa.Array:
    return pa.array(numbers.astype(np.int64)).cast(pa.string())
