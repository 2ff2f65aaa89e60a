"""Runs and background jobs put together as the tables of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.ragged import offsets
from sim.synth.scope_jobs.background import Background
from sim.synth.scope_jobs.runs import JobRun

NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Piece:
    """Jobs that come at some times: what the tables are made of."""

    jobs: dict[str, list[Any]]  # columns of ``jobs``
    stage_job: I8  # job of each stage, counted within the piece, and its number of tasks
    stage_tasks: I8
    duration_s: F8  # how long each task lasts, s
    edges: I8  # parent and child, counted within the piece, and 1 for one to one


def of_runs(
    runs: Sequence[JobRun], names: Sequence[str], submit_s: Sequence[float], **columns: list[Any]
) -> Piece:
    """Put runs of recurring jobs together, with further columns of ``jobs``."""
    structures = [run.template.structure for run in runs]
    n_stages = [len(structure.n_tasks) for structure in structures]
    first = offsets(np.array(n_stages))[:-1].tolist()
    edges = [
        np.stack([s.parent + at, s.child + at, s.one_to_one.astype(np.int64)])
        for s, at in zip(structures, first, strict=True)
    ]
    return Piece(
        {
            "job_id": list(names),
            "submit_s": list(submit_s),
            "template": [run.template.name for run in runs],
            "user": [run.template.name for run in runs],
            **columns,
        },
        np.repeat(np.arange(len(runs)), n_stages),
        np.concatenate([structure.n_tasks for structure in structures]),
        np.concatenate([run.duration_s for run in runs]),
        np.concatenate(edges, axis=1),
    )


def of_background(background: Background, name: str) -> Piece:
    """Make jobs of the background, with a barrier between their stages."""
    n, per_job = background.n_tasks.shape
    stage = np.arange(n * per_job)
    parent = stage[stage % per_job < per_job - 1]
    return Piece(
        {
            "job_id": [f"{name}-{i}" for i in range(n)],
            "submit_s": background.submit_s.tolist(),
            "template": [name] * n,
            "user": [name] * n,
            "deadline_s": [NAN] * n,
            "new_deadline_s": [NAN] * n,
            "new_deadline_at_s": [NAN] * n,
        },
        stage // per_job,
        background.n_tasks.ravel(),
        background.duration_s,
        np.stack([parent, parent + 1, np.zeros(len(parent), np.int64)]),
    )


def joined(pieces: Sequence[Piece]) -> dict[str, Any]:
    """Return the tables of all pieces, jobs by when they are submitted."""
    n_jobs = [len(p.jobs["job_id"]) for p in pieces]
    n_stages = [len(p.stage_job) for p in pieces]
    job0, stage0 = offsets(np.array(n_jobs))[:-1], offsets(np.array(n_stages))[:-1]
    submit_s = np.concatenate([p.jobs["submit_s"] for p in pieces])
    order = np.argsort(submit_s, kind="stable")
    job = np.concatenate([p.stage_job + at for p, at in zip(pieces, job0, strict=True)])
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
    stages = np.argsort(row_of[job], kind="stable")
    new_stage = np.empty(len(stages), np.int64)
    new_stage[stages] = np.arange(len(stages))
    n_tasks = np.concatenate([p.stage_tasks for p in pieces])
    task_stage = new_stage[np.repeat(np.arange(len(n_tasks)), n_tasks)]
    tasks = np.argsort(task_stage, kind="stable")
    duration_s = np.concatenate([p.duration_s for p in pieces])
    edges = [p.edges + np.array([[at], [at], [0]]) for p, at in zip(pieces, stage0, strict=True)]
    parent, child, kind = np.concatenate(edges, axis=1)
    named = {key: [v for p in pieces for v in p.jobs[key]] for key in pieces[0].jobs}
    return {
        "jobs": {key: [values[i] for i in order] for key, values in named.items()},
        "stages": {
            "job": row_of[job][stages].astype(np.int32),
            "n_tasks": n_tasks[stages].astype(np.int32),
        },
        "tasks": {"stage": task_stage[tasks].astype(np.int32), "duration_s": duration_s[tasks]},
        "stage_edges": {
            "parent": new_stage[parent].astype(np.int32),
            "child": new_stage[child].astype(np.int32),
            "kind": np.where(kind == 1, "one_to_one", "barrier").tolist(),
        },
    }
