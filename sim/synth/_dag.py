"""One drawn DAG, and a workload made of many of them; checks of options.

`sim.dags.Graphs` would not do: it knows neither tasks nor kinds of edges.
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
    """A job of g stages and e edges; stages are numbered so that parents come first."""

    name: tuple[str, ...]  # of each stage
    n_tasks: I8  # tasks of each stage, and how long each of them runs
    duration_s: F8
    demand: F8  # what a task holds
    parent: I8  # edges, and whether tasks wait one for one rather than for all
    child: I8
    one_to_one: Mask
    # how long each task runs, stage by stage, `duration_s` being the longest's; None: all alike
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
    """Put DAGs together: a job each, in the order given."""
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
        of = np.repeat(np.arange(len(n_tasks), dtype=np.int32), n_tasks)
        tasks = {"stage": of, "duration_s": np.concatenate(task_s)}
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
