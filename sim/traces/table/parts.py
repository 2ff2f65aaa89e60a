"""Jobs of several rows: the rows of a job are its stages, or the tasks of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.acyclic import find_cycle
from sim.base.arrays import F8, I8, Mask, inverse
from sim.base.distinct import number_by_appearance
from sim.traces.table.dependencies import Dependencies
from sim.workload.schema import DELAY, STAGE_LAG

IS_RETRY = "is_retry"
"""Key of edges between jobs: from an earlier attempt to its retry."""
_LATEST = ("requested_s", "recorded_finish_s")
"""Columns of which a job has the largest of its rows'; of most it has the first row's."""
_DROPPED = ("recorded_eligible_s", "recorded_submit_s", "input_mode", "poll_lag_s")


@dataclass(frozen=True, eq=False)
class Parts:
    """Tables of jobs of several rows, and how many edges between rows are too few or too many."""

    jobs: dict[str, Any]
    stages: dict[str, Any]
    tasks: dict[str, Any]
    stage_edges: dict[str, Any] | None
    job_edges: dict[str, Any] | None
    n_edges: int


def numbers_of(parts: pa.Array, ids: pa.Array) -> tuple[I8, pa.Array]:
    """Return the number of each row's job, by first appearance, and the jobs' names.

    A row that is part of none is a job by itself.
    """
    names = pc.coalesce(parts, ids)
    codes, first = number_by_appearance(names)
    return codes.astype(np.int64), names.take(pa.array(first))


def first_rows(job: I8, rows: Mask) -> F8:
    """Mark a row of each job with 1: the first of some rows, if it has any, else its first."""
    order = np.argsort(~rows, kind="stable")
    is_first = np.zeros(len(job))
    is_first[order[np.unique(job[order], return_index=True)[1]]] = 1.0
    return is_first


def joined(
    table: dict[str, Any],
    stages: dict[str, Any],
    edges: Dependencies | None,
    parts: pa.Array,
    pause_s: F8,
    *,
    gang: bool,
) -> Parts:
    """Join the rows that are parts of a job.

    Rows that wait for no other row of their job, and none for them, are tasks of one stage if they
    demand the same; any other row is a stage. With `gang`, all tasks of a job without such waits
    start together.

    Parameters
    ----------
    table : dict of str to (R,) array
        Columns of jobs, for each row, in the order of their release.
    stages : dict of str to (S,) array
        Columns of stages, with ``duration_s`` and the row (``job``) of each, sorted by that.
    edges : Dependencies or None
        Between rows.
    parts : (R,) Arrow array of strings
        Job of each row; null: the row is one.
    pause_s : (R,) float64
        Time between the end of what a row waits for and its release, s: within a job the lag of its
        stages, between jobs the delay of a retry.
    """
    job, names = numbers_of(parts, table["job_id"])
    up, down = _ends(edges)
    inside = job[up] == job[down]
    waits = np.zeros(len(job), dtype=bool)
    waits[up[inside]] = waits[down[inside]] = True
    row = np.asarray(stages["job"], np.int64)
    stage, first = _stages_of(stages, job, waits)
    count = np.asarray(stages["n_tasks"], np.int64)
    recorded = {name: table[name][row] for name in ("recorded_start_s", "recorded_finish_s")}
    tasks = {"stage": stage.astype(np.int32), "duration_s": stages["duration_s"]}
    tasks |= recorded if (count == 1).all() else {"count": count}
    order = np.argsort(stage, kind="stable")
    merged = {
        name: column[first] if isinstance(column, np.ndarray) else column.take(pa.array(first))
        for name, column in stages.items()
        if name not in ("job", "n_tasks", "duration_s")
    }
    lags = np.zeros(len(job))
    lags[down[inside]] = pause_s[down[inside]]
    if lags.any():
        merged[STAGE_LAG.name] = lags[row[first]]
    merged["job"] = job[row[first]].astype(np.int32)
    merged["n_tasks"] = np.bincount(stage, count).astype(np.int32)
    for (name, times), extreme in zip(recorded.items(), (np.fmin, np.fmax), strict=True):
        merged[name] = np.full(len(first), np.nan)
        extreme.at(merged[name], stage, times)
    job_edges = _between_jobs(job[up[~inside]], job[down[~inside]], len(names))
    again = _retries(job, edges, pause_s, job_edges)
    stage_edges = _between_stages(up[inside], down[inside], row, stage)
    return Parts(
        jobs=_jobs(table, job, names, merged, waits, job_edges, gang=gang),
        stages=merged,
        tasks={name: column[order] for name, column in tasks.items()},
        stage_edges=dict(zip(("parent", "child"), stage_edges, strict=True)),
        job_edges=dict(zip(("upstream", "downstream"), job_edges, strict=True)) | again,
        n_edges=len(job_edges[0]) + len(stage_edges[0]),
    )


def _ends(edges: Dependencies | None) -> tuple[I8, I8]:
    if edges is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return edges.upstream.astype(np.int64), edges.downstream.astype(np.int64)


def _stages_of(stages: dict[str, Any], job: I8, waits: Mask) -> tuple[I8, I8]:
    """Return the stage of each piece of a row, by job, and the first piece of each stage."""
    row = np.asarray(stages["job"], np.int64)
    keys: list[Any] = [job[row], np.where(waits[row], row + 1, 0)]
    keys += [column for name, column in stages.items() if name.startswith("demand_")]
    if "runs_on" in stages:
        keys.append(stages["runs_on"].indices.to_numpy(zero_copy_only=False))
    coded = np.array([np.unique(key, return_inverse=True)[1] for key in keys]).T
    distinct, first, code = np.unique(coded, axis=0, return_index=True, return_inverse=True)
    turn = np.lexsort((first, distinct[:, 0]))  # in a job, in the order of its rows
    return inverse(turn).astype(np.int64)[code.reshape(-1)], first[turn]


def _between_jobs(up: I8, down: I8, n_jobs: int) -> tuple[Any, Any]:
    """Return the distinct edges between jobs; of circles only those from earlier jobs."""
    pairs = np.unique(np.array([up, down]).T.reshape(-1, 2), axis=0)
    tail, head = pairs.T.astype(np.int32)
    if find_cycle(tail, head, n_jobs):
        tail, head = pairs[pairs[:, 0] < pairs[:, 1]].T.astype(np.int32)
    return tail, head


def _retries(
    job: I8, edges: Dependencies | None, pause_s: F8, between: tuple[Any, Any]
) -> dict[str, Any]:
    """Mark the edges between jobs that lead to retries alone; return the longest pause of each."""
    n_edges = len(between[0])
    if edges is None or not edges.is_retry.any():
        return {IS_RETRY: np.zeros(n_edges, bool), DELAY.name: np.zeros(n_edges)}
    delays: dict[tuple[int, int], float] = {}
    stated = set()
    for up, down, is_retry in zip(*_ends(edges), edges.is_retry, strict=True):
        pair = int(job[up]), int(job[down])
        if is_retry:
            delays[pair] = max(delays.get(pair, 0.0), float(pause_s[down]))
        else:
            stated.add(pair)
    pairs = [(int(up), int(down)) for up, down in zip(*between, strict=True)]
    is_retry = np.array([pair in delays and pair not in stated for pair in pairs], bool)
    delay_s = np.array([delays.get(pair, 0.0) for pair in pairs]) * is_retry
    return {IS_RETRY: is_retry, DELAY.name: delay_s}


def _between_stages(up: I8, down: I8, row: I8, stage: I8) -> tuple[Any, Any]:
    """Return the edges between all stages of two rows."""
    begin, end = (
        np.searchsorted(row, np.arange(row.max() + 1), side) for side in ("left", "right")
    )
    parents, children = [], []
    for tail, head in zip(up.tolist(), down.tolist(), strict=True):
        n_tail, n_head = end[tail] - begin[tail], end[head] - begin[head]
        parents.append(np.repeat(stage[begin[tail] : end[tail]], n_head))
        children.append(np.tile(stage[begin[head] : end[head]], n_tail))
    both = [
        np.concatenate([np.empty(0, np.int64), *x]).astype(np.int32) for x in (parents, children)
    ]
    return both[0], both[1]


def _jobs(
    table: dict[str, Any],
    job: I8,
    names: pa.Array,
    stages: dict[str, Any],
    waits: Mask,
    edges: tuple[Any, Any],
    *,
    gang: bool,
) -> dict[str, Any]:
    first = np.unique(job, return_index=True)[1]
    result: dict[str, Any] = {}
    for name, column in table.items():
        if name not in _DROPPED:
            is_array = isinstance(column, np.ndarray)
            result[name] = column[first] if is_array else column.take(pa.array(first))
    for name in _LATEST:
        if name in table:
            np.fmax.at(result[name], job, table[name])
    np.fmin.at(result["recorded_start_s"], job, table["recorded_start_s"])
    result["job_id"] = names
    n_tasks = np.bincount(stages["job"], stages["n_tasks"]).astype(np.int32)
    has_waits = np.bincount(job, waits) > 0
    result["min_tasks"] = np.where(gang & ~has_waits & (n_tasks > 1), n_tasks, 0)
    if len(edges[1]):
        downstream = np.bincount(edges[1], minlength=len(names)) > 0
        result["input_mode"] = pa.array(np.where(downstream, "poll", "none"))
    return result
