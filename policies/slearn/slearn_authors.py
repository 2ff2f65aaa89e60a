"""Reader of the SLearn authors' simulator input: jobs, their features, and a history.

Three files with one base name. ``NAME.trace`` is a sequence of JSON objects, one per job:
``job.id`` ("job_" and a number), ``job.start.ms``, ``job.tasks[]`` with ``c.dur`` in ms.
``NAME.3SigmaFeatures.csv`` has a row per job, by the number in its id: `FEATURES`.
``NAME.3SigmaWarmUp.csv`` lists past jobs in order, without times, with their features and
``job_runtime``, the mean duration of their tasks in ms. The files are the workload of Jajoo et al.,
NSDI 2022, as in their published simulator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.parameters import Positive, checked
from sim.base.reading import (
    Account,
    BadLineError,
    BadRows,
    Field,
    Layout,
    OnBadRow,
    check_text,
    column_names,
    count_rule,
    distinct_ids,
    handle_bad_line,
    json_values,
    no_job_left,
    open_text,
    parse_numbers,
    read_columns,
    read_text,
    repeated_rows,
)
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

FEATURES = {
    "application": "application_name",
    "job_name": "job_name",
    "requested": "resource_requested",
    "user": "user_name",
    "day": "day_of_the_week",
    "hour": "hour_of_the_day",
}
"""Columns of a workload, and their names in the files."""
_CLOCK = ("day", "hour")
_PREFIX = "job_"


@checked
def read(
    path: str | os.PathLike[str], *, stretch: Positive = 1.0, on_bad_row: OnBadRow = "error"
) -> Workload:
    """Read the jobs, and their features and history from the two other files if they exist.

    A job has one stage of tasks that take a slot each. ``jobs`` has the six features that
    predictors use; ``day`` and ``hour`` are those of the file even if arrivals are stretched.
    ``template`` is the application. The history has an order and no times.

    Parameters
    ----------
    path : path-like
        ``NAME.trace``, or the folder of one; plain or gzipped (detected from content), with or
        without ``.gz``, as are the files beside it.
    stretch : float
        Factor of submission times; positive.
    on_bad_row : {"error", "skip"}
        Jobs and lines with invalid values: raise, or drop and count. Invalid JSON is always an
        error.

    Returns
    -------
    Workload
        Jobs in order of submission. ``meta["report"]`` counts by rule ``dropped`` (a job that is
        earlier in the file too), ``noticed`` (jobs without features) and ``bad_rows``.

    Raises
    ------
    InputError
        With file, line and rule: "wrong line", "missing value", "wrong type", "number out of
        range" and those of `sim.base.reading.read_blocks`; "missing file", "empty file", "no job
        left".
    """
    trace = _trace(path)
    bad = BadRows()
    dropped: dict[str, int] = {}
    noticed: dict[str, int] = {}
    n_jobs, ids, submit_s, durations = _jobs(trace, on_bad_row, bad, dropped)
    tasks_s = np.array([float(np.sum(tasks)) for tasks in durations])
    n_tasks = np.array([len(tasks) for tasks in durations], dtype=np.int32)
    account = Account({"cpu_s": tasks_s, "tasks": n_tasks.astype(np.float64)})
    account.add_bad_rows(bad, lambda _: {})
    rows = np.argsort(submit_s, kind="stable")
    n_tasks = n_tasks[rows]
    names = [ids[row] for row in rows]
    job_ids, is_again = distinct_ids(pa.array(names, pa.string()))
    count_rule(noticed, "job of an earlier object with other content: another job", is_again)
    features = _table(trace, "3SigmaFeatures", on_bad_row, bad)
    past = _table(trace, "3SigmaWarmUp", on_bad_row, bad, runtime=True)
    workload = Workload.from_tables(
        jobs={
            "job_id": job_ids,
            "submit_s": submit_s[rows] * stretch,
            **_features(names, features, noticed),
        },
        stages={"job": np.arange(len(rows), dtype=np.int32), "n_tasks": n_tasks},
        tasks={
            "stage": np.repeat(np.arange(len(rows), dtype=np.int32), n_tasks),
            "duration_s": np.concatenate([durations[row] for row in rows]),
        },
        history=None if past is None else _history(past),
        meta={
            "name": "slearn_authors",
            "report": {
                "rows": n_jobs,
                "jobs": len(rows),
                "dropped": dropped,
                "noticed": noticed,
                "bad_rows": bad,
            },
        },
    )
    return with_account(workload, account, bad)


def _trace(path: str | os.PathLike[str]) -> Path:
    """Return the file of jobs: `path` itself, or the only ``*.trace`` in the folder `path`."""
    folder = Path(path)
    if not folder.is_dir():
        return folder
    files = sorted(file for file in folder.iterdir() if re.search(r"\.trace(\.gz)?$", file.name))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        text = (
            f"the folder must contain one file named *.trace, and has {names}; give the path of "
            "the file itself"
        )
        raise InputError(text, file=path, rule="missing file")
    return files[0]


def _jobs(
    path: Path, on_bad_row: OnBadRow, bad: BadRows, dropped: dict[str, int]
) -> tuple[int, list[str], F8, list[F8]]:
    """Return the number of jobs in the file; id, submission and task durations, s, of each once."""
    ids: list[str] = []
    starts_ms: list[float] = []
    durations: list[F8] = []
    contents: list[int] = []
    for line, job in json_values(path, read_text(path)):
        with handle_bad_line(path, line, on_bad_row, bad):
            name, start_ms, duration_s = _job(job)
            ids.append(name)
            starts_ms.append(start_ms)
            durations.append(duration_s)
            contents.append(hash(repr(job)))
    if not ids:
        raise no_job_left(path, bad)
    is_repeated = repeated_rows(pa.array(ids, pa.string()), {"job": np.array(contents)})
    count_rule(dropped, "repeated job", is_repeated)
    rows = np.flatnonzero(~is_repeated)
    return (
        len(ids),
        [ids[row] for row in rows],
        np.array(starts_ms)[rows] / 1000.0,
        [durations[row] for row in rows],
    )


def _job(job: Any) -> tuple[str, float, F8]:
    if not isinstance(job, dict):
        raise BadLineError("wrong line", f"a job must be a JSON object, not {str(job)[:40]!r}")
    for key in ("job.id", "job.start.ms", "job.tasks"):
        if job.get(key) is None:
            raise BadLineError("missing value", f"{key} is missing")
    tasks = job["job.tasks"]
    if not isinstance(tasks, list) or not tasks:
        raise BadLineError("no tasks", "job.tasks must be a list of at least one task")
    if any(not isinstance(task, dict) or task.get("c.dur") is None for task in tasks):
        raise BadLineError("missing value", "a task has no c.dur")
    name = check_text("job.id", str(job["job.id"]))
    start = parse_numbers("job.start.ms", [job["job.start.ms"]])
    return name, float(start[0]), parse_numbers("c.dur", [task["c.dur"] for task in tasks]) / 1000.0


def _table(
    trace: Path, kind: str, on_bad_row: OnBadRow, bad: BadRows, *, runtime: bool = False
) -> dict[str, Any] | None:
    """Read the table ``NAME.<kind>`` beside the trace; None if there is none."""
    stem = re.sub(r"(\.trace)?(\.gz)?$", "", trace.name)
    files = [trace.with_name(f"{stem}.{kind}{end}") for end in (".csv", ".csv.gz", "", ".gz")]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        return None
    column_of = {"job_id": "job_id", **FEATURES}
    fields = {"job_id": Field(required=True), **dict.fromkeys(FEATURES.values(), Field())}
    fields |= {FEATURES[name]: Field("number", high=2**31 - 1) for name in _CLOCK}
    if runtime:
        column_of["job_runtime"] = "job_runtime"
        fields["job_runtime"] = Field("number", required=True, high=1e15)
    header = column_names(file, ",", [*column_of.values()])
    with open_text(file) as stream:
        columns = read_columns(file, stream, Layout(header, skip_lines=1), fields, on_bad_row, bad)
    return {name: columns[column] for name, column in column_of.items()}


def _features(
    ids: list[str], table: Mapping[str, Any] | None, noticed: dict[str, int]
) -> dict[str, Any]:
    """Return the columns of features of these jobs; unknown for jobs that are not in the table."""
    if table is None:
        return {}
    row_by_id = {name: row for row, name in reversed(list(enumerate(table["job_id"].to_pylist())))}
    rows = np.array([row_by_id.get(name.removeprefix(_PREFIX), -1) for name in ids])
    count_rule(noticed, "no features", rows < 0)
    index = pa.array(rows, mask=rows < 0)
    columns: dict[str, Any] = {
        name: _coded(table[name].take(index)) for name in FEATURES if name not in _CLOCK
    }
    for name in _CLOCK:
        columns[name] = np.where(rows < 0, -1, _clock(table[name])[rows])
    return {"template": columns["application"], **columns}


def _history(past: Mapping[str, Any]) -> dict[str, Any]:
    texts = {name: _coded(past[name]) for name in FEATURES if name not in _CLOCK}
    clock = {name: _clock(past[name]) for name in _CLOCK}
    return {"mean_task_s": past["job_runtime"] / 1000.0, **texts, **clock}


def _coded(texts: Any) -> Any:
    return texts.fill_null("").dictionary_encode()


def _clock(numbers: F8) -> Any:
    return np.where(np.isnan(numbers), -1, numbers).astype(np.int32)
