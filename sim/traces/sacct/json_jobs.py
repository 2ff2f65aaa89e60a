"""Jobs as ``sacct --json`` prints them, or slurmrestd's ``/slurmdb/.../jobs`` returns them.

Source: Slurm's OpenAPI of slurmdbd, https://slurm.schedmd.com/rest_api.html. Numbers are plain, or,
in newer versions, ``{"set": true, "infinite": false, "number": 4}``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from sim.base.errors import InputError
from sim.base.reading import (
    BadLineError,
    BadRows,
    OnBadRow,
    check_text,
    json_values,
    no_job_left,
    read_text,
)
from sim.traces.sacct.columns import SUBMIT_OPTIONS, Log
from sim.traces.sacct.record_list import RecordList

UNLIMITED: Final = "UNLIMITED"
_MEMORY_UNIT = "M"


def is_json(first_line: str) -> bool:
    """Tell whether a log is JSON, by its first line."""
    return first_line.lstrip()[:1] in ("{", "[")


def read_json(path: str | os.PathLike[str], on_bad_row: OnBadRow, bad: BadRows) -> Log:
    """Read the columns of a JSON file, by the names that ``sacct --parsable2`` has for them.

    Raises
    ------
    InputError
        If the file is no such JSON, or a job lacks its id or has a value of another type.
    """
    records = RecordList(path, (*_COLUMNS,), on_bad_row, bad)
    for line, position, job in _jobs(path):
        record: dict[str, str | None] = {}
        first: BadLineError | None = None
        for name, read in _COLUMNS.items():
            try:
                record[name] = read(job)
            except BadLineError as error:
                record[name] = None
                text = f"job {position} of the list: {error}"
                first = first or BadLineError(error.rule, text)
        records.add(line, record, first)
    log = records.columns()
    if not len(records):
        raise no_job_left(path, bad)
    return log


def _jobs(path: str | os.PathLike[str]) -> Iterator[tuple[int, int, Any]]:
    """Yield line of the answer, number and content of each job of all answers in a file."""
    for line, answer in json_values(path, read_text(path)):
        jobs = answer.get("jobs") if isinstance(answer, dict) else answer
        if not isinstance(jobs, list):
            raise InputError(
                "there is no list of jobs; write it with sacct --allusers --json, or take the "
                "answer of slurmrestd to /slurmdb/.../jobs",
                file=path,
                line=line,
                rule="wrong line",
            )
        for position, job in enumerate(jobs, 1):
            if isinstance(job, dict) and "submit_time" in job:
                raise InputError(
                    "these are jobs of squeue or scontrol --json, which forget them when they end; "
                    "write the file with sacct --allusers --json",
                    file=path,
                    line=line,
                    rule="wrong line",
                )
            yield line, position, job


def _value(job: Any, *path: str) -> Any:
    """Return a value inside a job; None if it is absent, unset or null; infinity for no limit."""
    value = job
    for key in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            where = ".".join(path[: path.index(key)]) or "it"
            raise BadLineError("wrong type", f"{where} must be an object, not {value!r:.40}")
        value = value.get(key)
    if isinstance(value, dict) and "number" in value:
        if value.get("infinite"):
            return UNLIMITED
        value = value["number"] if value.get("set", True) else None
    return value


def _number(*path: str, zero: bool = True) -> Callable[[Any], str | None]:
    """Return a reader of a whole number, as text; 0 is unknown unless `zero`."""

    def read(job: Any) -> str | None:
        value = _value(job, *path)
        if value is None:
            return None
        if value == UNLIMITED:
            return UNLIMITED
        if type(value) not in (int, float) or not 0 <= value < 1e12 or value != int(value):
            text = f"{'.'.join(path)} is {value!r:.40}; it must be a whole number of at least 0"
            raise BadLineError("number out of range", text)
        return str(int(value)) if value or zero else None

    return read


def _text(*path: str) -> Callable[[Any], str | None]:
    def read(job: Any) -> str | None:
        value = _value(job, *path)
        if isinstance(value, list):  # states, in newer versions
            value = value[0] if value else None
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            text = f"{'.'.join(path)} is {value!r:.40}; it must be a text"
            raise BadLineError("wrong type", text)
        return check_text(".".join(path), value)

    return read


def _first(*readers: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    """Return a reader of the first value that is known."""
    return lambda job: next((value for read in readers if (value := read(job)) is not None), None)


def _job_id(job: Any) -> str:
    """Return the id as ``sacct`` prints it: ``17``, ``17_3``, ``17_[4-9]`` or ``17+1``."""
    number = _number("job_id", zero=False)(job)
    if number is None:
        raise BadLineError("missing value", "job_id is missing")
    array, het = (_number(kind, "job_id", zero=False)(job) for kind in ("array", "het"))
    if array is not None:
        element, rest = _number("array", "task_id")(job), _text("array", "task")(job)
        if element is not None:
            return f"{array}_{element}"
        if rest is not None:
            return f"{array}_[{rest}]"
    if het is not None:
        return f"{het}+{_number('het', 'job_offset')(job) or 0}"
    return number


def _tres(*path: str) -> Callable[[Any], str | None]:
    """Return a reader of a list of resources, as text: ``cpu=4,mem=8192M,gres/gpu=2``."""

    def read(job: Any) -> str | None:
        items = _value(job, *path)
        if items is None:
            return None
        if not isinstance(items, list):
            raise BadLineError("wrong type", f"{'.'.join(path)} must be a list")
        parts = []
        for item in items:
            kind, name = _text("type")(item), _text("name")(item)
            count = _number("count")(item)
            if kind is not None and count is not None:
                unit = _MEMORY_UNIT if kind == "mem" else ""
                parts.append(f"{kind}{f'/{name}' if name else ''}={count}{unit}")
        return ",".join(parts)

    return read


def _memory(job: Any) -> str | None:
    """Return the memory asked for, MiB: for each CPU or node, or in all."""
    for key, unit in (("memory_per_cpu", "Mc"), ("memory_per_node", "Mn"), ("memory", "M")):
        amount = _number("required", key, zero=False)(job)
        if amount is not None and amount != UNLIMITED:
            return f"{amount}{unit}"
    return None


def _suspended(job: Any) -> str | None:
    """Return the time in which the job was suspended, as a span."""
    seconds = _number("time", "suspended")(job)
    return None if seconds is None else f"0:0:{seconds}"


def _option(name: str) -> Callable[[Any], str | None]:
    """Return a reader of an option that the command of submission has."""

    def read(job: Any) -> str | None:
        match = re.search(SUBMIT_OPTIONS[name], _text("submit_line")(job) or "")
        return match["value"] if match else None

    return read


_COLUMNS: Final[dict[str, Callable[[Any], str | None]]] = {
    "JobID": _job_id,
    "Cluster": _first(_text("cluster"), _text("association", "cluster")),
    "User": _first(_text("user"), _text("association", "user")),
    "Account": _first(_text("account"), _text("association", "account")),
    "Partition": _text("partition"),
    "QOS": _text("qos"),
    "JobName": _text("name"),
    "Submit": _number("time", "submission", zero=False),
    "Eligible": _number("time", "eligible", zero=False),
    "Start": _number("time", "start", zero=False),
    "End": _number("time", "end", zero=False),
    "ElapsedRaw": _number("time", "elapsed"),
    "Suspended": _suspended,
    "TimelimitRaw": _number("time", "limit"),
    "State": _first(_text("state", "current"), _text("job_state")),
    "ReqCPUS": _number("required", "CPUs", zero=False),
    "NNodes": _number("allocation_nodes"),
    "AllocTRES": _tres("tres", "allocated"),
    "ReqTRES": _tres("tres", "requested"),
    "ReqMem": _memory,
    "NodeList": _text("nodes"),
    "Priority": _number("priority"),
    "Dependency": _first(_text("dependency"), _option("Dependency")),
    "Throttle": _first(
        _number("array", "limits", "max", "running", "tasks", zero=False), _option("Throttle")
    ),
    "Begin": _option("Begin"),
    "Held": _option("Held"),
    "Licenses": _first(_text("licenses"), _option("Licenses")),
    "Reason": _text("state", "reason"),
}
"""Columns, and how each is read from a job."""
