"""Task records of a job that runs alone, as the table of earlier runs needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.cluster.cluster import Cluster
from sim.cluster.faults import NO_SLOWDOWNS, Slowdowns
from sim.engine.plan import NO_LIMIT, Batch, Event, Plan, World
from sim.engine.record import Run
from sim.engine.simulate import simulate
from sim.workload.columns import Columns
from sim.workload.workload import Workload


@dataclass(frozen=True)
class FirstComeFirstServed:
    """A scheduler with the default plan, except the number of tasks of a job that run at once."""

    limit: int = NO_LIMIT  # tasks of a job at once
    name: str = "first come, first served"
    events: Event = Event.NONE

    def begin(self, world: World, plan: Plan) -> object:
        """Set the run limit."""
        plan.set_jobs(run_limit=self.limit)
        return None

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Do nothing."""


def run_alone(workload: Workload, tokens: int, slowdowns: Slowdowns = NO_SLOWDOWNS) -> Run:
    """Run a workload of one job on `tokens` slots, first come, first served, with task records."""
    cluster = Cluster.slots(tokens).with_slowdowns(slowdowns)
    return simulate(workload, cluster, FirstComeFirstServed())


def record_alone(
    workload: Workload,
    tokens: int,
    init_s: F8 | None = None,
    slowdowns: Slowdowns = NO_SLOWDOWNS,
) -> dict[str, Any]:
    """Run a workload of one job alone on `tokens` slots; return the records of its tasks."""
    run = run_alone(workload, tokens, slowdowns)
    assert run.task_start is not None
    assert run.task_finish is not None
    columns = workload.columns
    n = columns.n_tasks
    n_failed = np.diff(columns.attempt0) if len(columns.attempt0) > 1 else np.zeros(n)
    stage = columns.task_stage().astype(np.int32)
    return {
        "run": np.zeros(n, np.int32),
        "stage": stage,
        "task": (np.arange(n) - columns.stage_task0[stage]).astype(np.int32),
        "ready_s": np.minimum(ready_s(columns, run.task_finish), run.task_start),
        "start_s": run.task_start,
        "finish_s": run.task_finish,
        "init_s": np.zeros(n) if init_s is None else init_s,
        "n_failed": n_failed.astype(np.int32),
    }


def training_table(names: Sequence[str], recorded: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the table of earlier runs (`sim.workload.schema.TRAINING`), with their templates."""
    return {
        "template": [name for name, r in zip(names, recorded, strict=True) for _ in r["task"]],
        **{key: np.concatenate([r[key] for r in recorded]) for key in recorded[0]},
    }


def ready_s(columns: Columns, finish_s: F8) -> F8:
    """Return when the inputs of each task exist, (T,) s, if tasks end at `finish_s`."""
    task0 = columns.stage_task0
    ready_s = np.zeros(len(finish_s))
    last_s = np.maximum.reduceat(finish_s, task0[:-1])
    parent = np.repeat(np.arange(len(task0) - 1), np.diff(columns.edge0))
    for p, c, kind in zip(parent, columns.edge_child, columns.edge_kind, strict=True):
        begin, end = task0[c], task0[c + 1]
        if kind == 1:  # one to one: only tasks with a partner
            end = begin + min(end - begin, task0[p + 1] - task0[p])
            parent_finish_s = finish_s[task0[p] : task0[p] + end - begin]
        else:
            parent_finish_s = last_s[p]
        ready_s[begin:end] = np.maximum(ready_s[begin:end], parent_finish_s)
    return ready_s
