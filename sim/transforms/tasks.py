"""Transforms of tasks: scale their number to a load; lengthen all; give all one duration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base.arrays import I8
from sim.base.parameters import Factor, NotNegative, Positive, checked
from sim.cluster.cluster import Cluster
from sim.transforms.parts import rebuild
from sim.workload.columns import stage_request
from sim.workload.tables import take_rows, values, with_column
from sim.workload.workload import Workload

STEPS = 60
"""Bisection steps."""


@checked
def scale_tasks(
    workload: Workload, load: Positive, machines: Positive, shape: Mapping[str, float]
) -> Workload:
    """Scale every stage's number of tasks by one factor, to a target load of a cluster.

    A stage keeps at least one task, and its durations keep their distribution: task i of n' lasts
    as long as task ⌊i n / n'⌋ of n did. Stages with equal numbers of tasks still have equal numbers
    afterwards.

    Parameters
    ----------
    workload : Workload
        Workload whose jobs are not all submitted at once.
    load : float
        Target mean load (`Workload.mean_load`) of the bottleneck resource; the result is as near as
        whole tasks allow.
    machines : float
        Number of machines of the cluster.
    shape : mapping of str to float
        Capacity of one machine by resource.

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
    demand = stage_request(workload)[1][:, workload.resources.index(bottleneck)]
    task_demand_s = work / n * demand  # of a task of mean duration
    target = float((task_demand_s * n).sum()) * load / offered[bottleneck]
    low, high = 0.0, 1.0
    while (task_demand_s * _scaled(n, high)).sum() < target:
        high *= 2.0
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if (task_demand_s * _scaled(n, middle)).sum() < target else (low, middle)
        )
    new = _scaled(n, high)
    tasks = None
    if workload.stage_duration_s is None:
        stage = np.repeat(np.arange(len(n)), new)
        number = np.arange(len(stage)) - np.repeat(new.cumsum() - new, new)
        rows = workload.stage_task0[:-1][stage] + number * n[stage] // new[stage]
        duration_s = take_rows(workload.tasks, rows)["duration_s"]
        tasks = {"stage": stage.astype(np.int32), "duration_s": duration_s}
    stages = with_column(workload.stages, "n_tasks", new.astype(np.int32))
    transform = {"scale_tasks": high, "load": load, "machines": machines}
    return rebuild(workload, transform, keep_recorded=False, stages=stages, tasks=tasks)


@checked
def lengthen(workload: Workload, seconds: NotNegative = 0.0, factor: Factor = 1.0) -> Workload:
    """Lengthen every task by a factor, then by a number of seconds.

    So losses of a real cluster can be added to a simulated one: waiting for heartbeats and the
    start of containers, during which a task holds its resources, and contention.

    Parameters
    ----------
    workload : Workload
        Workload without failures.
    seconds : float
        Seconds added to each task.
    factor : float
        Factor of each duration, at least 1.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    transform = {"lengthen": float(seconds), "factor": float(factor)}
    if workload.in_runs:
        runs = workload.runs
        longer = runs.with_durations(runs.duration_s * factor + seconds)
        return rebuild(workload, transform, longer)
    duration_s = values(workload.tasks, "duration_s") * factor + seconds
    tasks = with_column(workload.tasks, "duration_s", duration_s)
    return rebuild(workload, transform, tasks=tasks)


@checked
def stay(workload: Workload, seconds: Positive) -> Workload:
    """Give every task the same long duration, so that a cluster fills up and nothing leaves.

    Parameters
    ----------
    workload : Workload
        Workload without failures.
    seconds : float
        Duration of every task, longer than jobs keep arriving.

    Raises
    ------
    InputError
        If the duration is not positive.
    """
    stages = workload.stages
    if "duration_s" in stages.column_names:
        stages = stages.drop_columns(["duration_s"])
    duration_s = np.full(workload.n_stages, float(seconds))
    transform = {"stay": float(seconds)}
    return rebuild(workload, transform, duration_s, keep_recorded=False, stages=stages)


def _scaled(n: I8, factor: float) -> I8:
    scaled: I8 = np.maximum(1, np.rint(n * factor)).astype(np.int64)
    return scaled
