"""Reader of Microsoft's Philly traces: training jobs of 2017, with all attempts at each.

Source: https://github.com/msr-fiddle/philly-traces, ``cluster_job_log`` (Jeon et al., *Analysis of
large-scale multi-tenant GPU clusters for DNN training workloads*, ATC 2019).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import (
    BadLineError,
    BadRows,
    Field,
    Layout,
    OnBadRow,
    check_text,
    first_line,
    handle_bad_line,
    json_field,
    json_records,
    no_job_left,
    open_text,
    read_columns,
)
from sim.traces.table.build import Options, build_workload, report_of
from sim.traces.table.raw import RawTable, to_log
from sim.traces.table.tasks import Tasks
from sim.workload.workload import Workload

MACHINES = "cluster_machine_list"
_TEXTS = {"job_id": "jobid", "user": "user", "queue": "vc", "state": "status"}
_TIMES = ("submit_s", "start_s", "end_s")
_COLUMNS = {
    **dict.fromkeys((*_TEXTS, *_TIMES), pa.string()),
    **dict.fromkeys(("run_s", "gpus", "nodes"), pa.float64()),
}
_NOTHING = ("", "None")
_FORM = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$")
_HINT = "the repository's trace-data.tar.gz (Git LFS), or its form; a CSV: trace=table"
Notice = Callable[[str], None]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    tasks: Tasks | None = None,
    zone: str | None = None,
) -> Workload:
    """Read the log of jobs.

    A job runs as long as all attempts at it together: those that failed held its GPUs, too, and the
    gaps between them are left out. It is a gang of a task a node, with the GPUs of its first
    attempt, as the authors count them. ``queue`` is the virtual cluster. ``recorded_start_s`` is
    when the first attempt began, ``recorded_finish_s`` the end of the last, without the gaps. The
    log has neither CPUs nor memory.

    Parameters
    ----------
    path : path-like
        ``cluster_job_log``, plain or compressed.
    on_bad_row : {"error", "skip"}
        Jobs with missing or invalid fields: raise, or drop and count.
    state : {"all", "completed"}
        Keep all jobs that ran, or only those that passed.
    tasks : {"nodes", "gpus", "job"} or None
        A task per node (None), per GPU, or one a job.
    zone : str or None
        Zone of the times, which the trace does not tell; None: UTC.

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule ``dropped`` (jobs without an attempt, or that still ran)
        and ``noticed`` (jobs of several attempts, attempts without start or end); ``account`` holds
        the log's work by what became of it.

    Raises
    ------
    InputError
        With file, line and rule: "not JSON", "wrong line", "wrong type", "missing value",
        "wrong time", "no job left", and those of ``trace=table``.
    """
    bad, noticed = BadRows(), dict[str, int]()
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def notice(rule: str) -> None:
        noticed[rule] = noticed.get(rule, 0) + 1

    for line, record, _ in json_records(path, (), _HINT):
        with handle_bad_line(path, line, on_bad_row, bad):
            job = _parse(record, notice)
            for name, values in columns.items():
                values.append(job.get(name))
    if not columns["submit_s"]:
        raise no_job_left(path, bad)
    arrays = {name: pa.array(columns[name], kind) for name, kind in _COLUMNS.items()}
    raw = RawTable(arrays, dict(zip(arrays, arrays, strict=True)), True, bad, (), [])
    report = report_of(raw, noticed)
    log = to_log(path, raw, {"run_s": "s"}, zone, {}, noticed)
    options = Options(state == "completed", tasks, "worker", True, "submit")
    return build_workload(path, log, bad, report, options).with_meta({"name": "philly"})


@checked
def cluster(
    path: str | os.PathLike[str],
    *,
    begin_s: float = 0.0,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    tasks: Tasks | None = None,
    zone: str | None = None,
) -> dict[str, Any]:
    """Return the machines of ``cluster_machine_list`` as options (``cluster=from_trace``).

    A class is a size of GPU memory, as the trace does not tell the models.

    Parameters
    ----------
    path : path-like
        ``cluster_job_log``, beside which the list lies.
    on_bad_row : {"error", "skip"}
        Machines with invalid values: raise, or leave out.
    begin_s, state, tasks, zone
        Of no effect.

    Raises
    ------
    InputError
        "missing file", and with line and rule those of `sim.base.reading.read_blocks`.
    """
    file, bad = Path(path).with_name(MACHINES), BadRows()
    if not file.is_file():
        text = f"there is no {MACHINES} beside {Path(path).name}"
        raise InputError(text, file=file, rule="missing file")
    has_header = not first_line(file).split(",")[-1].strip()[:1].isdigit()
    layout = Layout(("machine", "gpus", "memory"), skip_lines=int(has_header))
    fields = {"gpus": Field("whole", required=True, low=1), "memory": Field(required=True)}
    with open_text(file) as stream:
        rows = read_columns(file, stream, layout, fields, on_bad_row, bad)
    kinds = Counter(zip(rows["memory"].to_pylist(), rows["gpus"].tolist(), strict=True))
    if not kinds:
        raise no_job_left(file, bad)
    shape = [
        {"class": memory.strip(), "count": count, "devices": {"gpu": int(gpus)}}
        for (memory, gpus), count in sorted(kinds.items())
    ]
    return {"shape": shape, "count": 1}


def _parse(record: Any, notice: Notice) -> dict[str, Any]:
    """Return the columns of a job."""
    job: dict[str, Any] = {
        name: check_text(field, json_field(record, field, str)) or None
        for name, field in _TEXTS.items()
    }
    job["submit_s"] = _time(record, "submitted_time")
    if job["job_id"] is None or job["submit_s"] is None:
        raise BadLineError("missing value", "a job must have a jobid and a submitted_time")
    attempts = json_field(record, "attempts", list)
    if not attempts:
        return job
    details = [json_field(attempt, "detail", list) for attempt in attempts]
    n_gpus = [sum(len(json_field(node, "gpus", list)) for node in nodes) for nodes in details]
    job["gpus"], job["nodes"] = n_gpus[0], len(details[0])
    if len({*n_gpus}) > 1:
        notice("jobs whose attempts differ in their GPUs: as the first")
    job |= _times([(_time(x, "start_time"), _time(x, "end_time")) for x in attempts], notice)
    return job


def _times(spans: Sequence[tuple[str | None, str | None]], notice: Notice) -> dict[str, Any]:
    """Return start, end and run time; those of a job whose last attempt has no end lack the end."""
    last_start, last_end = spans[-1]
    if last_start is not None and last_end is None:
        return {"start_s": spans[0][0] or last_start, "state": "running"}
    known = []
    for start, end in spans:
        if start is None or end is None:
            notice("attempts without a start or an end: left out")
        elif len(spans) > 1 and end < start:
            notice("attempts that end before they start: left out")
        else:
            known.append((start, end))
    if len(spans) > 1:
        notice("jobs of several attempts: run times added")
    if not known:
        return {}
    if len(known) == 1:
        return {"start_s": known[0][0], "end_s": known[0][1]}
    lasted = (datetime.fromisoformat(b) - datetime.fromisoformat(a) for a, b in known)
    return {"start_s": known[0][0], "run_s": sum(span.total_seconds() for span in lasted)}


def _time(record: Any, name: str) -> str | None:
    """Return a time as the log writes it; None for none."""
    text = json_field(record, name, str)
    if text in _NOTHING:
        return None
    try:
        if not _FORM.match(text):
            raise ValueError
        datetime.fromisoformat(text)
    except ValueError:
        form = "2017-10-07 01:12:09"
        raise BadLineError("wrong time", f"{name} must be like {form}, not {text!r}") from None
    return text
