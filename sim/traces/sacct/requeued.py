"""Runs of requeued jobs: when each was eligible, started and ended, its nodes and tasks on them.

A job that was preempted, or lost its node, has a record for each run. The workload has one job of
them, so that a simulation may requeue it at other times; its runs stand beside, for the state of
the log at an instant (`sweep.questions.backtest.attempts`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.traces.sacct.columns import take_rows
from sim.traces.sacct.jobs import Jobs
from sim.traces.sacct.selection import Selection
from sim.workload.node_names import NODE_TASKS
from sim.workload.schema import RUNS


def run_columns(chosen: Selection, jobs: Jobs) -> dict[str, Any]:
    """Return the column of the runs of each job, "" for one run; none if all have one."""
    runs, times = chosen.runs, chosen.times
    lost = np.flatnonzero(runs.is_lost & (runs.first_part == np.arange(len(runs.origin))))
    if not len(lost) or "NodeList" not in chosen.log:
        return {}
    last = {int(runs.origin[r]): r for r in chosen.heads.tolist()}
    rows_of: dict[int, list[int]] = {}
    for row in lost[np.argsort(times.start_s[lost], kind="stable")].tolist():
        rows_of.setdefault(int(runs.origin[row]), []).append(row)
    names, tasks = (_texts(chosen, column) for column in ("NodeList", NODE_TASKS))
    nodes = [f"{own} {n}".rstrip() for own, n in zip(names, tasks, strict=True)]
    texts = []
    for head in chosen.heads[jobs.head].tolist():
        origin = int(runs.origin[head])
        rows = [*rows_of.get(origin, ()), last[origin]]
        first_s = times.start_s[rows[0]]
        own = (
            (times.eligible_s[r] - first_s, times.start_s[r] - first_s, times.finish_s[r] - first_s)
            for r in rows
        )
        texts.append(
            ";".join(
                " ".join([*(f"{time_s:g}" for time_s in run), nodes[r]])
                for run, r in zip(own, rows, strict=True)
            )
            if len(rows) > 1
            else ""
        )
    return {RUNS.name: pa.array(texts, pa.string()).dictionary_encode()}


def _texts(chosen: Selection, column: str) -> list[str]:
    n = len(chosen.runs.origin)
    if column not in chosen.log:
        return [""] * n
    texts: list[str] = take_rows(chosen.log[column], np.arange(n)).fill_null("").to_pylist()
    return texts
