"""State of a log, or of a run, at an instant: what runs, since when and where, and what waits.

A simulation that begins in it starts where the log was:
``sim.simulate(workload, cluster, policy, state=sim.state_at(workload, cluster, now_s))``, or where
another policy's run was: ``state=sim.state_of(result, now_s)``. Jobs that ended before count as
well, as they ran: their usage in fair share, their ends for jobs that depend on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.cluster.cluster import Cluster
from sim.cluster.requests import requested
from sim.engine.plan.state import State
from sim.state.spread import Ran, spread
from sim.workload.node_names import NODE_LIST, NODE_TASKS, expand, node_tasks
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload

if TYPE_CHECKING:
    from sim.result import Result

__all__ = ["State", "has_nodes", "recorded_state", "state_at", "state_of"]


def has_nodes(workload: Workload, cluster: Cluster) -> bool:
    """Tell whether the log names nodes, and the cluster's machines have names."""
    return NODE_LIST in workload.stages.column_names and any(cluster.names)


def state_at(workload: Workload, cluster: Cluster, now_s: float) -> State:
    """Return the state of a log at `now_s`: jobs that had started are placed as it says.

    Those that start later wait for the policy, which begins at `now_s`.

    Raises
    ------
    InputError
        If the log or the cluster names no nodes.
    """
    whole = recorded_state(workload, cluster)
    has_started = whole.placed_s <= now_s  # False for NaN
    return State(now_s, np.where(has_started, whole.placed_s, np.nan), whole.machine)


def state_of(result: Result, now_s: float) -> State:
    """Return the state of a run at `now_s`: jobs that had started are placed as they were.

    Those that start later wait for the policy, which begins at `now_s`: another one, or the same
    with other options, goes on from there.

    Parameters
    ----------
    result : Result
        A run with records of tasks (``record="tasks"``).
    now_s : float
        Time on the workload's clock, s.

    Raises
    ------
    InputError
        If starts lag behind placements in its cluster, as they would lag again; if a job that had
        started is neither a gang of all of its tasks nor elastic nor has one task, so that it
        had no single start, or attempts of it were stopped, or its width changed.
    ValueError
        If the run has no records of tasks.
    """
    columns = result.workload.columns
    if result.task_machine is None or result.stopped is None:
        raise ValueError('the run has no records of tasks: simulate with record="tasks"')
    if result.cluster.launch:
        raise InputError(
            "starts lag behind placements in this run (cluster.launch_s), and would lag again in "
            "one that begins in its state; leave the lag out of both"
        )
    has_started = result.job_start <= now_s  # False for NaN
    is_whole = (columns.job_n_tasks == 1) | (columns.job_min_tasks == columns.job_n_tasks)
    is_elastic = columns.job_width_min > 0
    machine, has_grown = _places(result, now_s)
    stopped = np.zeros(len(has_started), bool)
    stopped[columns.stage_job[columns.stages_of(result.stopped.task.astype(np.int64))]] = True
    for wrong, reason in (
        (
            has_started & ~is_whole & ~is_elastic,
            "its tasks start one by one; trace.gang=true starts them at once",
        ),
        (has_started & stopped, "an attempt of it was stopped, so that it ran at several times"),
        (
            has_started & has_grown,
            "it is elastic, and its width changed, with the pace of its work",
        ),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            name = result.jobs["job_id"][row].as_py()
            raise InputError(f"job {name} has no single start to begin with: {reason}")
    return State(now_s, np.where(has_started, result.job_start, np.nan), machine)


def _places(result: Result, now_s: float) -> tuple[I4, Mask]:
    """Return the machine of each task in a state, and flags of elastic jobs that have grown.

    -1 for tasks of elastic jobs without a place.
    """
    columns, start, finish = result.workload.columns, result.task_start, result.task_finish
    assert result.task_machine is not None
    assert start is not None
    assert finish is not None
    job = columns.stage_job[columns.task_stage()]
    is_elastic = columns.job_width_min[job] > 0
    has_place = (start <= now_s) & ~(finish <= start)  # False, and True, for NaN
    is_late = is_elastic & has_place & (start > result.job_start[job])
    has_grown = np.zeros(len(columns.job_submit), bool)
    has_grown[job[is_late]] = True
    machine = np.zeros_like(result.task_machine) if result.cluster.unit else result.task_machine
    return np.where(is_elastic & ~has_place, -1, machine).astype(np.int32), has_grown


def recorded_state(workload: Workload, cluster: Cluster, moments_s: F8 | None = None) -> State:
    """Return the whole log as a state: each job is placed as it says, and none by the policy.

    Jobs whose start or nodes are unknown, or that ran on nodes that the cluster lacks, are left
    out.

    Parameters
    ----------
    workload : Workload
        Jobs with ``recorded_start_s``, and stages with ``node_list``.
    cluster : Cluster
        Machines with names.
    moments_s : (K,) float64, optional
        Times at which placements are tried, s.

    Raises
    ------
    InputError
        If the log or the cluster names no nodes.
    """
    if not has_nodes(workload, cluster):
        lacking = "machines have no names (cluster.shape: nodes)"
        if NODE_LIST not in workload.stages.column_names:
            lacking = "jobs name no nodes (sacct: NodeList)"
        raise InputError(
            f"a state needs to know where jobs ran, and the {lacking}", rule="no nodes"
        )
    machine, is_known = _machines(workload, cluster)
    placed_s = column_or_default(workload.jobs, RECORDED[0]).copy()
    placed_s[~is_known] = np.nan
    moments = np.zeros(0) if moments_s is None else np.asarray(moments_s, np.float64)
    return State(np.inf, placed_s, machine, moments)


def _machines(workload: Workload, cluster: Cluster) -> tuple[I4, Mask]:
    """Return the machine of each task, -1 if unknown, and flags of the jobs that have all.

    An elastic job has as many places as the log counts tasks on its nodes.
    """
    columns = workload.columns
    row = {name: i for i, name in enumerate(cluster.names) if name}
    lists = workload.stages[NODE_LIST].to_pylist()
    stage0, task0 = columns.job_stage0, columns.stage_task0[columns.job_stage0]
    n_tasks = columns.job_n_tasks
    n_tasks = np.where(columns.job_width_min > 0, _widths(workload), n_tasks)
    start_s, finish_s = (column_or_default(workload.jobs, column) for column in RECORDED)
    is_known = ~np.isnan(start_s)
    machines: list[tuple[int, ...]] = []
    for j in range(workload.n_jobs):
        stages = range(int(stage0[j]), int(stage0[j + 1]))
        names = dict.fromkeys(name for g in stages for name in expand(lists[g] or ""))
        known = sorted(row[name] for name in names if name in row)
        is_known[j] &= 0 < len(known) == len(names) <= n_tasks[j]
        machines.append(tuple(known))
    jobs = np.flatnonzero(is_known)
    known_tasks = [""] * len(lists)
    if NODE_TASKS in workload.stages.column_names:
        known_tasks = workload.stages[NODE_TASKS].to_pylist()
    ran = Ran(
        start_s[jobs],
        np.where(np.isnan(finish_s), np.inf, finish_s)[jobs],
        [machines[j] for j in jobs.tolist()],
        n_tasks[jobs],
        requested(workload, cluster).columns.stage_demand[stage0[jobs]],
        [
            {row[name]: n for name, n in node_tasks(known_tasks[g] or "").items() if name in row}
            for g in stage0[jobs].tolist()
        ],
    )
    machine = np.full(columns.n_tasks, -1, np.int32)
    weight = np.array(cluster.weights or (1,), np.int64)
    weight = weight[cluster.machine_class] if cluster.weights else np.repeat(weight, len(row))
    own = spread(ran, _capacity(workload, cluster), weight)
    for j, nodes in zip(jobs.tolist(), own, strict=True):
        placed = np.repeat([*nodes], [*nodes.values()])[: n_tasks[j]]
        machine[task0[j] : task0[j] + len(placed)] = placed
    return machine, is_known


def _widths(workload: Workload) -> I4:
    """Return the tasks of each job that ran at once by its log; all where that names no number."""
    columns = workload.columns
    widths = columns.job_n_tasks.astype(np.int32)
    if NODE_TASKS not in workload.stages.column_names:
        return widths
    texts = workload.stages[NODE_TASKS].to_pylist()
    for j in np.flatnonzero(columns.job_width_min).tolist():
        n = sum(node_tasks(texts[columns.job_stage0[j]] or "").values())
        widths[j] = min(n, widths[j]) if n else widths[j]
    return widths


def _capacity(workload: Workload, cluster: Cluster) -> I8:
    """Return the capacity of machines in quanta, of the resources of the workload."""
    columns = workload.columns
    capacity = np.full((len(cluster.capacity), len(columns.resources)), np.inf)
    for r, name in enumerate(columns.resources):
        if name in cluster.resources:
            capacity[:, r] = cluster.capacity[:, cluster.resources.index(name)]
    quanta: I8 = np.minimum(capacity / columns.quantum + 1e-6, 2**60).astype(np.int64)
    return quanta
