"""Build a workload from the rows of a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask, inverse
from sim.base.errors import InputError
from sim.base.reading import BadRows, count_rule, no_job_left, resolution_s
from sim.traces.swf import ZERO_BECOMES_S
from sim.traces.table.dependencies import Dependencies, dependencies_of, wait_ends_s
from sim.traces.table.identity import unique_ids
from sim.traces.table.jobs import (
    CONTAINS,
    Ran,
    rules_of,
    times_of,
    warn_of_censored,
    warn_of_clocks,
)
from sim.traces.table.parts import IS_RETRY, first_rows, joined, numbers_of
from sim.traces.table.raw import Log, RawTable
from sim.traces.table.retries import MAY_BE, RETRY, Which, find_retries, released_after
from sim.traces.table.tasks import Per, Tasks, Width, demands_of, stages_of, task_unit_of, width_of
from sim.traces.table.widths import with_widths
from sim.traces.table.work import account_of, enter_bad, enter_changes, enter_edges
from sim.workload.amounts import with_account
from sim.workload.schema import DELAY, POLL_LAG, SUBMITTED
from sim.workload.workload import Workload

DEPENDENCY_LAG_S = 60.0
"""Longest time, s, in which a scheduler sees that a job's inputs are there."""
_PART = 0.01
"""Demand below which amounts are shares of a machine."""
_REPEATED = "repeated row"
_FROM_INPUTS = (
    "waits and JCTs count from the end of the jobs it waits for (trace.waits_from=submit: from "
    "its submission)"
)
_TRIGGERED = (
    "submitted when the jobs it waits for had ended: released so in a simulation, after the log's "
    "pause"
)
_MAY_TRIGGER = (
    f"submitted within {DEPENDENCY_LAG_S:.0f} s of the end of the jobs it waits for, and so at the "
    "log's time (trace.release=inputs: when these have ended in the simulation)"
)
_OF_PARTS = "between rows: as between their jobs, or all tasks of both"
_TEXTS = (
    ("user", ""), ("queue", "default"), ("account", ""), ("qos", ""), ("partition", ""),
)  # fmt: skip
_LEVELS = ("topology_required", "topology_preferred")
"""Texts of which none is a value."""


WaitsFrom = Literal["inputs", "submit"]
Release = Literal["eligible", "submit", "inputs"]


@dataclass(frozen=True)
class Options:
    """Options of the reader; see `sim.traces.table.read`."""

    completed: bool
    tasks: Tasks | None
    per: Per
    gang: bool
    release: Release
    waits_from: WaitsFrom | None = None  # None: inputs, of a reader without this option
    retries: Which = "none"


@dataclass(frozen=True, eq=False)
class _Jobs:
    """Rows that are jobs, in the order of their release: columns, times, and dependencies.

    `logged_s` is the log's release of jobs that are released after others, `pause_s` later than
    these end.
    """

    rows: I8
    columns: Mapping[str, Any]
    ids: pa.Array
    ran: Ran
    release_s: F8
    edges: Dependencies | None
    logged_s: F8
    pause_s: F8


def report_of(raw: RawTable, noticed: dict[str, int]) -> dict[str, Any]:
    """Return the report of a table, as far as its file tells it."""
    n_rows = len(raw.columns["submit_s"])
    report: dict[str, Any] = {"bad_rows": raw.bad, "dropped": {}, "filled": {}, "noticed": noticed}
    report["rows"] = n_rows + sum(raw.bad.values())
    if raw.hints:
        report["columns_unused"] = dict.fromkeys(raw.hints, n_rows)
    return report


def build_workload(
    path: str | os.PathLike[str],
    log: Log,
    bad: BadRows,
    report: dict[str, Any],
    options: Options,
    left_out: Mapping[str, Mask] = MappingProxyType({}),
) -> Workload:
    """Build the workload of a log; `report` is that of the workload, with counts by rule.

    `left_out` marks further rows that are no jobs, by rule.

    Raises
    ------
    InputError
        If no job is left, or tasks are to be of a column that the table has not.
    """
    noticed = report["noticed"]
    warnings: list[str] = []
    task_unit = task_unit_of(path, log.columns, options.tasks)
    ran = times_of(log, noticed, warnings)
    demands = demands_of(log.columns, len(log), task_unit, options.per)
    rules = {_REPEATED: log.is_repeated, **left_out}
    rules |= rules_of(log, ran, demands, completed=options.completed)
    jobs_a_row = _jobs_a_row(log, rules)
    account = account_of(log.columns, ran, demands, task_unit, options.per, jobs_a_row)
    account.warnings += warnings
    valid = account.keep(rules, report["dropped"], by_option=(_REPEATED, "not completed", CONTAINS))
    enter_bad(account, bad, log, task_unit, options.per)
    if not valid.any():
        raise no_job_left(path, bad, report["dropped"])
    jobs = _jobs(log, ran, np.flatnonzero(valid), options, noticed)
    warn_of_censored(account)
    warn_of_clocks(jobs.ran, jobs.columns.get("eligible_s"), account.warnings)
    demands = {resource: demand[jobs.rows] for resource, demand in demands.items()}
    width = width_of(jobs.columns, demands, task_unit, options.per, report["filled"])
    enter_changes(account, width, jobs.ran, task_unit)
    if jobs.edges is not None:
        enter_edges(account, jobs.edges)
    is_gang = width.n_tasks >= (1 if task_unit == "cpus" else 2)  # a node alone is no gang
    gangs = np.where(is_gang & (options.gang and task_unit != "job"), width.n_tasks, 0)
    tables, meta = _tables(log, jobs, width, report, gangs)
    if "part_of" in jobs.columns:
        _check_parts(path, jobs.columns)
        gang = options.gang and task_unit != "job"
        parts = joined(*tables, jobs.edges, jobs.columns["part_of"], jobs.pause_s, gang=gang)
        n_rows = 0 if jobs.edges is None else len(jobs.edges.upstream)
        if n_rows != parts.n_edges:
            account.change(_OF_PARTS, edges=n_rows - parts.n_edges)
        meta["report"]["jobs"] = len(parts.jobs["job_id"])
        _note_waits(noticed, parts.job_edges, options.waits_from)
        workload = Workload.from_tables(
            jobs=_waiting(parts.jobs, options.waits_from),
            stages=parts.stages,
            tasks=parts.tasks,
            stage_edges=parts.stage_edges,
            job_edges=_with_kind(parts.job_edges, parts.jobs, options.waits_from),
            meta=meta,
        )
        return with_account(workload, account, bad)
    job_edges = _job_edges(jobs.edges, jobs.pause_s)
    _note_waits(noticed, job_edges, options.waits_from)
    workload = Workload.from_tables(
        jobs=_waiting(tables[0], options.waits_from),
        stages=tables[1],
        job_edges=_with_kind(job_edges, tables[0], options.waits_from),
        meta=meta,
    )
    return with_widths(with_account(workload, account, bad), jobs.columns)


def _jobs_a_row(log: Log, rules: Mapping[str, Any]) -> F8 | None:
    """Return how many jobs each row counts as, if several rows are one; None: each is a job."""
    if "part_of" not in log.columns:
        return None
    is_valid = ~np.logical_or.reduce([np.broadcast_to(rows, len(log)) for rows in rules.values()])
    return first_rows(numbers_of(log.columns["part_of"], _ids(log))[0], is_valid)


def _check_parts(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    if "width_min" in columns:
        text = (
            "an elastic job is one row: leave out trace.columns.part_of, or trace.columns.width_min"
        )
        raise InputError(text, file=path, rule="elastic parts")


def _note_waits(
    noticed: dict[str, int], job_edges: dict[str, Any] | None, waits_from: WaitsFrom | None
) -> None:
    """Count the jobs whose waits count from their inputs, where an option says so."""
    if job_edges is not None and len(job_edges["upstream"]) and waits_from == "inputs":
        noticed[_FROM_INPUTS] = len(np.unique(job_edges["downstream"]))


def _waiting(jobs: dict[str, Any], waits_from: WaitsFrom | None) -> dict[str, Any]:
    """Return the columns of jobs, which poll for their inputs only if waits count from these.

    Jobs that are released after others poll in any case.
    """
    if waits_from != "submit" or "input_mode" not in jobs:
        return jobs
    if SUBMITTED.name not in jobs:
        return {name: column for name, column in jobs.items() if name != "input_mode"}
    moved = ~np.isnan(jobs[SUBMITTED.name])
    return jobs | {"input_mode": pa.array(np.where(moved, "poll", "none"))}


def _with_kind(
    job_edges: dict[str, Any] | None, jobs: dict[str, Any], waits_from: WaitsFrom | None
) -> dict[str, Any] | None:
    """Return dependencies as inputs, or as ends that are waited for; retries wait for any end."""
    if job_edges is None:
        return None
    edges = dict(job_edges)
    is_retry = edges.pop(IS_RETRY)
    is_ended = is_retry.copy()
    if waits_from == "submit":
        moved = ~np.isnan(jobs.get(SUBMITTED.name, np.full(len(jobs["submit_s"]), np.nan)))
        is_ended |= ~moved[edges["downstream"]]
    if not is_ended.any():
        return {name: column for name, column in edges.items() if name != DELAY.name}
    return edges | {"kind": np.where(is_ended, "afterany", "hard").tolist()}


def _job_edges(edges: Dependencies | None, pause_s: F8) -> dict[str, Any] | None:
    """Return the edges between jobs; the pause of a retry is the delay of that from the earlier."""
    if edges is None or not len(edges.upstream):
        return None
    return {
        "upstream": edges.upstream,
        "downstream": edges.downstream,
        IS_RETRY: edges.is_retry,
        DELAY.name: np.where(edges.is_retry, pause_s[edges.downstream], 0.0),
    }


def _jobs(log: Log, ran: Ran, rows: I8, options: Options, noticed: dict[str, int]) -> _Jobs:
    """Put the jobs in the order of their release."""
    rows = rows[np.argsort(ran.submit_s[rows], kind="stable")]
    ids = _ids(log)
    edges = _edges(log, ran, rows, ids, options, noticed)
    logged_s = _release_s(log, ran.take(rows), rows, edges, options.release, noticed)
    counts = {} if "part_of" in log.columns else noticed  # stages follow each other anyway
    release_s, moved, pause_s = _moved(ran.take(rows), edges, logged_s, options.release, counts)
    order = np.argsort(release_s, kind="stable")
    if edges is not None:
        position = inverse(order).astype(np.int32)
        up, down = (position[end] for end in (edges.upstream, edges.downstream))
        edges = replace(edges, upstream=up, downstream=down)
    rows = rows[order]
    logged_s = np.where(moved, logged_s, np.nan)[order]
    times = (release_s[order], edges, logged_s, pause_s[order])
    if len(rows) == len(log) and (rows[1:] > rows[:-1]).all():  # all, in the log's order
        return _Jobs(rows, log.columns, unique_ids(ids, noticed), ran, *times)
    columns = {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))
        for name, column in log.columns.items()
        if name not in ("job_id", "depends_on", "parent_id", "retry_of", "state")
    }
    names = unique_ids(ids.take(pa.array(rows)), noticed)
    return _Jobs(rows, columns, names, ran.take(rows), *times)


def _edges(
    log: Log, ran: Ran, rows: I8, ids: pa.Array, options: Options, noticed: dict[str, int]
) -> Dependencies | None:
    """Return the dependencies of jobs, of their column and on earlier attempts; None for none."""
    has_ids = "job_id" in log.columns
    rule = options.retries if has_ids else "none"
    times = (ran.submit_s, ran.start_s, _ends_s(ran))
    retries = find_retries(log, times, ids, rows, rule)
    count_rule(noticed, RETRY, retries.earlier >= 0)
    count_rule(noticed, MAY_BE, retries.may_be)
    if "depends_on" not in log.columns and not retries.exist:
        return None
    texts = log.columns.get("depends_on", pa.nulls(len(log), pa.string()))
    return dependencies_of(texts, ids, rows, log.columns.get("part_of"), retries)


def _moved(
    ran: Ran,
    edges: Dependencies | None,
    logged_s: F8,
    release: Release,
    counts: dict[str, int],
) -> tuple[F8, Mask, F8]:
    """Return when jobs are released, which of them after others, and how long after these.

    Retries, and with ``release=inputs`` jobs that were submitted when their inputs had ended.
    """
    moved, nothing_s = np.zeros(len(logged_s), bool), np.zeros(len(logged_s))
    if edges is None or not len(edges.upstream):
        return logged_s, moved, nothing_s
    moved[edges.downstream[edges.is_retry]] = True
    end_s = _ends_s(ran)
    after_s = logged_s - wait_ends_s(edges, end_s)
    triggered = ~moved & (after_s >= 0)
    if release == "inputs":
        moved |= triggered
        count_rule(counts, _TRIGGERED, triggered)
    else:
        soon = triggered & (after_s <= DEPENDENCY_LAG_S)
        if 2 * soon.sum() > np.isfinite(after_s).sum():  # a rule, not a coincidence
            count_rule(counts, _MAY_TRIGGER, soon)
    ends = (edges.upstream, edges.downstream)
    release_s, pause_s = released_after(*ends, moved, logged_s, end_s, ran.start_s)
    return release_s, moved, pause_s


def _ends_s(ran: Ran) -> F8:
    """Return recorded ends, s; of jobs without one the earliest: as if they had not waited."""
    return np.where(np.isnan(ran.end_s), ran.submit_s + ran.run_s, ran.end_s)


def _ids(log: Log) -> pa.Array:
    """Return the rows' ids; a row without one is named by its number."""
    ids = log.columns.get("job_id")
    if ids is not None and not ids.null_count:
        return ids
    numbers = pa.array(np.arange(1, len(log) + 1)).cast(pa.string())
    if ids is None:
        return numbers
    return pc.coalesce(ids, pc.binary_join_element_wise("row", numbers, " "))


def _release_s(
    log: Log,
    ran: Ran,
    rows: I8,
    edges: Dependencies | None,
    release: str,
    noticed: dict[str, int],
) -> F8:
    """Return when each job is released: submitted, or eligible where that is later.

    A job that was eligible as soon as its inputs were there is released at its submission, as it
    waits for the same inputs in a simulation.
    """
    if "eligible_s" not in log.columns or release == "submit":
        return ran.submit_s
    eligible_s = log.columns["eligible_s"][rows]
    is_later = eligible_s > ran.submit_s
    if edges is not None:
        is_later &= ~(eligible_s <= wait_ends_s(edges, ran.end_s) + DEPENDENCY_LAG_S)
    count_rule(noticed, "released when it was eligible, after its submission", is_later)
    latest_s = np.fmin(eligible_s, np.fmax(ran.start_s, ran.submit_s))
    return np.where(is_later, latest_s, ran.submit_s)


def _tables(
    log: Log, jobs: _Jobs, width: Width, report: dict[str, Any], gangs: I8
) -> tuple[tuple[dict[str, Any], dict[str, Any]], dict[str, Any]]:
    """Return the columns of jobs and of stages, a job a row, and the workload's meta."""
    columns, ran, n_jobs = jobs.columns, jobs.ran, len(jobs.rows)
    zero_s = float(jobs.release_s[0])
    count_rule(report["noticed"], "started before its submission", ran.start_s < ran.submit_s)
    count_rule(report["filled"], f"0 s becomes {ZERO_BECOMES_S} s", ran.run_s == 0)
    stages = stages_of(width, columns.get("gpu_type"))
    run_s = np.where(ran.run_s == 0, ZERO_BECOMES_S, ran.run_s)
    table: dict[str, Any] = {
        "job_id": jobs.ids,
        "submit_s": jobs.release_s - zero_s,
        "min_tasks": gangs,
        "recorded_start_s": ran.start_s - zero_s,
        "recorded_finish_s": ran.end_s - zero_s,
        **_texts(columns, report["filled"]),
    }
    if "eligible_s" in columns:
        table["recorded_eligible_s"] = columns["eligible_s"] - zero_s
    if "limit_s" in columns:
        no_limit = columns["limit_s"] <= 0
        count_rule(report["noticed"], "limit of 0: no limit", no_limit)
        table["requested_s"] = np.where(no_limit, np.nan, columns["limit_s"])
    if "deadline_s" in columns:
        moved_s = np.nan_to_num(jobs.logged_s - jobs.release_s)  # it is from the log's release on
        table["deadline_s"] = pa.array(columns["deadline_s"] + moved_s, from_pandas=True)
    if "priority" in columns:
        table["priority"] = np.nan_to_num(columns["priority"])
    if "checkpoint_s" in columns:
        table["checkpoint_s"] = pa.array(columns["checkpoint_s"], from_pandas=True)
    if "restart_s" in columns:
        table["restart_s"] = np.nan_to_num(columns["restart_s"])
    if jobs.pause_s.any():
        table[POLL_LAG.name] = jobs.pause_s
    if not np.isnan(jobs.logged_s).all():
        table[SUBMITTED.name] = jobs.logged_s - zero_s
    if jobs.edges is not None and len(jobs.edges.upstream):
        waits = np.zeros(n_jobs, dtype=bool)
        waits[jobs.edges.downstream] = True
        table["input_mode"] = pa.array(np.where(waits, "poll", "none"))
    meta = {
        "name": "table",
        "quantum": {name: _quantum(name, stages[f"demand_{name}"]) for name in width.total},
        "offset_s": log.zero_s + zero_s,
        "resolution_s": resolution_s(ran.submit_s, ran.start_s, ran.end_s),
        "report": {**report, "jobs": n_jobs},
    }
    return (table, {**stages, "duration_s": run_s[stages["job"]]}), meta


def _texts(columns: Mapping[str, Any], filled: dict[str, int]) -> dict[str, pa.Array]:
    """Return the columns of names; without a queue the partition is one."""
    present = dict(columns)
    if "queue" not in present and "partition" in present:
        present["queue"] = present["partition"]
    result = {}
    for name, default in _TEXTS:
        if name in present:
            count_rule(filled, f"{name} unknown: {default!r}", np.asarray(present[name].is_null()))
            result[name] = present[name].fill_null(default).dictionary_encode()
    for name in (name for name in _LEVELS if name in present):
        result[name] = present[name].fill_null("").dictionary_encode()
    return result


def _quantum(resource: str, demand: F8) -> float:
    if resource == "mem":
        return 1e-6
    if (demand == np.rint(demand)).all():
        return 1.0
    return 1e-3 if demand[demand > 0].min() >= _PART else 1e-8  # of a machine, as Google's
