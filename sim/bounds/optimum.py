"""Optimal makespan of one small job, or an enclosure of it, by constraint programming (CP-SAT)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.bounds.tight import quantized
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import stage_demands
from sim.cluster.speeds import class_speeds
from sim.workload.columns import Columns
from sim.workload.workload import Workload

MAX_TASKS = 200
"""Largest job: the model grows with tasks × machines, and proofs are hopeless beyond."""

_TICKS = 1e6


def optimum(
    workload: Workload, cluster: Cluster, job: int = 0, effort: float = 10.0
) -> tuple[float, float]:
    """Enclose the optimal makespan of a job that runs alone.

    Each task is an interval of fixed length on one machine of its choice; the demands on a
    machine stay within its capacity at every instant; edges order intervals. Queues and gangs are
    ignored. The effort is counted in the solver's own steps, so the answer is the same on
    every machine.

    Parameters
    ----------
    workload : Workload
        Whole durations (of a second, or of any fraction that divides them all) are kept exactly;
        others are rounded down, to a millionth of the job's work or less, for the lower end.
    cluster : Cluster
        The cluster that the job runs on.
    job : int
        Its row.
    effort : float
        Deterministic time that the solver may spend, about seconds.

    Returns
    -------
    lower, upper : float
        No schedule takes less than `lower`, s; one takes `upper` (inf if none was found). The
        two are equal if it is proven optimal.

    Raises
    ------
    InputError
        If the job has more than `MAX_TASKS` tasks or holds one that fits no machine, a resource
        may be overbooked, the cluster's speed changes or differs by class, or OR-tools, which is
        not among the project's requirements, is not installed.
    """
    cp = _solver()
    columns = workload.columns
    _check_cluster(columns, cluster)
    stage_demands(columns, cluster)  # raises if a resource is missing
    demand, shapes, count = quantized(columns, cluster)
    machines = np.repeat(shapes, count, axis=0)
    stages = range(int(columns.job_stage0[job]), int(columns.job_stage0[job + 1]))
    first = {s: int(columns.stage_task0[s]) for s in (*stages, stages.stop)}
    n_tasks = first[stages.stop] - first[stages.start]
    if n_tasks > MAX_TASKS:
        raise InputError(
            f"the job in row {job} has {n_tasks} tasks; the exact bound takes at most "
            f"{MAX_TASKS}: use tight_lb of sim.lower_bound",
            rule="too large",
        )
    duration = columns.task_duration[first[stages.start] : first[stages.stop]]
    scale = _scale(duration)
    ticks = np.floor(duration * scale * (1 + 1e-12)).astype(np.int64)
    exact = bool((ticks == duration * scale).all())

    model = cp.CpModel()
    horizon = int(ticks.sum())
    end = model.new_int_var(0, horizon, "end")
    starts: dict[int, list[Any]] = {}
    intervals_on: list[list[Any]] = [[] for _ in machines]
    stages_on: list[list[int]] = [[] for _ in machines]
    intervals, n = [], 0
    for s in stages:
        starts[s] = []
        fits = np.flatnonzero((demand[s] <= machines).all(axis=1))
        if not len(fits):
            raise InputError(
                f"a task of stage {s}, of the job in row {job}, fits no machine of the cluster; "
                "make the machines larger",
                rule="demand too large",
            )
        for t in range(first[s], first[s + 1]):
            d = int(ticks[t - first[stages.start]])
            start = model.new_int_var(0, horizon, "")
            starts[s].append((start, start + d))
            model.add(end >= start + d)
            intervals.append((model.new_fixed_size_interval_var(start, d, ""), s))
            # equal machines: the n-th task opens no machine beyond the n-th
            allowed = fits if len(shapes) > 1 else fits[: n + 1]
            chosen = [model.new_bool_var("") for _ in allowed]
            model.add_exactly_one(chosen)
            for m, used in zip(allowed.tolist(), chosen, strict=True):
                intervals_on[m].append(
                    model.new_optional_fixed_size_interval_var(start, d, used, "")
                )
                stages_on[m].append(s)
            n += 1
    for s in stages:
        for parent, barrier in _parents(workload, s):
            _order(model, starts[parent], starts[s], barrier)
    for m, capacity in enumerate(machines):
        for r in np.flatnonzero(demand[stages.start : stages.stop].any(axis=0)).tolist():
            model.add_cumulative(
                intervals_on[m], [int(demand[s, r]) for s in stages_on[m]], int(capacity[r])
            )
    if len(machines) > 1:  # follows from the above, and lets the solver see all machines at once
        for r, total in enumerate(machines.sum(axis=0)):
            amounts = [int(demand[s, r]) for _, s in intervals]
            model.add_cumulative([interval for interval, _ in intervals], amounts, int(total))
    model.minimize(end)
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    lower = solver.best_objective_bound / scale
    is_known = status in (cp.OPTIMAL, cp.FEASIBLE) and exact
    return lower, solver.objective_value / scale if is_known else float("inf")


def _check_cluster(columns: Columns, cluster: Cluster) -> None:
    """Refuse what the model of the solver has not."""
    if cluster.fungible:
        raise InputError(
            f"the exact bound does not support overbooking, and {', '.join(cluster.fungible)} may "
            "be overbooked; use a cluster without fungible resources, or tight_lb of "
            "sim.lower_bound",
            rule="fungible resource",
        )
    if len(cluster.slowdowns):
        raise InputError(
            "the exact bound does not support periods of another speed; use a cluster without "
            "slowdowns, or tight_lb of sim.lower_bound",
            rule="slow periods",
        )
    if class_speeds(columns, cluster) is not None:
        raise InputError(
            "the exact bound does not support classes of machines of different speeds; leave the "
            "speeds out, or use tight_lb of sim.lower_bound",
            rule="speeds of classes",
        )
    if cluster.topology and columns.job_min_tasks.any():
        raise InputError(
            "the exact bound does not support gangs in domains of machines; leave out "
            "cluster.topology, or use tight_lb of sim.lower_bound",
            rule="domains of gangs",
        )


def _parents(workload: Workload, stage: int) -> list[tuple[int, bool]]:
    """List the parents of a stage; True for a barrier, which waits for all of their tasks."""
    columns = workload.columns
    edges = np.flatnonzero(columns.edge_child == stage)
    parents = np.searchsorted(columns.edge0, edges, side="right") - 1
    return [(int(p), bool(columns.edge_kind[e] == 0)) for p, e in zip(parents, edges, strict=True)]


def _order(model: Any, before: list[Any], after: list[Any], barrier: bool) -> None:
    """Add constraints: tasks, as pairs of begin and end, wait for all others, or one for one."""
    if barrier:
        done = model.new_int_var(0, 2**40, "")
        for _, end in before:
            model.add(done >= end)
        for begin, _ in after:
            model.add(begin >= done)
    else:
        for (_, end), (begin, _) in zip(before, after, strict=False):
            model.add(begin >= end)


def _scale(duration: Any) -> float:
    """Choose ticks a second: one where that is exact, else as many as stay small numbers."""
    for scale in (1.0, 10.0, 100.0, 1000.0):
        if (duration * scale == np.rint(duration * scale)).all():
            return scale
    return float(_TICKS / max(duration.sum(), 1e-9))


def _solver() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError as error:
        raise InputError(
            "the exact bound needs OR-tools: pip install ortools; or use tight_lb of "
            "sim.lower_bound, which needs nothing",
            rule="missing package",
        ) from error
    return cp_model
