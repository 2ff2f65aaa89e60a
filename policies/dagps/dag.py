"""The DAG of one job as arrays, its split into totally ordered parts, and ranks of its stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4, I8, offsets, ranges
from sim.base.errors import InputError, unknown
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns, capacity_quanta


@dataclass(frozen=True, eq=False)
class Dag:
    """A DAG of G stages, T tasks and E edges, for machines with R resources.

    A barrier edge makes every task of the child wait for every task of the parent; over a
    one-to-one edge task k of the child waits for task k of the parent, where there is one.
    """

    task0: I8  # tasks of stage g are ``task0[g]`` to ``task0[g+1]``
    duration: F8  # expected duration of each task, s
    demand: I8  # demand of one task of each stage, quanta
    edge0: I8  # children of each stage; 0 for a barrier, 1 for one-to-one
    edge_child: I4
    edge_kind: I1
    order: I8  # stages, parents before children

    @property
    def task_stage(self) -> I4:
        """Stage of each task, (T,) int32."""
        sizes = np.diff(self.task0)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


def one_job(columns: Columns, demand: I8, job: int, duration: F8) -> Dag:
    """Cut the DAG of one job out of a workload's columns."""
    s0, s1 = columns.job_stage0[job : job + 2]
    t0, t1 = columns.stage_task0[[s0, s1]]
    e0, e1 = columns.edge0[[s0, s1]]
    edge0 = columns.edge0[s0 : s1 + 1] - e0
    child = (columns.edge_child[e0:e1] - s0).astype(np.int32)
    return Dag(
        task0=columns.stage_task0[s0 : s1 + 1] - t0,
        duration=duration[t0:t1],
        demand=demand[s0:s1],
        edge0=edge0,
        edge_child=child,
        edge_kind=columns.edge_kind[e0:e1],
        order=_topological(edge0, child),
    )


def demand_quanta(columns: Columns, cluster: Cluster) -> tuple[I8, I8]:
    """Return the demand of each stage's tasks and the capacity of machines, in the same quanta."""
    n_stages = len(columns.stage_job)
    if cluster.unit:
        capacity = capacity_quanta(cluster.capacity, 1.0)
        return np.ones((n_stages, 1), dtype=np.int64), capacity
    quantum = np.ones(len(cluster.resources))
    demand = np.zeros((n_stages, len(cluster.resources)), dtype=np.int64)
    for i, name in enumerate(columns.resources):
        if name in cluster.resources:
            column = cluster.resources.index(name)
            demand[:, column] = columns.stage_demand[:, i]
            quantum[column] = columns.quantum[i]
        elif columns.stage_demand[:, i].any():
            stage = int(np.argmax(columns.stage_demand[:, i] > 0))
            raise InputError(
                f"stage {stage} demands {unknown('resource', name, cluster.resources)}; "
                f"add {name}=... to the machines",
                rule="missing resource",
            )
    capacity = capacity_quanta(cluster.capacity, quantum)
    check_demand(demand, capacity)
    return demand, capacity


def check_demand(demand: I8, capacity: I8) -> None:
    """Raise InputError unless each stage's task fits some machine."""
    shapes = np.unique(capacity, axis=0)
    fits = np.any(np.all(demand[:, None] <= shapes, axis=2), axis=1)
    if not fits.all():
        stage = int(np.argmin(fits))
        raise InputError(
            f"no machine holds a task of stage {stage}: it demands {demand[stage].tolist()} quanta "
            f"and the machines have {shapes.tolist()}; give larger machines or split the task",
            rule="demand too large",
        )


def usable_machines(capacity: I8, n_tasks: int) -> I8:
    """Return the machines that `n_tasks` tasks can use: equal machines are taken in order."""
    return capacity[:n_tasks] if (capacity == capacity[:1]).all() else capacity


def ordered_parts(dag: Dag) -> list[I8]:
    """Split a DAG wherever every later task waits for every earlier one (§4.4)."""
    from sim.bounds.kernels.bounds import part_starts  # compiled: slow to import

    n = len(dag.order)
    if n == 0:
        return []
    frozen = [read_only(a) for a in (dag.edge0, dag.edge_child, dag.edge_kind, dag.task0)]
    starts = part_starts(read_only(dag.order), read_only(np.array([0, n])), *frozen)
    cuts = np.flatnonzero(starts)[1:]
    return [np.sort(stages) for stages in np.split(dag.order, cuts)]


def sub_dag(dag: Dag, stages: I8) -> tuple[Dag, I8]:
    """Return the sub-DAG of `stages`, ascending, and the rows of its tasks."""
    if len(stages) == len(dag.order):
        return dag, np.arange(len(dag.duration))
    sizes = np.diff(dag.task0)[stages]
    tasks = ranges(dag.task0[stages], dag.task0[stages + 1])
    row = np.full(len(dag.order), -1, dtype=np.int32)
    row[stages] = np.arange(len(stages))
    edges = ranges(dag.edge0[stages], dag.edge0[stages + 1])
    parent = np.repeat(np.arange(len(stages)), np.diff(dag.edge0)[stages])
    child = row[dag.edge_child[edges]]
    inside = child >= 0
    edge0 = offsets(np.bincount(parent[inside], minlength=len(stages)))
    child = child[inside]
    part = Dag(
        task0=offsets(sizes),
        duration=dag.duration[tasks],
        demand=dag.demand[stages],
        edge0=edge0,
        edge_child=child,
        edge_kind=dag.edge_kind[edges][inside],
        order=_topological(edge0, child),
    )
    return part, tasks


def reverse(dag: Dag) -> Dag:
    """Return the DAG with its edges reversed."""
    arrays = arrays_with_parents(dag)
    edges = {"edge0": arrays["parent0"], "edge_child": arrays["parent"].astype(np.int32)}
    return replace(dag, **edges, edge_kind=arrays["parent_kind"], order=dag.order[::-1].copy())


def arrays_with_parents(dag: Dag) -> dict[str, NDArray[Any]]:
    """Return a DAG's arrays by name, including the edges from each stage to its parents."""
    n_stages = len(dag.order)
    parent = np.repeat(np.arange(n_stages), np.diff(dag.edge0))
    by_child = np.argsort(dag.edge_child, kind="stable")
    return {
        "task0": dag.task0,
        "task_stage": dag.task_stage,
        "duration": dag.duration,
        "demand": dag.demand,
        "parent0": offsets(np.bincount(dag.edge_child, minlength=n_stages)),
        "parent": parent[by_child],
        "parent_kind": dag.edge_kind[by_child],
        "child0": dag.edge0,
        "child": dag.edge_child,
        "child_kind": dag.edge_kind,
    }


def stage_profile(columns: Columns) -> F8:
    """Return the mean duration of each task's stage, (T,) s."""
    sizes = np.diff(columns.stage_task0)
    mean = np.where(
        columns.stage_min_s == columns.stage_max_s, columns.stage_max_s, columns.stage_work / sizes
    )
    return np.repeat(mean, sizes)


def path_s(dag: Dag) -> F8:
    """Return the longest path of tasks from each stage to the end of the DAG, (G,) s."""
    from sim.workload.kernels.paths import tails  # compiled: slow to import

    longest = np.maximum.reduceat(dag.duration, dag.task0[:-1])
    group = np.zeros(len(dag.order), dtype=np.int64)
    arrays = (dag.order, group, dag.edge0, dag.edge_child, dag.edge_kind, dag.task0)
    return tails(*[read_only(array) for array in (*arrays, longest, dag.duration)])


def upward_rank(dag: Dag) -> F8:
    """Return HEFT's rank: the longest path from each task to the end of its job, (T,) s."""
    from sim.workload.kernels.paths import task_tails  # compiled: slow to import

    arrays: list[NDArray[Any]] = [dag.order, dag.edge0, dag.edge_child, dag.edge_kind]
    arrays += [dag.task0, dag.duration]
    return task_tails(*[read_only(array) for array in arrays])


def _topological(edge0: I8, child: I4) -> I8:
    from sim.workload.kernels.paths import topological_order  # compiled: slow to import

    if len(edge0) == 1:
        return np.zeros(0, dtype=np.int64)
    stages = read_only(np.array([0, len(edge0) - 1]))
    order: I8 = topological_order(stages, read_only(edge0), read_only(child))
    if order.min() < 0:
        raise InputError("the stages of the DAG form a cycle", rule="cycle")
    return order


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous, read-only view, the form in which kernels take their inputs."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view
