"""Puts the rows of ``batch_task`` together: jobs, their stages in order, and edges between them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import F8, I4, I8, Mask, ranges
from sim.base.distinct import number_by_appearance
from sim.base.errors import InputError
from sim.base.reading import OnBadRow, count_rule, no_job_left, open_text
from sim.traces.alibaba2018.rows import USED, Collected
from sim.workload.schema import DEFAULT_QUANTUM
from sim.workload.workload import Workload

_LOW = 2**31 - 1  # the half of a key that holds a number; all ones for a row without one
_QUANTA = (1e-2, 1e-3, 1e-4, 1e-5)
_TABLE = {
    "n_tasks": "n_tasks", "duration_s": "duration_s", "span_s": "span_s", "cpu": "demand_cpu",
    "mem": "demand_mem", "guessed": "guessed",
}  # fmt: skip


def assemble(
    path: str | os.PathLike[str], rows: Collected, on_bad_row: OnBadRow, bad: dict[str, int]
) -> Workload:
    """Build the workload of all collected rows, in the order of submission; empties `rows`."""
    if not rows.n_rows:
        raise no_job_left(path, bad)
    kept = _join(rows.columns.pop("kept"))
    if not kept.any():
        raise no_job_left(path, {**bad, **rows.dropped})
    job, job_names = _jobs(rows)
    number = _join(rows.columns.pop("number"))
    key = job.astype(np.int64) << 32 | np.where(number < 0, np.int32(_LOW), number)
    del number
    row = _in_order(key, kept, rows.dropped)
    n_lost = np.bincount(job[~kept], minlength=len(job_names)).astype(np.int32)
    parent, child, edges_dropped = _edges(rows, key, kept, row, job, n_lost)
    own_job = job[row]
    del key, kept, job
    never = _never_started(rows, row, own_job)
    if len(never):
        row, own_job, parent, child = _without(never, row, own_job, parent, child)
    count_rule(
        rows.dropped,
        "job of which no row is left",
        np.bincount(own_job, minlength=len(job_names)) == 0,
    )
    cyclic = np.unique(own_job[nodes_on_cycles(parent, child, len(row))])
    if len(cyclic) and on_bad_row == "error":
        raise _cycle(path, rows, row, own_job, parent, child, job_names)
    if len(cyclic):
        out = np.flatnonzero(np.isin(own_job, cyclic))
        bad["cycle (whole job)"] = len(out)
        row, own_job, parent, child = _without(out, row, own_job, parent, child)
    if not len(row):
        raise no_job_left(path, {**bad, **rows.dropped})
    place, order, sizes, submit = _by_submission(rows, row, own_job)
    stage_edges = _sorted_edges(place[parent], place[child], edges_dropped)
    row_of = np.empty_like(row)
    row_of[place] = row
    jobs = {
        "job_id": job_names.take(pa.array(own_job[order])),
        "submit_s": submit - submit[0],
        "n_lost": n_lost[own_job[order]],
    }
    stages = _stages(rows, row_of, sizes)
    return Workload.from_tables(
        jobs=jobs,
        stages=stages,
        stage_edges=stage_edges,
        meta={
            "name": "alibaba2018",
            "quantum": {r: _quantum(stages[f"demand_{r}"]) for r in ("cpu", "mem")},
            "offset_s": float(submit[0]),
            "report": {
                "rows": rows.n_rows + sum(n for rule, n in bad.items() if "job" not in rule),
                "jobs": len(submit),
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


def _jobs(rows: Collected) -> tuple[I4, pa.StringArray]:
    """Return the job of each row, numbered by first appearance, and the names."""
    names = _join_text(rows.run_job)
    code, first = number_by_appearance(names)
    return np.repeat(code, _join(rows.run_rows)), names.take(pa.array(first))


def _in_order(key: I8, kept: Mask, dropped: dict[str, int]) -> I8:
    """Return the kept rows by job, number and place in the file; drop those of a number taken."""
    row = np.flatnonzero(kept)
    row = row[np.argsort(key[row], kind="stable")]
    ordered = key[row]
    again = np.zeros(len(row), dtype=bool)
    again[1:] = (ordered[1:] == ordered[:-1]) & ((ordered[1:] & _LOW) != _LOW)
    count_rule(dropped, "number taken by an earlier row of the job", again)
    kept[row[again]] = False
    return row[~again]


def _edges(
    rows: Collected, key: I8, kept: Mask, row: I8, job: I4, n_lost: I4
) -> tuple[I4, I4, dict[str, int]]:
    """Look parents up: places in `row` of parents and children, and what was dropped by rule.

    Parents that are not found are added to `n_lost` of their job.
    """
    dropped: dict[str, int] = {}
    child_row = _join(rows.edge_row)
    number = _join(rows.edge_parent)
    alive = kept[child_row]
    child_row, number = child_row[alive], number[alive]
    wanted = job[child_row].astype(np.int64) << 32 | number
    ordered = key[row]
    parent = np.searchsorted(ordered, wanted).astype(np.int32)
    exists = ordered[np.minimum(parent, len(ordered) - 1)] == wanted
    lost = np.flatnonzero(~exists)
    np.add.at(n_lost, job[child_row[lost]], 1)
    was_there = np.isin(wanted[lost], key[~kept]) if len(lost) else np.empty(0, bool)
    count_rule(dropped, "parent was dropped", was_there)
    count_rule(dropped, "parent is not in the job", ~was_there)
    jobs = np.unique(job[child_row[lost[~was_there]]])
    count_rule(rows.noticed, "job naming a parent it does not have", np.ones(len(jobs), bool))
    itself = wanted == key[child_row]
    count_rule(dropped, "parent is the stage itself", itself)
    exists &= ~itself
    place = np.empty(len(kept), np.int32)
    place[row] = np.arange(len(row), dtype=np.int32)
    return parent[exists], place[child_row[exists]], dropped


def _cycle(
    path: str | os.PathLike[str],
    rows: Collected,
    row: I8,
    own_job: I4,
    parent: I4,
    child: I4,
    job_names: pa.StringArray,
) -> InputError:
    nodes = nodes_on_cycles(parent, child, len(row))
    job = own_job[nodes[0]]
    inside = nodes[own_job[nodes] == job]
    tasks = sorted(pa.chunked_array(rows.name).take(pa.array(row[inside])).to_pylist())
    name = job_names[int(job)].as_py()
    return InputError(
        f"tasks {', '.join(tasks)} of job {name!r} wait for each other in a cycle; mend the file, "
        "or read it with on_bad_row=skip",
        file=path,
        line=_line_of(path, name, set(tasks)),
        rule="cycle",
    )


def _line_of(path: str | os.PathLike[str], job: str, tasks: set[str]) -> int:
    """Find the first line of the file that holds one of the tasks of `job`."""
    wanted = {task.encode() for task in tasks}
    line, rest = 0, b""
    with open_text(path) as text:
        while chunk := text.read(1 << 20):
            *whole, rest = (rest + chunk).split(b"\n")
            for raw in whole:
                line += 1
                fields = raw.rstrip(b"\r").replace(b'"', b"").split(b",")
                if job.encode() in fields and wanted.intersection(fields):
                    return line
    return line + 1


def _never_started(rows: Collected, row: I8, own_job: I4) -> I8:
    """Return the places in `row` of jobs of which no row has a start, and count them."""
    if not rows.keep_unfinished:  # then no row without a start is kept
        return np.empty(0, np.int64)
    started = np.isfinite(np.concatenate(rows.columns["start_s"])[row])
    out = np.flatnonzero(~np.isin(own_job, own_job[started]))
    count_rule(rows.dropped, "row of a job that never started", np.ones(len(out), bool))
    return out


def _without(out: I8, row: I8, own_job: I4, parent: I4, child: I4) -> tuple[I8, I4, I4, I4]:
    """Leave out some places of `row`, which are whole jobs, and their edges."""
    stay = np.ones(len(row), dtype=bool)
    stay[out] = False
    new = np.cumsum(stay, dtype=np.int32) - 1
    keep = stay[parent]
    return row[stay], own_job[stay], new[parent[keep]], new[child[keep]]


def _by_submission(rows: Collected, row: I8, own_job: I4) -> tuple[I4, I8, I8, F8]:
    """Put jobs in the order of submission; return rows' places, jobs' first rows, sizes, times."""
    first = np.flatnonzero(np.diff(own_job, prepend=np.int32(-1)))
    sizes = np.diff(first, append=len(row))
    submit = np.minimum.reduceat(_join(rows.columns.pop("start_s"))[row], first)
    order = np.argsort(submit, kind="stable")
    place = np.empty(len(row), np.int32)
    place[ranges(first[order], first[order] + sizes[order])] = np.arange(len(row), dtype=np.int32)
    return place, first[order], sizes[order], submit[order]


def _sorted_edges(parent: I4, child: I4, dropped: dict[str, int]) -> dict[str, I4]:
    both = parent.astype(np.int64) << 32 | child
    both.sort()
    again = np.zeros(len(both), dtype=bool)
    again[1:] = both[1:] == both[:-1]
    count_rule(dropped, "parent is named twice", again)
    both = both[~again]
    return {"parent": (both >> 32).astype(np.int32), "child": (both & _LOW).astype(np.int32)}


def _stages(rows: Collected, row_of: I8, sizes: I8) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "job": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        "name": _join_text(rows.name).take(pa.array(row_of)),
    }
    for source, target in _TABLE.items():
        columns[target] = _join(rows.columns.pop(source))[row_of]
    for name in USED.values():
        if (
            name in rows.columns
            and np.isfinite(used := _join(rows.columns.pop(name))[row_of]).any()
        ):
            columns[name] = used
    return columns


def _quantum(demand: F8) -> float:
    """Return the coarsest quantum of which every demand is a multiple."""
    with np.errstate(over="ignore", invalid="ignore"):  # too large for any: refused later
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
