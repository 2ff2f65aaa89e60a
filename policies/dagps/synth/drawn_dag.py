"""One drawn DAG with its tasks, and conversion of many DAGs to a workload.

Not `sim.dags.Graphs`, which has neither tasks nor kinds of edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8, Mask, offsets
from sim.workload.workload import Workload


@dataclass(frozen=True, eq=False)
class Dag:
    """A job of g stages and e edges; parents have lower numbers than their children."""

    name: tuple[str, ...]  # of each stage
    n_tasks: I8  # of each stage
    duration_s: F8  # of each of the stage's tasks
    demand: F8  # of a task
    parent: I8  # edges
    child: I8
    one_to_one: Mask  # edges of which tasks wait one for one rather than for all
    # duration of each task, stage by stage, `duration_s` being the longest's; None: all equal
    task_s: F8 | None = None


def to_workload(
    dags: Sequence[Dag],
    job_id: Sequence[str],
    template: Sequence[str],
    submit_s: F8,
    resources: Sequence[str],
    quantum: float,
    meta: dict[str, Any],
) -> Workload:
    """Build a workload with one job per DAG, in their order."""
    sizes = np.array([len(d.n_tasks) for d in dags], np.int64)
    stage0 = offsets(sizes)[:-1]
    demand = np.concatenate([d.demand for d in dags])
    one_to_one = np.concatenate([d.one_to_one for d in dags])
    parents = [d.parent + s for d, s in zip(dags, stage0, strict=True)]
    children = [d.child + s for d, s in zip(dags, stage0, strict=True)]
    n_tasks = np.concatenate([d.n_tasks for d in dags])
    stages = {
        "job": np.repeat(np.arange(len(dags), dtype=np.int32), sizes),
        "name": [name for d in dags for name in d.name],
        "n_tasks": n_tasks.astype(np.int32),
        **{f"demand_{r}": demand[:, i] for i, r in enumerate(resources)},
    }
    tasks = None
    task_s = [d.task_s for d in dags if d.task_s is not None]
    if len(task_s) == len(dags):
        stage_row = np.repeat(np.arange(len(n_tasks), dtype=np.int32), n_tasks)
        tasks = {"stage": stage_row, "duration_s": np.concatenate(task_s)}
    else:
        stages["duration_s"] = np.concatenate([d.duration_s for d in dags])
    return Workload.from_tables(
        jobs={"job_id": list(job_id), "submit_s": submit_s, "template": list(template)},
        stages=stages,
        tasks=tasks,
        stage_edges={
            "parent": np.concatenate(parents).astype(np.int32),
            "child": np.concatenate(children).astype(np.int32),
            "kind": np.where(one_to_one, "one_to_one", "barrier").tolist(),
        },
        meta={"quantum": dict.fromkeys(resources, quantum), **meta},
    )
