"""Weeks of jobs as they ran where none waited: one of them as a workload, the past its history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.lineage.dependencies import plain_edges
from sim.lineage.predict import Uses, first_uses, reader_columns
from sim.lineage.worth import Past
from sim.workload.schema import INPUT_MODES, JOB_EDGE_KINDS
from sim.workload.workload import Workload

NONE, BLIND, POLL = range(3)
"""Codes of `sim.workload.schema.INPUT_MODES`."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """N jobs in order of submission, of one task each; times count from the scheduled week."""

    past: Past  # when they ran, who reads and downloads what
    duration_s: F8  # how long; if it polls, from its inputs to its submission; more is sooner
    lag_s: F8
    priority: F8
    tokens: I8  # resources held; what it does about inputs (`NONE`, `BLIND`, `POLL`)
    mode: I8
    # codes, and their names; a template without a name is of ad hoc jobs
    template: tuple[I8, Sequence[str]]
    user: tuple[I8, Sequence[str]]
    queue: tuple[I8, Sequence[str]]
    job_ids: Callable[[I8], pa.Array]  # what jobs are called


def week(of: Recorded, end_s: float, rounds: int | None, meta: Mapping[str, Any]) -> Workload:
    """Return the jobs submitted from 0 until a time as a workload.

    Edges are those between its jobs: what was made before is there. Downloads are those of its
    jobs, however late. The history is of the jobs that had ended by 0; it and the jobs have what
    they were worth (`sim.lineage.worth.COLUMNS`) and who read them (`sim.lineage.predict.READERS`).
    """
    past = of.past
    inside = (past.submit_s >= 0) & (past.submit_s < end_s)
    rows = np.flatnonzero(inside)  # next to each other, as jobs are in order of submission
    first = int(rows[0]) if len(rows) else 0
    edge = inside[past.up] & inside[past.down]
    load = inside[past.taken]
    known, learnt = past.until(0.0)
    truth = past.columns(rounds=rounds, since_s=0.0)
    uses, templates = _uses(of), of.template[1]
    kinds = list(JOB_EDGE_KINDS)
    soft, hard = kinds.index("soft"), kinds.index("hard")
    return Workload.from_tables(
        jobs={
            "job_id": of.job_ids(rows),
            "submit_s": past.submit_s[rows],
            "template": _named(of.template, rows),
            "user": _named(of.user, rows),
            "queue": _named(of.queue, rows),
            "priority": of.priority[rows],
            "input_mode": category(of.mode[rows], list(INPUT_MODES)),
            "poll_lag_s": of.lag_s[rows],
            **{name: column[rows] for name, column in truth.items()},
            **reader_columns(uses, rows, templates),
        },
        stages={
            "job": np.arange(len(rows), dtype=np.int32),
            "n_tasks": np.ones(len(rows), dtype=np.int32),
            "demand_tokens": of.tokens[rows].astype(np.float64),
            "duration_s": of.duration_s[rows],
        },
        job_edges={
            "upstream": (past.up[edge] - first).astype(np.int32),
            "downstream": (past.down[edge] - first).astype(np.int32),
            "kind": category(np.where(past.hard[edge], hard, soft), kinds),
        },
        downloads={
            "job": (past.taken[load] - first).astype(np.int32),
            "time_s": past.times_s[load],
            "n": past.n[load].astype(np.int32),
        },
        history={
            "submit_s": past.submit_s[known],
            "finish_s": past.finish_s[known],
            "n_tasks": np.ones(len(known), dtype=np.int32),
            "mean_task_s": of.duration_s[known],
            "user": _named(of.user, known),
            "template": _named(of.template, known),
            **learnt.columns(0.0, rounds),
            **reader_columns(uses.where(uses.come_s < 0.0), known, templates),
        },
        meta={"quantum": {"tokens": 1.0}, **meta},
    )


def _uses(of: Recorded) -> Uses:
    codes, names = of.template
    edges = plain_edges(len(codes), of.past.up, of.past.down)
    recurring = np.array([bool(name) for name in names], dtype=bool)
    return first_uses(edges, codes.astype(np.int32), of.past.submit_s, recurring)


def category(codes: I8, names: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of names, without those that do not occur."""
    used, found = np.unique(codes, return_inverse=True)
    kept = pa.array([names[code] for code in used.tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(found.astype(np.int32)), kept)


def _named(coded: tuple[I8, Sequence[str]], rows: I8) -> pa.DictionaryArray:
    return category(coded[0][rows], coded[1])
