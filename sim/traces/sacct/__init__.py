"""Slurm's accounting, as ``sacct --allusers --parsable2`` prints it, with whatever columns it has.

Source: the manual of sacct, https://slurm.schedmd.com/sacct.html (fields, states, forms of times).
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.parameters import checked
from sim.base.reading import (
    Field,
    Layout,
    OnBadRow,
    column_names,
    count_rule,
    no_job_left,
    open_text,
    read_columns,
    valid_rows,
)
from sim.traces.sacct.columns import (
    MEMORY,
    limits_s,
    numbers,
    requested_gib,
    resources,
    spans_s,
    times_s,
)
from sim.traces.swf import ZERO_BECOMES_S
from sim.workload.workload import Workload

_NEEDED = ("JobID", "Submit", "Start", "End/Elapsed/ElapsedRaw")
_HINT = (
    "; run sacct with --parsable2, without --noheader, and with "
    "--format=JobID,User,Partition,Submit,Start,End,Timelimit,State,AllocCPUS,NNodes"
)
_TIME = Field(
    form=r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,12}|Unknown)$", example="2026-03-01T09:30:00"
)
_SPAN = Field(
    form=r"^((\d{1,6}-)?(\d{1,6}:)?\d{1,9}(:\d+(\.\d+)?)?|UNLIMITED|Partition_Limit|INVALID)$",
    example="1-02:03:04",
)
_COUNT = Field(form=r"^\d{1,12}$", example="90")
_FIELDS = {
    "JobID": Field(required=True),
    **dict.fromkeys(("Submit", "Start", "End"), _TIME),
    **dict.fromkeys(("Elapsed", "Timelimit"), _SPAN),
    **dict.fromkeys(("ElapsedRaw", "TimelimitRaw"), _COUNT),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "AllocNodes"), Field("whole")),
    "Priority": Field("number"),
    "ReqMem": Field(form=rf"^({MEMORY}|\?)$", example="4000M"),
    **dict.fromkeys(("State", "User", "JobName", "Account", "Partition"), Field()),
    **dict.fromkeys(("AllocTRES", "ReqTRES"), Field()),
}
_NOT_ENDED = "^(PENDING|RUNNING|SUSPENDED|REQUEUED|RESIZING|CONFIGURING|COMPLETING)"


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
    """Read what ``sacct --allusers --parsable2 --format=JobID,Submit,Start,End,...`` printed.

    A record of an allocation becomes a job; records of steps (``17.batch``, ``17.0``) are not read,
    as their job has them already. All that was submitted as one array is one job, a stage for each
    element, if an element is one task; elements of more are rigid and become jobs of their own.
    Jobs are sorted by submission, and times are shifted so that the first comes at 0. The column
    ``requested_s`` of ``jobs`` keeps the time limit (null: unlimited or unknown).

    Parameters
    ----------
    path : path-like
        Plain or gzipped (told by content), with its line of names: ``JobID``, ``Submit``, ``Start``
        and ``End``, ``Elapsed`` or ``ElapsedRaw``. Read where there: ``State``, ``Timelimit`` or
        ``TimelimitRaw``, ``AllocCPUS`` (or ``NCPUS``, ``ReqCPUS``), ``NNodes`` (``AllocNodes``),
        ``AllocTRES`` (``ReqTRES``), ``ReqMem``, ``User``, ``Account``, ``Partition``, ``JobName``
        (the template), ``Priority``.
    on_bad_row : {"error", "skip"}
        Lines with another number of fields, or text where there should be a time: raise, or leave
        out and count.
    state : {"all", "completed"}
        Keep jobs however they ended, or only those that are COMPLETED.
    tasks : {"cpus", "nodes"}
        A task for each CPU, which demands one ``cpu``, as logs of parallel jobs are usually
        simulated; or one for each node, which demands what a node gave: ``cpu``, ``mem`` (GiB) and
        ``gpu``.
    arrays : {"job", "jobs"}
        Whether an array is a job or each of its elements is.
    gang : bool
        False lets the tasks of a job start one by one.
    queue : {"Partition", "Account"}
        Which of them is the queue.

    Returns
    -------
    Workload
        ``meta["report"]`` counts by rule what was ``dropped`` (steps; jobs that never started or
        have not ended; earlier records of a requeued job; not completed, if asked), ``filled`` in
        (CPUs or memory unknown, run times of 0 s, which become 0.5 s) and ``noticed`` (parts of
        heterogeneous jobs and elements of arrays that became jobs of their own).

    Raises
    ------
    InputError
        With file, line and rule: "no header", "missing column", "wrong time", "empty file",
        "no job left", and those of `sim.base.reading.read_blocks`.
    """
    names = column_names(path, "|", _NEEDED, _HINT)
    bad: dict[str, int] = {}
    fields = {name: field for name, field in _FIELDS.items() if name in names}
    with open_text(path) as stream:
        layout = Layout(names, delimiter="|", skip_lines=1, quoted=False)
        log = read_columns(path, stream, layout, fields, on_bad_row, bad)
    report: dict[str, Any] = {"rows": len(log["JobID"]) + sum(bad.values()), "bad_rows": bad}
    report |= {"dropped": {}, "filled": {}, "noticed": {}}
    log, submit_s, run_s = _ran(log, state == "completed", report["dropped"])
    if not len(submit_s):
        raise no_job_left(path, {**bad, **report["dropped"]})
    count_rule(report["filled"], f"0 s becomes {ZERO_BECOMES_S} s", run_s == 0)
    run_s = np.where(run_s == 0, ZERO_BECOMES_S, run_s)
    width, demands = _widths(log, tasks, report["filled"])
    job_of, first, ids = _jobs(log["JobID"], width, arrays == "job", report["noticed"])
    alone = np.bincount(job_of, minlength=len(first)) == 1
    n_tasks = np.bincount(job_of, weights=width, minlength=len(first))
    grouped = np.argsort(job_of, kind="stable")
    head = {name: _take(column, first) for name, column in log.items()}
    return Workload.from_tables(
        jobs={
            "job_id": ids,
            "submit_s": submit_s[first] - submit_s[0],
            "template": _words(head, "JobName", "", report["filled"]),
            "user": _words(head, "User", "", report["filled"]),
            "queue": _words(head, queue, "default", report["filled"]),
            "priority": np.nan_to_num(numbers(head, "Priority")),
            "min_tasks": np.where(gang & alone, n_tasks, 0),
            "requested_s": pa.array(limits_s(head), from_pandas=True),
        },
        stages={
            "job": job_of[grouped],
            "n_tasks": width[grouped],
            "duration_s": run_s[grouped],
            **{f"demand_{name}": column[grouped] for name, column in demands.items()},
        },
        meta={
            "name": "sacct",
            "quantum": {name: 1e-6 if name == "mem" else 1.0 for name in demands},
            "offset_s": float(submit_s[0]),
            "report": {**report, "jobs": len(first)},
        },
    )


def _ran(log: dict[str, Any], completed: bool, dropped: dict[str, int]) -> tuple[Any, F8, F8]:
    """Return the records of jobs that ran, by submission; their submission and run times, s."""
    ids = log["JobID"]
    submit_s, start_s, end_s = (times_s(log, name) for name in ("Submit", "Start", "End"))
    run_s = end_s - start_s
    for given in (spans_s(log, "Elapsed"), numbers(log, "ElapsedRaw")):
        run_s = np.where(np.isnan(given), run_s, given)
    state = log.get("State", pa.nulls(len(ids), pa.string()))
    rules = {
        "a step of a job": _true(pc.match_substring(ids, ".")),
        "not ended yet": _true(pc.match_substring_regex(state, _NOT_ENDED)),
        "submission unknown": np.isnan(submit_s),
        "never started": np.isnan(start_s),
        "run time unknown": ~(run_s >= 0),
    }
    if completed:
        rules["not completed"] = ~_true(pc.starts_with(state, "COMPLETED"))
    rows = np.flatnonzero(valid_rows(rules, dropped))
    backwards = _codes(_take(ids, rows))[::-1]
    last = np.zeros(len(rows), dtype=bool)
    last[len(rows) - 1 - np.unique(backwards, return_index=True)[1]] = True
    count_rule(dropped, "an earlier record of a requeued job", ~last)
    rows = rows[last]
    rows = rows[np.argsort(submit_s[rows], kind="stable")]
    return {name: _take(column, rows) for name, column in log.items()}, submit_s[rows], run_s[rows]


def _widths(log: dict[str, Any], tasks: str, filled: dict[str, int]) -> tuple[I8, dict[str, F8]]:
    """Return how many tasks each record has, and what each of them demands."""
    tres = {kind: resources(log, kind) for kind in ("AllocTRES", "ReqTRES")}

    def first(*columns: F8) -> F8:
        known = np.full(len(log["JobID"]), np.nan)
        for column in columns:
            known = np.where(np.isnan(known) & (column > 0), column, known)
        return known

    n_cpus = first(
        *(numbers(log, name) for name in ("AllocCPUS", "NCPUS")),
        *(tres[kind]["cpu"] for kind in tres),
        numbers(log, "ReqCPUS"),
    )
    count_rule(filled, "CPUs unknown: 1", np.isnan(n_cpus))
    n_cpus = np.where(np.isnan(n_cpus), 1.0, n_cpus)
    if tasks == "cpus":
        return n_cpus.astype(np.int64), {"cpu": np.ones(len(n_cpus))}
    n_nodes = first(
        *(numbers(log, name) for name in ("NNodes", "AllocNodes")),
        *(tres[kind]["node"] for kind in tres),
    )
    count_rule(filled, "nodes unknown: 1", np.isnan(n_nodes))
    n_nodes = np.where(np.isnan(n_nodes), 1.0, n_nodes)
    asked_gib = requested_gib(log, n_cpus, n_nodes)
    mem_gib = first(tres["AllocTRES"]["mem"], tres["ReqTRES"]["mem"], asked_gib)
    count_rule(filled, "memory unknown: 0", np.isnan(mem_gib))
    gpus = first(*(tres[kind]["gpu"] for kind in tres))
    return n_nodes.astype(np.int64), {
        "cpu": np.ceil(n_cpus / n_nodes),
        "mem": np.nan_to_num(mem_gib) / n_nodes,
        "gpu": np.ceil(np.nan_to_num(gpus) / n_nodes),
    }


def _jobs(
    ids: pa.Array, width: I8, arrays: bool, noticed: dict[str, int]
) -> tuple[I8, I8, pa.Array]:
    """Return the job of each record, each job's first record, and its id."""
    parts = _true(pc.match_substring(ids, "+"))
    count_rule(noticed, "part of a heterogeneous job, a job of its own", parts)
    of_array = _true(pc.match_substring_regex(ids, r"^\d+_\d+$"))
    if not arrays:
        return np.arange(len(ids)), np.arange(len(ids)), ids
    base = pc.if_else(pa.array(of_array), pc.replace_substring_regex(ids, "_.*", ""), ids)
    codes = _codes(base)
    rigid = np.zeros(codes.max() + 1, dtype=bool)
    np.logical_or.at(rigid, codes, of_array & (width > 1))
    apart = of_array & rigid[codes]
    count_rule(noticed, "element of an array that is parallel, a job of its own", apart)
    base = pc.if_else(pa.array(apart), ids, base)
    job_of = _codes(base)  # in the order in which they come first
    first = np.unique(job_of, return_index=True)[1]
    return job_of, first, _take(base, first)


def _words(log: dict[str, Any], name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    column = log.get(name)
    if column is None:
        return pa.array([unknown] * len(log["JobID"]), pa.string())
    missing = column.is_null().to_numpy(zero_copy_only=False)
    count_rule(filled, f"{name} unknown: {unknown!r}", missing)
    return column.fill_null(unknown)


def _true(match: pa.Array) -> Mask:
    answer: Mask = match.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return answer


def _codes(texts: pa.Array) -> I8:
    codes: I8 = texts.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _take(column: Any, rows: I8) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
