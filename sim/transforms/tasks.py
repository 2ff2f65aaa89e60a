"""More tasks, or fewer, in every stage; tasks that stay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import I8
from sim.base.parameters import Positive, checked
from sim.cluster.cluster import Cluster
from sim.transforms.parts import rebuilt
from sim.workload.tables import take_rows, values, with_column
from sim.workload.workload import Workload

STEPS = 60


@checked
def scale_tasks(
    workload: Workload, load: Positive, machines: Positive, shape: Mapping[str, float]
) -> Workload:
    """Scale every stage's number of tasks by one factor, so that a cluster's load is as wished.

    A stage keeps at least one task; its durations keep their distribution (task i of n' lasts what
    task ⌊i n / n'⌋ of n did), stages of as many tasks keep having as many.

    Parameters
    ----------
    workload : Workload
        Of jobs that come over some time.
    load : float
        Wished mean load (`Workload.mean_load`) of the bottleneck resource; what
        comes out is as near as whole tasks allow.
    machines : float
        Of the cluster.
    shape : mapping of str to float
        What one machine has.

    Raises
    ------
    InputError
        If a number is not positive, or tasks demand a resource that machines do not have.
    """
    cluster = Cluster.machines(machines, fungible=(), **dict(shape))
    offered = workload.mean_load(cluster)
    bottleneck = max(offered, key=lambda name: offered[name])
    n = np.diff(workload.stage_task0)
    work = np.add.reduceat(workload.columns.task_duration, workload.stage_task0[:-1])
    demand = values(workload.stages, f"demand_{bottleneck}")
    of_one = work / n * demand  # of a task of average length
    wanted = float((of_one * n).sum()) * load / offered[bottleneck]
    low, high = 0.0, 1.0
    while (of_one * _scaled(n, high)).sum() < wanted:
        high *= 2.0
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if (of_one * _scaled(n, middle)).sum() < wanted else (low, middle)
        )
    new = _scaled(n, high)
    tasks = None
    if workload.stage_duration_s is None:
        stage = np.repeat(np.arange(len(n)), new)
        place = np.arange(len(stage)) - np.repeat(new.cumsum() - new, new)
        rows = workload.stage_task0[:-1][stage] + place * n[stage] // new[stage]
        picked = take_rows(workload.tasks, rows)["duration_s"]
        tasks = {"stage": stage.astype(np.int32), "duration_s": picked}
    stages = with_column(workload.stages, "n_tasks", new.astype(np.int32))
    transform = {"scale_tasks": high, "load": load, "machines": machines}
    return rebuilt(workload, transform, stages=stages, tasks=tasks)


@checked
def stay(workload: Workload, seconds: Positive) -> Workload:
    """Let every task last as long, so that a cluster is filled and nothing leaves.

    Parameters
    ----------
    workload : Workload
        Without failures.
    seconds : float
        How long; longer than jobs keep coming.

    Raises
    ------
    InputError
        If it is not positive.
    """
    stages = workload.stages
    if "duration_s" in stages.column_names:
        stages = stages.drop_columns(["duration_s"])
    duration_s = np.full(workload.n_stages, float(seconds))
    return rebuilt(workload, {"stay": float(seconds)}, duration_s, stages=stages)


def _scaled(n: I8, factor: float) -> I8:
    scaled: I8 = np.maximum(1, np.rint(n * factor)).astype(np.int64)
    return scaled
