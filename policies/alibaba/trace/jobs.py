"""Assemble a workload from the rows of ``batch_task``: jobs, ordered stages, edges."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from policies.alibaba.trace.rows import (
    CENSORED,
    GUESSED,
    GUESSED_DURATION,
    USED,
    ZERO_BECOMES_S,
    CollectedRows,
    amounts,
)
from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import F8, I4, I8, Mask, ranges
from sim.base.distinct import number_by_appearance
from sim.base.errors import InputError
from sim.base.reading import Account, BadRows, OnBadRow, count_rule, no_job_left, open_text
from sim.workload.amounts import with_account
from sim.workload.schema import DEFAULT_QUANTUM
from sim.workload.workload import Workload

_LOW = 2**31 - 1  # mask of the stage number in a key; all ones for a row without one
_QUANTA = (1e-2, 1e-3, 1e-4, 1e-5)
_NO_ROW, _AGAIN = "job of which no row is left", "number of an earlier row of the job"
_REPEATED, _NO_CHILD = "repeated row", "dependency of a row that is left out"
_NEVER, _CYCLE = "row of a job that never started", "cycle (whole job)"
_FILLED = {
    GUESSED["instance_num"]: "instance_num missing: 1",
    GUESSED["plan_cpu"]: "plan_cpu missing",
    GUESSED_DURATION: f"a stage of 0 s, or that never ended: {ZERO_BECOMES_S} s",
}
"""Rules by which work is filled in, by bits of ``guessed``."""
_GUESSED_WORK = sum(_FILLED)
_TABLE = {
    "n_tasks": "n_tasks", "duration_s": "duration_s", "span_s": "span_s", "cpu": "demand_cpu",
    "mem": "demand_mem", "guessed": "guessed",
}  # fmt: skip


def assemble(
    path: str | os.PathLike[str], rows: CollectedRows, on_bad_row: OnBadRow, bad: BadRows
) -> Workload:
    """Build the workload of all collected rows, in order of submission; empties `rows`."""
    if not rows.n_rows:
        raise no_job_left(path, bad)
    is_kept = _join(rows.columns.pop("kept"))
    if not is_kept.any():
        raise no_job_left(path, bad, rows.dropped)
    job, job_names = _jobs(rows)
    number = _join(rows.columns.pop("number"))
    key = job.astype(np.int64) << 32 | np.where(number < 0, np.int32(_LOW), number)
    del number
    row, repeated = _sort_rows(rows, key, is_kept)
    n_lost = np.bincount(job[~is_kept], minlength=len(job_names)).astype(np.int32)
    np.subtract.at(n_lost, job[repeated], 1)
    parent, child, edges_dropped = _edges(rows, key, is_kept, row, repeated, job, n_lost)
    row_job = job[row]
    has_number = (key[row] & _LOW) != _LOW
    is_dag = np.bincount(row_job, has_number, len(job_names)) > 0
    del key, is_kept, job, has_number
    never = _never_started(rows, row, row_job)
    if len(never):
        row, row_job, parent, child = _drop_rows(rows, never, _NEVER, row, row_job, parent, child)
    is_lost = np.bincount(row_job, minlength=len(job_names)) == 0
    count_rule(rows.dropped, _NO_ROW, is_lost)
    rows.account.add(_NO_ROW, jobs=float(is_lost.sum()))
    cyclic = np.unique(row_job[nodes_on_cycles(parent, child, len(row))])
    if len(cyclic) and on_bad_row == "error":
        raise _cycle_error(path, rows, row, row_job, parent, child, job_names)
    if len(cyclic):
        on_cycle = np.flatnonzero(np.isin(row_job, cyclic))
        bad[_CYCLE] = len(on_cycle)
        rows.account.add(_CYCLE, jobs=float(len(cyclic)))
        row, row_job, parent, child = _drop_rows(
            rows, on_cycle, _CYCLE, row, row_job, parent, child
        )
    if not len(row):
        raise no_job_left(path, bad, rows.dropped)
    position, first, sizes, submit_s, finish_s = _by_submission(rows, row, row_job)
    stage_edges = _sorted_edges(position[parent], position[child], edges_dropped)
    stage_row = np.empty_like(row)
    stage_row[position] = row
    jobs = {
        "job_id": job_names.take(pa.array(row_job[first])),
        "submit_s": submit_s - submit_s[0],
        "n_lost": n_lost[row_job[first]],
        "is_dag": is_dag[row_job[first]],
        "recorded_start_s": submit_s - submit_s[0],
        "recorded_finish_s": np.where(n_lost[row_job[first]], np.nan, finish_s - submit_s[0]),
    }
    stages = _stages(rows, stage_row, sizes)
    _enter_changes(rows.account, stages)
    rows.account.count(jobs=float(len(submit_s)), edges=float(len(stage_edges["parent"])))
    for rule, n in edges_dropped.items():
        rows.account.add(rule, edges=float(n))
    rows.account.warn_of_censored(CENSORED)
    rows.account.add_bad_rows(_without_jobs(bad), amounts, jobs=0.0)
    workload = Workload.from_tables(
        jobs=jobs,
        stages=stages,
        stage_edges=stage_edges,
        meta={
            "name": "alibaba2018",
            "quantum": {r: _quantum(stages[f"demand_{r}"]) for r in ("cpu", "mem")},
            "offset_s": float(submit_s[0]),
            "resolution_s": 1.0,
            "submit_is_start": True,
            "report": {
                "rows": rows.n_rows + sum(n for rule, n in bad.items() if "job" not in rule),
                "jobs": len(submit_s),
                "stages": len(row),
                "edges": len(stage_edges["parent"]),
                "dropped": rows.dropped,
                "filled": rows.filled,
                "edges_dropped": edges_dropped,
                "noticed": rows.noticed,
                "bad_rows": bad,
            },
        },
    )
    return with_account(workload, rows.account, bad)


def _without_jobs(bad: BadRows) -> BadRows:
    """Return the bad rows of the file, without rows of jobs that were dropped as a whole."""
    lines = BadRows()
    lines.merge(bad)
    lines.pop(_CYCLE, None)
    return lines


def _work(rows: CollectedRows, selected: I8) -> dict[str, float]:
    """Return the amounts that the log states of some rows."""
    n_tasks, duration_s, cpu, guessed = (
        np.concatenate(rows.columns[name])[selected]
        for name in ("n_tasks", "duration_s", "cpu", "guessed")
    )
    is_known = (guessed & _GUESSED_WORK) == 0
    return {
        "tasks": float(n_tasks[(guessed & GUESSED["instance_num"]) == 0].sum()),
        "cpu_s": float(np.sum((n_tasks * duration_s * cpu)[is_known])),
    }


def _enter_changes(account: Account, stages: dict[str, Any]) -> None:
    """Enter the work of stages whose size or duration was filled in; hide how a duration was."""
    guessed = stages["guessed"]
    row = np.flatnonzero(guessed & _GUESSED_WORK)
    n_tasks, work = stages["n_tasks"][row], stages["duration_s"][row] * stages["demand_cpu"][row]
    is_left = np.ones(len(row), dtype=bool)
    for bit, rule in _FILLED.items():
        is_filled = ((guessed[row] & bit) != 0) & is_left
        account.change(rule, cpu_s=-float(np.sum((n_tasks * work)[is_filled])))
        is_left &= ~is_filled
    n_assumed = n_tasks[(guessed[row] & GUESSED["instance_num"]) != 0]
    account.change(_FILLED[GUESSED["instance_num"]], tasks=-float(n_assumed.sum()))
    stages["guessed"] = guessed & np.int8(sum(GUESSED.values()))


def _jobs(rows: CollectedRows) -> tuple[I4, pa.StringArray]:
    """Return the job of each row, numbered by first appearance, and the names."""
    names = _join_text(rows.run_job)
    code, first = number_by_appearance(names)
    return np.repeat(code, _join(rows.run_rows)), names.take(pa.array(first))


def _sort_rows(rows: CollectedRows, key: I8, is_kept: Mask) -> tuple[I8, I8]:
    """Sort the kept rows by job, number and order in the file; drop rows of a repeated number.

    Returns the sorted rows, and those that only repeat another one, which have no work of their
    own.
    """
    row = np.flatnonzero(is_kept)
    row = row[np.argsort(key[row], kind="stable")]
    ordered = key[row]
    is_again = np.zeros(len(row), dtype=bool)
    is_again[1:] = (ordered[1:] == ordered[:-1]) & ((ordered[1:] & _LOW) != _LOW)
    if not is_again.any():
        return row, np.empty(0, np.int64)
    again = np.flatnonzero(is_again)
    first = np.maximum.accumulate(np.where(is_again, 0, np.arange(len(row))))[again]
    is_equal = _are_equal(rows, row[again], row[first])
    count_rule(rows.dropped, _REPEATED, is_equal)
    count_rule(rows.dropped, _AGAIN, ~is_equal)
    rows.account.leave_out_of(_AGAIN, **_work(rows, row[again[~is_equal]]))
    rows.account.count(**{kind: -n for kind, n in _work(rows, row[again[is_equal]]).items()})
    is_kept[row[again]] = False
    return row[~is_again], row[again[is_equal]]


def _are_equal(rows: CollectedRows, first: I8, second: I8) -> Mask:
    """Compare pairs of rows by name and numbers; unknown values are equal to each other."""
    names = pa.chunked_array(rows.name)
    is_equal = np.asarray(pc.equal(names.take(pa.array(first)), names.take(pa.array(second))))
    for parts in rows.columns.values():
        column = np.concatenate(parts)
        a, b = column[first], column[second]
        is_equal &= (a == b) | (np.isnan(a) & np.isnan(b))
    return is_equal


def _edges(
    rows: CollectedRows, key: I8, is_kept: Mask, row: I8, repeated: I8, job: I4, n_lost: I4
) -> tuple[I4, I4, dict[str, int]]:
    """Look up parents; return edges as positions in `row`, and counts of dropped edges by rule.

    Missing parents are added to `n_lost` of their job.
    """
    dropped: dict[str, int] = {}
    child_row = _join(rows.edge_row)
    number = _join(rows.edge_parent)
    has_child = is_kept[child_row]
    is_left_out = ~has_child & ~np.isin(child_row, repeated)
    rows.account.add(_NO_CHILD, edges=float(is_left_out.sum()))
    child_row, number = child_row[has_child], number[has_child]
    parent_key = job[child_row].astype(np.int64) << 32 | number
    ordered = key[row]
    parent = np.searchsorted(ordered, parent_key).astype(np.int32)
    exists = ordered[np.minimum(parent, len(ordered) - 1)] == parent_key
    lost = np.flatnonzero(~exists)
    np.add.at(n_lost, job[child_row[lost]], 1)
    was_dropped = np.isin(parent_key[lost], key[~is_kept]) if len(lost) else np.empty(0, bool)
    count_rule(dropped, "parent was dropped", was_dropped)
    count_rule(dropped, "parent is not in the job", ~was_dropped)
    jobs = np.unique(job[child_row[lost[~was_dropped]]])
    count_rule(rows.noticed, "job naming a parent it does not have", np.ones(len(jobs), bool))
    is_itself = parent_key == key[child_row]
    count_rule(dropped, "parent is the stage itself", is_itself)
    exists &= ~is_itself
    position = np.empty(len(is_kept), np.int32)
    position[row] = np.arange(len(row), dtype=np.int32)
    return parent[exists], position[child_row[exists]], dropped


def _cycle_error(
    path: str | os.PathLike[str],
    rows: CollectedRows,
    row: I8,
    row_job: I4,
    parent: I4,
    child: I4,
    job_names: pa.StringArray,
) -> InputError:
    nodes = nodes_on_cycles(parent, child, len(row))
    job = row_job[nodes[0]]
    inside = nodes[row_job[nodes] == job]
    tasks = sorted(pa.chunked_array(rows.name).take(pa.array(row[inside])).to_pylist())
    name = job_names[int(job)].as_py()
    return InputError(
        f"tasks {', '.join(tasks)} of job {name!r} form a cycle; correct the file, "
        "or read it with on_bad_row=skip",
        file=path,
        line=_first_line_with(path, name, set(tasks)),
        rule="cycle",
    )


def _first_line_with(path: str | os.PathLike[str], job: str, tasks: set[str]) -> int:
    """Return the number of the first line of the file with one of the tasks of `job`."""
    names = {task.encode() for task in tasks}
    line, rest = 0, b""
    with open_text(path) as text:
        while chunk := text.read(1 << 20):
            *whole, rest = (rest + chunk).split(b"\n")
            for raw in whole:
                line += 1
                fields = raw.rstrip(b"\r").replace(b'"', b"").split(b",")
                if job.encode() in fields and names.intersection(fields):
                    return line
    return line + 1


def _never_started(rows: CollectedRows, row: I8, row_job: I4) -> I8:
    """Return the positions in `row` of jobs none of whose rows has a start; count them."""
    if not rows.keep_unfinished:  # then no row without a start is kept
        return np.empty(0, np.int64)
    has_start = np.isfinite(np.concatenate(rows.columns["start_s"])[row])
    never = np.flatnonzero(~np.isin(row_job, row_job[has_start]))
    count_rule(rows.dropped, _NEVER, np.ones(len(never), bool))
    return never


def _drop_rows(
    rows: CollectedRows,
    positions: I8,
    rule: str,
    row: I8,
    row_job: I4,
    parent: I4,
    child: I4,
) -> tuple[I8, I4, I4, I4]:
    """Drop some positions of `row`, which are whole jobs, and their edges; enter their work."""
    stays = np.ones(len(row), dtype=bool)
    stays[positions] = False
    new = np.cumsum(stays, dtype=np.int32) - 1
    has_parent = stays[parent]
    rows.account.leave_out_of(rule, **_work(rows, row[positions]))
    rows.account.add(rule, edges=float((~has_parent).sum()))
    return row[stays], row_job[stays], new[parent[has_parent]], new[child[has_parent]]


def _by_submission(rows: CollectedRows, row: I8, row_job: I4) -> tuple[I4, I8, I8, F8, F8]:
    """Sort jobs by submission; return new positions of rows, and jobs' first rows, sizes, times.

    The times are a job's submission and its end, s; the end is NaN if one of its rows has none.
    """
    first = np.flatnonzero(np.diff(row_job, prepend=np.int32(-1)))
    sizes = np.diff(first, append=len(row))
    start = _join(rows.columns.pop("start_s"))[row]
    submit = np.minimum.reduceat(start, first)
    finish = np.maximum.reduceat(start + np.concatenate(rows.columns["span_s"])[row], first)
    order = np.argsort(submit, kind="stable")
    position = np.empty(len(row), np.int32)
    moved = ranges(first[order], first[order] + sizes[order])
    position[moved] = np.arange(len(row), dtype=np.int32)
    return position, first[order], sizes[order], submit[order], finish[order]


def _sorted_edges(parent: I4, child: I4, dropped: dict[str, int]) -> dict[str, I4]:
    key = parent.astype(np.int64) << 32 | child
    key.sort()
    is_repeated = np.zeros(len(key), dtype=bool)
    is_repeated[1:] = key[1:] == key[:-1]
    count_rule(dropped, "parent is named twice", is_repeated)
    key = key[~is_repeated]
    return {"parent": (key >> 32).astype(np.int32), "child": (key & _LOW).astype(np.int32)}


def _stages(rows: CollectedRows, stage_row: I8, sizes: I8) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "job": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        "name": _join_text(rows.name).take(pa.array(stage_row)),
    }
    for source, target in _TABLE.items():
        columns[target] = _join(rows.columns.pop(source))[stage_row]
    for name in USED.values():
        if (
            name in rows.columns
            and np.isfinite(used := _join(rows.columns.pop(name))[stage_row]).any()
        ):
            columns[name] = used
    return columns


def _quantum(demand: F8) -> float:
    """Return the coarsest quantum that divides every demand."""
    with np.errstate(over="ignore", invalid="ignore"):  # demands that are too large fail later
        for quantum in _QUANTA:
            if all(
                (np.abs(part / quantum - np.rint(part / quantum)) < 1e-6).all()
                for part in np.array_split(demand, len(demand) // 2**20 + 1)
            ):
                return quantum
    return DEFAULT_QUANTUM


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    joined: NDArray[Any] = np.concatenate(parts)
    parts.clear()
    return joined


def _join_text(parts: list[pa.StringArray]) -> pa.StringArray:
    joined = pa.concat_arrays(parts)
    parts.clear()
    return joined
