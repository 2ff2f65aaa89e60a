"""Reader of Alibaba's cluster-trace-gpu-v2020: machine-learning jobs of PAI, of several roles each.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2020 (Weng et al., *MLaaS in the
wild: workload analysis and scheduling in large-scale heterogeneous GPU clusters*, NSDI 2022).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    no_job_left,
    open_text,
    read_columns,
)
from sim.traces.table.build import Options, build_workload, report_of
from sim.traces.table.columns import Columns
from sim.traces.table.csv_rows import read_csv
from sim.traces.table.raw import RawTable, to_log
from sim.workload.workload import Workload

TASKS, JOBS = "pai_task_table.csv", "pai_job_table.csv"
MACHINES = "pai_machine_spec.csv"
HEADERS: Final = {
    TASKS: (
        "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
        "plan_mem", "plan_gpu", "gpu_type",
    ),
    JOBS: ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    MACHINES: ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
}  # fmt: skip
"""Columns of the files, which have no header line."""
_OF_TASKS: Columns = {
    "part_of": "job_name", "job_id": "task_name", "workers": "inst_num", "state": "status",
    "start_s": "start_time", "end_s": "end_time", "cpus": "plan_cpu", "mem": "plan_mem",
    "gpus": "plan_gpu", "gpu_type": "gpu_type",
}  # fmt: skip
_OF_JOBS: Columns = {"job_id": "job_name", "user": "user", "submit_s": "start_time"}
_UNITS = {
    **dict.fromkeys(("submit_s", "start_s", "end_s"), "s"),
    "cpus": "percent", "gpus": "percent", "mem": "GiB",
}  # fmt: skip
_STATES = {"state": {"Terminated": "completed"}}


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    gang: bool = True,
    models: bool = False,
) -> Workload:
    """Read the tables of jobs and tasks: a job is submitted by the one, and runs by the other.

    A stage is a role (worker, parameter server, ...), a task an instance of it, which demands
    ``cpu``, ``mem`` (GiB) and ``gpu``, parts of one included. Every instance lasts as long as its
    role, as the table of instances is not read. The wait of a job ends with its first role's start.

    Parameters
    ----------
    path : path-like
        Folder of ``pai_task_table.csv`` and ``pai_job_table.csv``.
    on_bad_row : {"error", "skip"}
        Lines with invalid values: raise, or drop and count.
    state : {"all", "completed"}
        Keep all roles that ran, or only those that ended well (Terminated).
    gang : bool
        True: all instances of all roles of a job start together.
    models : bool
        True: an instance takes only the model of GPU that it ran on, a class of the cluster's
        machines (T4, P100, V100, MISC, ...).

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule ``dropped`` (roles that never started, or still ran; whose
        job is not in the table of jobs), ``filled`` and ``noticed`` (jobs without a role).

    Raises
    ------
    InputError
        "missing file", and those of ``trace=table``, with file, line and rule.
    """
    files = {name: _file(path, name) for name in (TASKS, JOBS)}
    tasks = read_csv(files[TASKS], _finder(_OF_TASKS), on_bad_row, _STATES, HEADERS[TASKS])
    jobs = read_csv(files[JOBS], _finder(_OF_JOBS), on_bad_row, {}, HEADERS[JOBS])
    if not len(tasks.columns["job_id"]):
        raise no_job_left(files[TASKS], tasks.bad)
    noticed: dict[str, int] = {}
    columns = _joined(tasks.columns, jobs.columns, noticed)
    if not models:
        del columns["gpu_type"]
    tasks.bad.readable = [(rule, _like(columns, block)) for rule, block in tasks.bad.readable]
    jobs.bad.readable = []
    tasks.bad.merge(jobs.bad)
    name_of = {column: column for column in columns}
    raw = RawTable(columns, name_of, tasks.is_dates or jobs.is_dates, tasks.bad, (), tasks.more)
    if raw.is_dates:
        text = "times must be s, as the trace has them, not dates"
        raise InputError(text, file=files[JOBS], rule="wrong type")
    report = report_of(raw, noticed)
    log = to_log(files[TASKS], raw, _UNITS, None, {}, noticed)
    options = Options(state == "completed", "workers", "worker", gang, "submit")
    workload = build_workload(files[TASKS], log, tasks.bad, report, options)
    return workload.with_meta({"name": "pai2020"})


@checked
def cluster(
    path: str | os.PathLike[str],
    *,
    begin_s: float = 0.0,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    gang: bool = True,
    models: bool = False,
) -> dict[str, Any]:
    """Return the machines of ``pai_machine_spec.csv`` as options (``cluster=from_trace``).

    A class is a model of GPU. The machines are there all the time, and for all jobs.

    Parameters
    ----------
    path : path-like
        The folder.
    on_bad_row : {"error", "skip"}
        Machines with invalid values: raise, or leave out.
    begin_s, state, gang, models
        Of no effect.

    Raises
    ------
    InputError
        "missing file", and with line and rule those of `sim.base.reading.read_blocks`.
    """
    file, bad = _file(path, MACHINES), BadRows()
    fields = {name: Field("number", required=True) for name in HEADERS[MACHINES][2:]}
    fields |= {"gpu_type": Field(required=True), "cap_gpu": Field("whole", required=True)}
    with open_text(file) as stream:
        rows = read_columns(file, stream, Layout(HEADERS[MACHINES]), fields, on_bad_row, bad)
    amounts = zip(*(rows[name].tolist() for name in HEADERS[MACHINES][2:]), strict=True)
    kinds = Counter(zip(rows["gpu_type"].to_pylist(), amounts, strict=True))
    if not kinds:
        raise no_job_left(file, bad)
    shape = []
    for (model, (cpu, mem, gpu)), count in sorted(kinds.items()):
        kind = {"class": model, "count": count, "cpu": cpu, "mem": mem}
        shape.append(kind | ({"devices": {"gpu": int(gpu)}} if gpu else {}))
    return {"shape": shape, "count": 1}


def _file(path: str | os.PathLike[str], name: str) -> Path:
    """Return a file of a folder, plain or compressed."""
    files = [Path(path) / f"{name}{end}" for end in ("", ".gz", ".zst", ".xz", ".bz2")]
    for file in files:
        if file.is_file():
            return file
    text = f"the folder has no {name}, plain or compressed; unpack {name[:-4]}.tar.gz there"
    raise InputError(text, file=path, rule="missing file")


def _finder(columns: Columns) -> Any:
    def find(_: Sequence[str]) -> tuple[Columns, tuple[str, ...]]:
        return columns, ()

    return find


def _joined(
    tasks: dict[str, pa.Array], jobs: dict[str, pa.Array], noticed: dict[str, int]
) -> dict[str, pa.Array]:
    """Return the rows of tasks with the user and the submission of their jobs."""
    position = pc.index_in(tasks["part_of"], value_set=jobs["job_id"], skip_nulls=True)
    n_without = len(set(jobs["job_id"].to_pylist()) - set(tasks["part_of"].to_pylist()))
    if n_without:
        noticed["jobs without a task: left out"] = n_without
    names = pc.binary_join_element_wise(
        pc.fill_null(tasks["part_of"], ""), pc.fill_null(tasks["job_id"], ""), "/"
    )
    theirs = {name: jobs[name].take(position) for name in ("user", "submit_s")}
    return {**tasks, "job_id": names, **theirs}


def _like(columns: dict[str, pa.Array], block: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of bad rows, of which those of the jobs are unknown."""
    n_rows = len(next(iter(block.values()), ()))
    return {name: block.get(name, pa.nulls(n_rows, pa.string())) for name in columns}
