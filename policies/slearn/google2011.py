"""Reader of Google clusterdata-2011-2: all task durations of 19.6 hours, or job wall times.

Two files of the trace's cell, ids re-indexed. ``manytask_jobs.jsonl``: one JSON object per line,
the jobs of the first 70,756 s with every task that was scheduled and finished in that time.
``job_history_29d.csv``: every job of the 29 days that finished, without its tasks. Source: Reiss et
al., *Google cluster-usage traces: format + schema*, 2011 (CC-BY-4.0).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import (
    Account,
    BadLineError,
    BadRows,
    Field,
    Layout,
    OnBadRow,
    check_text,
    count_rule,
    distinct_ids,
    first_line,
    handle_bad_line,
    no_job_left,
    open_text,
    parse_json,
    parse_numbers,
    read_bytes,
    read_columns,
    repeated_rows,
    resolution_s,
)
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

FILES = {"tasks": "manytask_jobs.jsonl", "walls": "job_history_29d.csv"}
"""File name of each part in the trace's folder, with or without ``.gz``."""
RESOURCES = ("cpu", "mem", "disk")
"""Requested resources, each as a fraction of the largest machine."""
_NUMBERS = ("submit_s", "job_end_s", "priority", *RESOURCES)
_NAMES = ("job", "user", "lname", "name")
_HISTORY = (
    "job_id", "user", "sched_class", "job_name", "logical_job_name", "submit_s", "schedule_s",
    "end_s", "end_event",
)  # fmt: skip
_QUANTUM = 1e-8


@checked
def read(
    path: str | os.PathLike[str],
    *,
    part: Literal["tasks", "walls"] = "tasks",
    on_bad_row: OnBadRow = "error",
) -> Workload:
    """Read the jobs of one of the two files.

    A job has one stage. Times are those of the trace, s since its start; 0 means before its start.
    ``jobs`` has the features that predictors use: ``application`` (the logical job name),
    ``job_name``, ``user`` and ``requested`` (the resources, as text). ``recorded_start_s`` is the
    start of its first task in the trace (null: before the trace began), and ``recorded_finish_s``
    the end of the job; ``tasks`` has both for every task. ``template`` is the logical job name.

    Parameters
    ----------
    path : path-like
        Folder of the two files, or one of them; plain or gzipped (detected from content).
    part : {"tasks", "walls"}
        ``tasks``: the jobs with the duration of every task, over 19.6 hours. ``walls``: the jobs
        of 29 days, each as one task that lasts from the job's first scheduling to its end: a wall
        time, which does not tell the tasks' durations, let alone their number. The trace does not
        have the requests of these jobs, so they demand one ``cpu``.
    on_bad_row : {"error", "skip"}
        Lines that can't be read: raise, or drop and count.

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule ``dropped`` (lines that are there twice; of ``walls``
        also jobs scheduled before the trace began, whose wall time is unknown),
        ``noticed`` (jobs submitted before the trace began, submissions out of order) and
        ``bad_rows``. ``meta["durations"]`` is ``tasks`` or ``job walls``, ``meta["resolution_s"]``
        the resolution of the recorded times.

    Raises
    ------
    InputError
        With file, line and rule: "wrong line", "missing value", "wrong type", "number out of
        range" and those of `sim.base.reading.read_blocks`; "missing file", "empty file", "no job
        left".
    """
    file = _file(path, part)
    if part == "tasks" and first_line(file).startswith(_HISTORY[0]):
        text = (
            "this is the file of job wall times (its first line names the columns of "
            f"{FILES['walls']}); read it with part=walls"
        )
        raise InputError(text, file=file, line=1, rule="wrong line")
    return (_read_tasks if part == "tasks" else _read_walls)(file, on_bad_row)


def _file(path: str | os.PathLike[str], part: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():
        return folder
    plain = folder / FILES[part]
    packed = plain.with_name(plain.name + ".gz")
    return plain if plain.is_file() else packed


def _read_tasks(path: Path, on_bad_row: OnBadRow) -> Workload:
    jobs: dict[str, list[Any]] = {key: [] for key in (*_NAMES, *_NUMBERS)}
    starts: list[F8] = []
    durations: list[F8] = []
    contents: list[int] = []
    bad = BadRows()
    n_lines = 0
    for line, text in _lines(path):
        n_lines += 1
        with handle_bad_line(path, line, on_bad_row, bad):
            job = _parse_job(text)
            for key, column in jobs.items():
                column.append(job[key])
            starts.append(job["start_s"])
            durations.append(job["dur_s"])
            contents.append(hash(text.strip()))
    if not durations:
        raise no_job_left(path, bad)
    dropped: dict[str, int] = {}
    noticed: dict[str, int] = {}
    rows = _once(pa.array(jobs["job"], pa.string()), {"line": np.array(contents)}, dropped)
    rows = _by_submission(rows, np.array(jobs["submit_s"]), noticed)
    columns = {key: [column[row] for row in rows] for key, column in jobs.items()}
    durations = [durations[row] for row in rows]
    account = Account(_task_amounts(columns, durations))
    account.add_bad_rows(bad, lambda _: {})
    n_tasks = np.array([len(d) for d in durations], dtype=np.int32)
    start_s = np.concatenate([starts[row] for row in rows])
    start_s = np.where(start_s == 0, np.nan, start_s)
    finish_s = start_s + np.concatenate(durations)
    count_rule(noticed, "submitted before the trace began", np.array(columns["submit_s"]) == 0)
    requests = zip(*(columns[name] for name in RESOURCES), strict=True)
    workload = Workload.from_tables(
        jobs=_jobs(
            _job_ids(pa.array(columns["job"], pa.string()), noticed),
            np.array(columns["submit_s"]),
            np.minimum.reduceat(start_s, np.cumsum(n_tasks) - n_tasks),
            np.array(columns["job_end_s"]),
            application=columns["lname"],
            job_name=columns["name"],
            user=columns["user"],
            requested=[f"cpu={c:g} mem={m:g} disk={d:g}" for c, m, d in requests],
            priority=np.array(columns["priority"]),
        ),
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": n_tasks,
            **{f"demand_{name}": np.array(columns[name]) for name in RESOURCES},
        },
        tasks={
            "stage": np.repeat(np.arange(len(rows), dtype=np.int32), n_tasks),
            "duration_s": np.concatenate(durations),
            "recorded_start_s": start_s,
            "recorded_finish_s": finish_s,
        },
        meta={
            "name": "google2011",
            "durations": "tasks",
            "quantum": dict.fromkeys(RESOURCES, _QUANTUM),
            "resolution_s": resolution_s(start_s, finish_s),
            "report": _report(n_lines, len(rows), dropped, noticed, bad),
        },
    )
    return with_account(workload, account, bad)


def _task_amounts(jobs: Mapping[str, Sequence[Any]], durations: Sequence[F8]) -> dict[str, F8]:
    """Return the tasks of each job, and what they hold times their durations, by kind."""
    work_s = np.array([float(np.sum(tasks)) for tasks in durations])
    kinds = {"cpu": "cpu_s", "mem": "mem_gib_s", "disk": "disk_s"}
    taken = {kinds[name]: np.array(jobs[name], np.float64) * work_s for name in RESOURCES}
    return {"tasks": np.array([len(tasks) for tasks in durations], np.float64), **taken}


def _lines(path: Path) -> Any:
    """Yield the number and the text of each line that is not blank."""
    for number, text in enumerate(read_bytes(path).split(b"\n"), 1):
        if text.strip():
            yield number, text


def _parse_job(text: bytes) -> dict[str, Any]:
    try:
        job = parse_json(text)
    except ValueError as error:
        raise BadLineError("wrong line", f"the line is not valid JSON ({error})") from None
    if not isinstance(job, dict):
        message = f"the line must be a JSON object, not {str(job)[:40]!r}"
        raise BadLineError("wrong line", message)
    for key in (*_NAMES, *_NUMBERS, "start_s", "dur_s"):
        if job.get(key) is None:
            raise BadLineError("missing value", f"{key} is missing")
    parsed: dict[str, Any] = {key: str(job[key]) for key in _NAMES}
    check_text("a name", "".join(parsed.values()))
    for key in _NUMBERS:
        parsed[key] = float(parse_numbers(key, [job[key]])[0])
    parsed["dur_s"] = parse_numbers("dur_s", job["dur_s"])
    parsed["start_s"] = parse_numbers("start_s", job["start_s"])
    if len(parsed["dur_s"]) != len(parsed["start_s"]):
        message = (
            f"start_s has {len(parsed['start_s'])} values and dur_s {len(parsed['dur_s'])}; both "
            "must have one per task"
        )
        raise BadLineError("wrong line", message)
    if not len(parsed["dur_s"]):
        raise BadLineError("no tasks", "dur_s is empty; a job needs at least one task")
    return parsed


def _read_walls(path: Path, on_bad_row: OnBadRow) -> Workload:
    header = first_line(path)
    if header.split(",") != list(_HISTORY):
        text = f"the first line must be {','.join(_HISTORY)!r}, not {header[:80]!r}"
        raise InputError(text, file=path, line=1, rule="wrong line")
    fields = {
        name: Field("number" if name.endswith("_s") else "text", required=True)
        for name in _HISTORY
        if name not in ("sched_class", "end_event")
    }
    bad = BadRows()
    with open_text(path) as stream:
        layout = Layout(_HISTORY, skip_lines=1)
        log = read_columns(path, stream, layout, fields, on_bad_row, bad)
    n_lines = len(log["end_s"]) + sum(bad.values())
    dropped: dict[str, int] = {}
    noticed: dict[str, int] = {}
    once = _once(log["job_id"], {name: log[name] for name in fields}, dropped)
    log = {
        name: log[name][once] if field.kind == "number" else log[name].take(pa.array(once))
        for name, field in fields.items()
    }
    account = Account(_wall_amounts(log))
    account.add_bad_rows(bad, _wall_amounts)
    rules = {
        "scheduled before the trace began": log["schedule_s"] == 0,
        "ends before it is scheduled": log["end_s"] < log["schedule_s"],
    }
    rows = np.flatnonzero(account.keep(rules, dropped))
    if not len(rows):
        raise no_job_left(path, bad, dropped)
    rows = _by_submission(rows, log["submit_s"], noticed)
    count_rule(noticed, "submitted before the trace began", log["submit_s"][rows] == 0)
    texts = {n: log[n].take(pa.array(rows)) for n, f in fields.items() if f.kind == "text"}
    workload = Workload.from_tables(
        jobs=_jobs(
            _job_ids(texts["job_id"], noticed),
            log["submit_s"][rows],
            log["schedule_s"][rows],
            log["end_s"][rows],
            application=texts["logical_job_name"],
            job_name=texts["job_name"],
            user=texts["user"],
            requested=[""] * len(rows),
        ),
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "duration_s": log["end_s"][rows] - log["schedule_s"][rows],
        },
        meta={
            "name": "google2011",
            "durations": "job walls",
            "resolution_s": resolution_s(log["schedule_s"][rows], log["end_s"][rows]),
            "report": _report(n_lines, len(rows), dropped, noticed, bad),
        },
    )
    return with_account(workload, account, bad)


def _wall_amounts(log: Mapping[str, Any]) -> dict[str, F8]:
    """Return the wall time of each job as that of one CPU; NaN where it can't be read."""
    wall_s = log["end_s"] - log["schedule_s"]
    is_known = (log["schedule_s"] > 0) & (wall_s >= 0)
    return {"cpu_s": np.where(is_known, wall_s, np.nan)}


def _once(ids: pa.StringArray, columns: Mapping[str, Any], dropped: dict[str, int]) -> I8:
    """Return the rows without those that are there twice; count these."""
    is_repeated = repeated_rows(ids, columns)
    count_rule(dropped, "repeated line", is_repeated)
    return np.flatnonzero(~is_repeated)


def _by_submission(rows: I8, submit_s: F8, noticed: dict[str, int]) -> I8:
    """Return rows in order of submission."""
    submit = submit_s[rows]
    count_rule(noticed, "submitted before the line above", submit[1:] < submit[:-1])
    return rows[np.argsort(submit, kind="stable")]


def _job_ids(ids: pa.StringArray, noticed: dict[str, int]) -> pa.StringArray:
    """Return an id for each job; a second job of one id becomes ``id#2``."""
    distinct, is_again = distinct_ids(ids)
    count_rule(noticed, "job of an earlier line with other content: another job", is_again)
    return distinct


def _jobs(job_id: Any, submit_s: F8, start_s: F8, end_s: F8, **columns: Any) -> Mapping[str, Any]:
    names = ("application", "job_name", "user", "requested")
    coded = {n: pa.array(columns.pop(n), pa.string()).dictionary_encode() for n in names}
    return {
        "job_id": pa.array(job_id, pa.string()),
        "submit_s": submit_s,
        "template": coded["application"],
        "recorded_start_s": start_s,
        "recorded_finish_s": end_s,
        **coded,
        **columns,
    }


def _report(
    rows: int, jobs: int, dropped: dict[str, int], noticed: dict[str, int], bad: BadRows
) -> dict[str, Any]:
    return {"rows": rows, "jobs": jobs, "dropped": dropped, "noticed": noticed, "bad_rows": bad}
