"""Reader of Slurm's file of completed jobs, which its plugin ``jobcomp/filetxt`` writes.

Source: Slurm, ``src/plugins/jobcomp/filetxt/jobcomp_filetxt.c`` (fields and their order), and the
manual of slurm.conf, https://slurm.schedmd.com/slurm.conf.html (``JobCompType``, ``JobCompLoc``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import (
    BadLineError,
    BadRows,
    OnBadRow,
    first_line,
    no_job_left,
    read_bytes,
)
from sim.traces.sacct.columns import NO_LIMIT_TEXT, UNKNOWN_TEXT, take
from sim.traces.sacct.options import Arrays, Options, Queue, Release, State, Tasks
from sim.traces.sacct.record_list import RecordList
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
_TIME = rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{{1,12}}|{UNKNOWN_TEXT}|"
_COUNT = r"\d{1,9}|"
_FORMS = {
    "JobId": (r"\d{1,12}", "17"),
    **dict.fromkeys(
        ("SubmitTime", "StartTime", "EndTime", "EligibleTime"), (_TIME, "2026-03-01T09:30:00")
    ),
    "TimeLimit": (rf"\d{{1,9}}|{NO_LIMIT_TEXT}|{UNKNOWN_TEXT}|", "120 (minutes)"),
    **dict.fromkeys(("NodeCnt", "ProcCnt"), (_COUNT, "8")),
    **dict.fromkeys(("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset"), (_COUNT, "2")),
}
"""Regular expression and example of fields that are not free text."""
_NUMBER = "JobId"
"""Column of the number by which lines are sorted, beside the id (``JobID``)."""
_NEEDED = ("JobId", "SubmitTime", "StartTime", "EndTime")
_NOTHING = ("", "(null)")
_UNKNOWN = re.compile(UNKNOWN_TEXT)
_NAMES = ("JobName", "User", "Account", "Partition", "QOS", "Cluster")
"""Columns of names, which may be any word, even ``none``."""
_SACCT = re.compile(rb"(?!JobId=)[^|]*(\|[^|]*){4}")
"""Beginning of a line of ``sacct --parsable2``."""
_NO_SUBMISSION: Final = (
    "no line has SubmitTime, which older versions of Slurm do not write: when jobs were submitted, "
    "and so how long they waited, is not in this log; write it with sacct (trace=sacct), or make a "
    "table of the jobs, submitted when they started (trace=table)"
)
_COLUMNS = {
    "Submit": "SubmitTime", "Start": "StartTime", "End": "EndTime", "Eligible": "EligibleTime",
    "TimelimitRaw": "TimeLimit", "State": "JobState", "AllocCPUS": "ProcCnt", "NNodes": "NodeCnt",
    "ReqTRES": "Tres", "JobName": "Name", "Account": "Account", "Partition": "Partition",
    "QOS": "QOS", "NodeList": "NodeList", "Cluster": "Cluster",
}  # fmt: skip
"""Columns of `sim.traces.sacct` and the fields that they are read from."""


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: State = "all",
    tasks: Tasks = "cpus",
    arrays: Arrays = "auto",
    gang: bool = True,
    queue: Queue = "Partition",
    release: Release = "eligible",
    gpu_types: bool = False,
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
        Plain or compressed (detected from content). A line needs ``JobId``, ``SubmitTime``,
        ``StartTime`` and ``EndTime``.
    on_bad_row : {"error", "skip"}
        Lines of another form: raise, or drop and count.
    state, tasks, arrays, gang, queue, release, gpu_types
        As of `sim.traces.sacct.read`; memory is that requested.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts
        ``dropped``, ``filled`` and ``noticed`` by rule, and has the ``account``, as
        `sim.traces.sacct.read`; a job that had no node never started.

    Raises
    ------
    InputError
        With file, line and rule: "wrong line", "missing value", "text of another form",
        "two formats", "not UTF-8", "not text", "empty file", "no job left".
    """
    first_line(path)  # refuses files that are not text
    bad = BadRows()
    records = RecordList(path, (_NUMBER, "JobID", "User", *_COLUMNS), on_bad_row, bad)
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    needs_submission = not any(b" SubmitTime=" in line for line in lines)
    for number, line in enumerate(lines, 1):
        if line.strip():
            record, error = _parse_line(line)
            if error is not None:
                _check_format(path, number, line, needs_submission)
            records.add(number, record, error)
    log = records.columns()
    if not len(records):
        raise no_job_left(path, bad)
    numbers = np.array([int(job or 0) for job in log.pop(_NUMBER).to_pylist()])
    log = take(log, np.argsort(numbers, kind="stable"))
    options = Options(state, tasks, arrays, gang, queue, release, gpu_types)
    return build_workload(path, "slurm_jobcomp", log, bad, options)


def _check_format(
    path: str | os.PathLike[str], number: int, line: bytes, needs_submission: bool
) -> None:
    """Refuse a file of which no line has a submission, and one that has lines of sacct too."""
    if needs_submission and line.startswith(b"JobId="):
        raise InputError(_NO_SUBMISSION, file=path, line=number, rule="missing value")
    if _SACCT.match(line):
        raise InputError(
            "the file has two formats: this line is of sacct (trace=sacct), others are of Slurm's "
            "jobcomp/filetxt; give each a file of its own",
            file=path,
            line=number,
            rule="two formats",
        )


def _parse_line(raw: bytes) -> tuple[dict[str, str | None], BadLineError | None]:
    """Return a line's values by the names of columns, None for unknown ones; and its first error.

    A value that is an error is unknown.
    """
    try:
        line = raw.decode().strip()
    except UnicodeDecodeError as error:
        return {}, BadLineError("not UTF-8", f"the line is not UTF-8 ({error})")
    fields = _fields(line)
    if fields is None:
        message = f"the line must begin with JobId=, not {line[:40]!r}"
        return {}, BadLineError("wrong line", message)
    errors = [
        BadLineError("missing value", f"{name} is missing")
        for name in _NEEDED
        if name not in fields
    ]
    for name, (form, example) in _FORMS.items():
        value = fields.get(name, "")
        if not re.fullmatch(form, value) and name in fields:
            message = f"{name} is {value[:40]!r}; it must be like {example}"
            errors.append(BadLineError("text of another form", message))
            fields[name] = ""
    return _record(fields), errors[0] if errors else None


def _fields(line: str) -> dict[str, str] | None:
    """Return the fields of a line; None if it does not begin with a job's number."""
    free_text = {}
    for key, pattern in _TEXT.items():
        if (match := pattern.search(line)) is not None:
            free_text[key] = match[1]
            line = line[: match.start(1)] + line[match.end(1) :]
    parts = _KEY.split(line)
    fields = dict(zip(reversed(parts[1::2]), reversed(parts[2::2]), strict=True))  # first ones win
    return None if parts[0] or "JobId" not in fields else fields | free_text


def _record(fields: Mapping[str, str]) -> dict[str, str | None]:
    record = {name: fields.get(field, "") for name, field in _COLUMNS.items()}
    had_no_node = fields.get("NodeCnt") == "0"
    if had_no_node or (not _known(record["NodeList"]) and record["Start"] == record["End"]):
        record["Start"] = ""
    record[_NUMBER] = record["JobID"] = fields["JobId"]
    for job, part, sign in (("ArrayJobId", "ArrayTaskId", "_"), ("HetJobId", "HetJobOffset", "+")):
        if fields.get(job) and fields.get(part):
            record["JobID"] = f"{fields[job]}{sign}{fields[part]}"
    record["User"] = re.sub(r"\(\d+\)$", "", fields.get("UserId", ""))
    return {
        name: value if _known(value, name in _NAMES) else None for name, value in record.items()
    }


def _known(value: str, is_name: bool = False) -> bool:
    return value not in _NOTHING and (is_name or not _UNKNOWN.fullmatch(value))
