"""Reader of Slurm's file of completed jobs, which its plugin ``jobcomp/filetxt`` writes.

Source: Slurm, ``src/plugins/jobcomp/filetxt/jobcomp_filetxt.c`` (fields and their order), and the
manual of slurm.conf, https://slurm.schedmd.com/slurm.conf.html (``JobCompType``, ``JobCompLoc``).
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base.parameters import checked
from sim.base.reading import (
    BadLineError,
    BadRows,
    OnBadRow,
    first_line,
    handle_bad_line,
    no_job_left,
    read_bytes,
)
from sim.traces.sacct.records import build_workload
from sim.workload.workload import Workload

_KEYS = (
    "JobId", "UserId", "GroupId", "Name", "JobState", "Partition", "TimeLimit", "StartTime",
    "EndTime", "NodeList", "NodeCnt", "ProcCnt", "WorkDir", "ReservationName", "Gres", "Tres",
    "Account", "QOS", "WcKey", "Cluster", "SubmitTime", "EligibleTime", "ArrayJobId",
    "ArrayTaskId", "HetJobId", "HetJobOffset", "PackJobId", "PackJobOffset", "DerivedExitCode",
    "ExitCode",
)  # fmt: skip
"""Fields of a line, over Slurm's versions."""
_KEY = re.compile(rf"(?:^| )({'|'.join(_KEYS)})=")
_FREE_TEXT = {
    "Name": r"JobState=\S* Partition=\S* TimeLimit=\S* StartTime=\S* EndTime=\S* ",
    "WorkDir": r"ReservationName=\S* (?:Gres=\S* )?(?:Tres=\S* )?Account=",
}
"""Fields that may hold the keys of others, and what follows them."""
_TEXT = {key: re.compile(rf" {key}=(.*?)(?= {end})") for key, end in _FREE_TEXT.items()}
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,12}|Unknown|None|"
_COUNT = r"\d{1,9}|"
_FORMS = {
    "JobId": (r"\d{1,12}", "17"),
    **dict.fromkeys(
        ("SubmitTime", "StartTime", "EndTime", "EligibleTime"), (_TIME, "2026-03-01T09:30:00")
    ),
    "TimeLimit": (r"\d{1,9}|UNLIMITED|Partition_Limit|INVALID|", "120 (minutes)"),
    **dict.fromkeys(("NodeCnt", "ProcCnt"), (_COUNT, "8")),
    **dict.fromkeys(("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"), (_COUNT, "2")),
}
"""Regular expression and example of fields that are not free text."""
_NEEDED = ("JobId", "SubmitTime", "StartTime", "EndTime")
_NONE = ("", "(null)", "Unknown", "None")
_COLUMNS = {
    "Submit": "SubmitTime", "Start": "StartTime", "End": "EndTime", "Eligible": "EligibleTime",
    "Timelimit": "TimeLimit", "State": "JobState", "AllocCPUS": "ProcCnt", "NNodes": "NodeCnt",
    "ReqTRES": "Tres", "JobName": "Name", "Account": "Account", "Partition": "Partition",
    "QOS": "QOS", "NodeList": "NodeList",
}  # fmt: skip
"""Columns of `sim.traces.sacct` and the fields that they are read from."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    tasks: Literal["cpus", "nodes"] = "cpus",
    arrays: Literal["job", "jobs"] = "job",
    gang: bool = True,
    queue: Literal["Partition", "Account"] = "Partition",
) -> Workload:
    """Read a file of lines ``JobId=17 UserId=ann(1001) ... StartTime=... EndTime=... ...``.

    A line, an allocation that has ended, becomes a job as in `sim.traces.sacct`, with the same
    columns: ``requested_s`` is the time limit (null: unlimited); ``recorded_start_s`` and
    ``recorded_finish_s`` are when the job really ran, ``recorded_eligible_s`` is when it was free
    to start; ``account``, ``partition`` and ``qos``; ``node_list`` of ``stages``. Jobs are sorted
    by submission, those of the same second by ``JobId``, as Slurm writes a line when a job ends.
    Times are shifted so that the first is 0.

    Parameters
    ----------
    path : path-like
        Plain or gzipped (detected from content). A line needs ``JobId``, ``SubmitTime``,
        ``StartTime`` and ``EndTime``.
    on_bad_row : {"error", "skip"}
        Lines of another form: raise, or drop and count.
    state : {"all", "completed"}
        Keep all jobs, or only those that are COMPLETED.
    tasks : {"cpus", "nodes"}
        A task per CPU, which demands one ``cpu``; or a task per node, which demands the job's share
        of a node: ``cpu``, ``mem`` (GiB, as requested) and ``gpu``.
    arrays : {"job", "jobs"}
        Treat an array as one job, or each of its elements as a job.
    gang : bool
        False lets the tasks of a job start one by one.
    queue : {"Partition", "Account"}
        Field that is the queue.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts
        ``dropped``, ``filled`` and ``noticed`` by rule, as `sim.traces.sacct.read`; a job that had
        no node never started.

    Raises
    ------
    InputError
        With file, line and rule: "wrong line", "missing value", "text of another form",
        "not UTF-8", "not text", "empty file", "no job left".
    """
    first_line(path)  # refuses files that are not text
    columns: dict[str, list[str | None]] = {
        name: [] for name in ("JobId", "JobID", "User", *_COLUMNS)
    }
    bad = BadRows()
    for line, text in enumerate(read_bytes(path).split(b"\n"), 1):
        if text.strip():
            with handle_bad_line(path, line, on_bad_row, bad):
                record = _parse_line(text)
                for name, column in columns.items():
                    column.append(record[name])
    if not columns["JobID"]:
        raise no_job_left(path, bad)
    numbers = np.array([int(job or 0) for job in columns.pop("JobId")])
    by_number = pa.array(np.argsort(numbers, kind="stable"))
    log: dict[str, Any] = {
        name: pa.array(column, pa.string()).take(by_number) for name, column in columns.items()
    }
    return build_workload(
        path, "slurm_jobcomp", log, bad, state=state, tasks=tasks, arrays=arrays, gang=gang,
        queue=queue,
    )  # fmt: skip


def _parse_line(raw: bytes) -> dict[str, str | None]:
    """Return a line's values by the names of columns; None for unknown ones."""
    try:
        line = raw.decode().strip()
    except UnicodeDecodeError as error:
        raise BadLineError("not UTF-8", f"the line is not UTF-8 ({error})") from None
    free_text = {}
    for key, pattern in _TEXT.items():
        if (match := pattern.search(line)) is not None:
            free_text[key] = match[1]
            line = line[: match.start(1)] + line[match.end(1) :]
    parts = _KEY.split(line)
    fields = dict(zip(reversed(parts[1::2]), reversed(parts[2::2]), strict=True))  # first ones win
    fields |= free_text
    if parts[0] or "JobId" not in fields:
        message = f"the line must begin with JobId=, not {line[:40]!r}"
        raise BadLineError("wrong line", message)
    for name in _NEEDED:
        if name not in fields:
            raise BadLineError("missing value", f"{name} is missing")
    for name, (form, example) in _FORMS.items():
        value = fields.get(name, "")
        if not re.fullmatch(form, value) and name in fields:
            message = f"{name} is {value[:40]!r}; it must be like {example}"
            raise BadLineError("text of another form", message)
    if fields.get("NodeCnt") == "0":
        fields["StartTime"] = ""
    record = {name: fields.get(field, "") for name, field in _COLUMNS.items()}
    record["JobId"] = record["JobID"] = fields["JobId"]
    for job, part, sign in (("ArrayJobId", "ArrayTaskId", "_"), ("HetJobId", "HetJobOffset", "+")):
        if fields.get(job) and fields.get(part):
            record["JobID"] = f"{fields[job]}{sign}{fields[part]}"
    record["User"] = re.sub(r"\(\d+\)$", "", fields.get("UserId", ""))
    return {name: None if value in _NONE else value for name, value in record.items()}
