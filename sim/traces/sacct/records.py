"""Build a workload from the records of Slurm's allocations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import BadRows, count_rule, no_job_left, resolution_s, valid_rows
from sim.traces.sacct.columns import (
    limits_s,
    numbers,
    requested_gib,
    resources,
    spans_s,
    times_s,
)
from sim.traces.swf import ZERO_BECOMES_S
from sim.workload.workload import Workload

_NOT_ENDED = "^(PENDING|RUNNING|SUSPENDED|REQUEUED|RESIZING|CONFIGURING|COMPLETING)"


def build_workload(
    path: str | os.PathLike[str],
    name: str,
    log: dict[str, Any],
    bad: BadRows,
    *,
    state: str,
    tasks: str,
    arrays: str,
    gang: bool,
    queue: str,
) -> Workload:
    """Build the workload of a log's records; see the options of `sim.traces.sacct.read`.

    Parameters
    ----------
    path : path-like
        The log, for messages.
    name : str
        Name of the workload.
    log : dict
        Columns by the names of ``sacct``'s fields; ``JobID``, ``Submit``, ``Start`` and one of
        ``End``, ``Elapsed`` and ``ElapsedRaw`` are required.
    bad : dict
        Counts of bad rows by rule.

    Raises
    ------
    InputError
        If no job is left.
    """
    report: dict[str, Any] = {"rows": len(log["JobID"]) + sum(bad.values()), "bad_rows": bad}
    report |= {"dropped": {}, "filled": {}, "noticed": {}}
    log, submit_s, start_s, end_s, run_s = _ran(log, state == "completed", report["dropped"])
    if not len(submit_s):
        raise no_job_left(path, {**bad, **report["dropped"]})
    count_rule(report["filled"], f"0 s becomes {ZERO_BECOMES_S} s", run_s == 0)
    run_s = np.where(run_s == 0, ZERO_BECOMES_S, run_s)
    width, demands = _widths(log, tasks, report["filled"])
    job, first, ids = _jobs(log["JobID"], width, arrays == "job", report["noticed"])
    is_single = np.bincount(job, minlength=len(first)) == 1
    n_tasks = np.bincount(job, weights=width, minlength=len(first))
    by_job = np.argsort(job, kind="stable")
    job0 = np.searchsorted(job[by_job], np.arange(len(first)))
    head = {field: _take(column, first) for field, column in log.items()}
    return Workload.from_tables(
        jobs={
            "job_id": ids,
            "submit_s": submit_s[first] - submit_s[0],
            "template": _filled(head, "JobName", "", report["filled"]),
            "user": _filled(head, "User", "", report["filled"]),
            "queue": _filled(head, queue, "default", report["filled"]),
            "priority": np.nan_to_num(numbers(head, "Priority")),
            "min_tasks": np.where(gang & is_single, n_tasks, 0),
            "requested_s": pa.array(limits_s(head), from_pandas=True),
            "recorded_start_s": np.minimum.reduceat(start_s[by_job], job0) - submit_s[0],
            "recorded_finish_s": np.maximum.reduceat(end_s[by_job], job0) - submit_s[0],
            **_more(head, submit_s[0]),
        },
        stages={
            "job": job[by_job],
            "n_tasks": width[by_job],
            "duration_s": run_s[by_job],
            "recorded_start_s": start_s[by_job] - submit_s[0],
            "recorded_finish_s": end_s[by_job] - submit_s[0],
            **{f"demand_{kind}": column[by_job] for kind, column in demands.items()},
            **_nodes(log, by_job),
        },
        meta={
            "name": name,
            "quantum": {kind: 1e-6 if kind == "mem" else 1.0 for kind in demands},
            "offset_s": float(submit_s[0]),
            "resolution_s": resolution_s(submit_s, start_s, end_s),
            "report": {**report, "jobs": len(first)},
        },
    )


def _ran(
    log: dict[str, Any], completed: bool, dropped: dict[str, int]
) -> tuple[Any, F8, F8, F8, F8]:
    """Return the records of jobs that ran, sorted by submission; submit, start, end, run time, s.

    Where the end is unknown, it is the start and the run time.
    """
    ids = log["JobID"]
    submit_s, start_s, end_s = (times_s(log, name) for name in ("Submit", "Start", "End"))
    run_s = end_s - start_s
    for recorded_s in (spans_s(log, "Elapsed"), numbers(log, "ElapsedRaw")):
        run_s = np.where(np.isnan(recorded_s), run_s, recorded_s)
    state = log.get("State", pa.nulls(len(ids), pa.string()))
    rules = {
        "a step of a job": _mask(pc.match_substring(ids, ".")),
        "not ended yet": _mask(pc.match_substring_regex(state, _NOT_ENDED)),
        "submission unknown": np.isnan(submit_s),
        "never started": np.isnan(start_s),
        "run time unknown": ~(run_s >= 0),
    }
    if completed:
        rules["not completed"] = ~_mask(pc.starts_with(state, "COMPLETED"))
    rows = np.flatnonzero(valid_rows(rules, dropped))
    backwards = _codes(_take(ids, rows))[::-1]
    last = np.zeros(len(rows), dtype=bool)
    last[len(rows) - 1 - np.unique(backwards, return_index=True)[1]] = True
    count_rule(dropped, "an earlier record of a requeued job", ~last)
    rows = rows[last]
    rows = rows[np.argsort(submit_s[rows], kind="stable")]
    end_s = np.where(np.isnan(end_s), start_s + run_s, end_s)
    log = {name: _take(column, rows) for name, column in log.items()}
    return log, submit_s[rows], start_s[rows], end_s[rows], run_s[rows]


def _widths(log: dict[str, Any], tasks: str, filled: dict[str, int]) -> tuple[I8, dict[str, F8]]:
    """Return the number of tasks of each record, and the demands of a task."""
    tres = {kind: resources(log, kind) for kind in ("AllocTRES", "ReqTRES")}

    def first_known(*columns: F8) -> F8:
        known = np.full(len(log["JobID"]), np.nan)
        for column in columns:
            known = np.where(np.isnan(known) & (column > 0), column, known)
        return known

    n_cpus = first_known(
        *(numbers(log, name) for name in ("AllocCPUS", "NCPUS")),
        *(tres[kind]["cpu"] for kind in tres),
        numbers(log, "ReqCPUS"),
    )
    count_rule(filled, "CPUs unknown: 1", np.isnan(n_cpus))
    n_cpus = np.where(np.isnan(n_cpus), 1.0, n_cpus)
    if tasks == "cpus":
        return n_cpus.astype(np.int64), {"cpu": np.ones(len(n_cpus))}
    n_nodes = first_known(
        *(numbers(log, name) for name in ("NNodes", "AllocNodes")),
        *(tres[kind]["node"] for kind in tres),
    )
    count_rule(filled, "nodes unknown: 1", np.isnan(n_nodes))
    n_nodes = np.where(np.isnan(n_nodes), 1.0, n_nodes)
    req_mem_gib = requested_gib(log, n_cpus, n_nodes)
    mem_gib = first_known(tres["AllocTRES"]["mem"], tres["ReqTRES"]["mem"], req_mem_gib)
    count_rule(filled, "memory unknown: 0", np.isnan(mem_gib))
    gpus = first_known(*(tres[kind]["gpu"] for kind in tres))
    return n_nodes.astype(np.int64), {
        "cpu": np.ceil(n_cpus / n_nodes),
        "mem": np.nan_to_num(mem_gib) / n_nodes,
        "gpu": np.ceil(np.nan_to_num(gpus) / n_nodes),
    }


def _jobs(
    ids: pa.Array, width: I8, arrays: bool, noticed: dict[str, int]
) -> tuple[I8, I8, pa.Array]:
    """Return the job of each record, each job's first record, and the jobs' ids."""
    parts = _mask(pc.match_substring(ids, "+"))
    count_rule(noticed, "part of a heterogeneous job: a separate job", parts)
    is_element = _mask(pc.match_substring_regex(ids, r"^\d+_\d+$"))
    if not arrays:
        return np.arange(len(ids)), np.arange(len(ids)), ids
    base = pc.if_else(pa.array(is_element), pc.replace_substring_regex(ids, "_.*", ""), ids)
    codes = _codes(base)
    rigid = np.zeros(codes.max() + 1, dtype=bool)
    np.logical_or.at(rigid, codes, is_element & (width > 1))
    is_separate = is_element & rigid[codes]
    count_rule(noticed, "parallel element of an array: a separate job", is_separate)
    base = pc.if_else(pa.array(is_separate), ids, base)
    job = _codes(base)  # numbered by first appearance
    first = np.unique(job, return_index=True)[1]
    return job, first, _take(base, first)


def _more(head: dict[str, Any], zero_s: float) -> dict[str, Any]:
    """Return further columns of jobs, those that the log has."""
    columns: dict[str, Any] = {
        name.lower(): head[name].fill_null("").dictionary_encode()
        for name in ("Account", "Partition", "QOS")
        if name in head
    }
    if "Eligible" in head:
        columns["recorded_eligible_s"] = times_s(head, "Eligible") - zero_s
    return columns


def _nodes(log: dict[str, Any], rows: I8) -> dict[str, Any]:
    """Return the nodes of each stage, as Slurm writes them (``n[1-4,7]``), if the log has them."""
    if "NodeList" not in log:
        return {}
    return {"node_list": _take(log["NodeList"], rows).fill_null("")}


def _filled(log: dict[str, Any], name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    column = log.get(name)
    if column is None:
        return pa.array([unknown] * len(log["JobID"]), pa.string())
    missing = column.is_null().to_numpy(zero_copy_only=False)
    count_rule(filled, f"{name} unknown: {unknown!r}", missing)
    return column.fill_null(unknown)


def _mask(match: pa.Array) -> Mask:
    mask: Mask = match.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return mask


def _codes(texts: pa.Array) -> I8:
    codes: I8 = texts.dictionary_encode().indices.to_numpy().astype(np.int64)
    return codes


def _take(column: Any, rows: I8) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
