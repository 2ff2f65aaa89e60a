"""The run that policies learn from: one of each job, recorded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.random import stream
from sim.synth.scope_jobs.alone import FirstComeFirstServed, workload_of
from sim.synth.scope_jobs.runs import usual_run
from sim.synth.scope_jobs.templates import template

if TYPE_CHECKING:
    from sim.result import Result
    from sim.workload import Workload

F8 = NDArray[np.float64]

TRAINING_TOKENS = 50
"""With how many tokens, alone on the cluster, a job is run to be recorded."""


def training_of(names: Sequence[str]) -> dict[str, Any]:
    """Return the table of recorded tasks (`sim.schema.TRAINING`) of some of the jobs."""
    recorded = [_training(name) for name in names]
    return {
        "template": [name for name, r in zip(names, recorded, strict=True) for _ in r["task"]],
        **{key: np.concatenate([r[key] for r in recorded]) for key in recorded[0]},
    }


def record(workload: Workload, init_s: F8, tokens: int = TRAINING_TOKENS) -> dict[str, Any]:
    """Run a workload of one job alone on `tokens` slots, and return what is recorded of its tasks.

    Parameters
    ----------
    workload : Workload
        Of one job and T tasks.
    init_s : (T,) float64
        What of each task was initialisation, s.
    tokens : int
        How many slots there are.

    Returns
    -------
    dict of str to (T,) array
        Columns of `sim.schema.TRAINING`, but for ``template``.
    """
    from sim.cluster import Cluster
    from sim.engine import simulate

    run = simulate(workload, Cluster.slots(tokens), FirstComeFirstServed(), record="tasks")
    assert run.task_start is not None
    assert run.task_finish is not None
    columns = workload.columns
    sizes = np.diff(columns.stage_task0)
    n_failed = np.diff(columns.attempt0) if len(columns.attempt0) > 1 else np.zeros(sizes.sum())
    stage = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    return {
        "run": np.zeros(len(stage), np.int32),
        "stage": stage,
        "task": (np.arange(len(stage)) - columns.stage_task0[stage]).astype(np.int32),
        "ready_s": np.minimum(_ready_s(run), run.task_start),
        "start_s": run.task_start,
        "finish_s": run.task_finish,
        "init_s": init_s,
        "n_failed": n_failed.astype(np.int32),
    }


def _ready_s(run: Result) -> F8:
    """Return when the inputs of each task were there, (T,) s; a lost one, when it is again."""
    columns = run.workload.columns
    finish_s = run.task_finish
    assert finish_s is not None
    task0 = columns.stage_task0
    ready_s = np.zeros(len(finish_s))
    last_s = np.maximum.reduceat(finish_s, task0[:-1])
    parent = np.repeat(np.arange(len(task0) - 1), np.diff(columns.edge0))
    for p, c, kind in zip(parent, columns.edge_child, columns.edge_kind, strict=True):
        there = finish_s[task0[p] : task0[p + 1]] if kind == 1 else last_s[p]
        rows = slice(
            task0[c], task0[c] + (np.size(there) if kind == 1 else task0[c + 1] - task0[c])
        )
        ready_s[rows] = np.maximum(ready_s[rows], there)
    return ready_s


@cache
def _training(name: str) -> dict[str, Any]:
    from sim.knobs.faults import fail_tasks

    run = usual_run(template(name), stream(0, "synth", "scope_jobs", "training", name))
    seed = int(stream(0, "synth", "scope_jobs", "training faults", name).integers(2**31))
    return record(fail_tasks(workload_of(run), seed=seed), run.init_s)
