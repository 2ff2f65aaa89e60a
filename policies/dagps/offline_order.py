"""Offline order of many jobs: the input of DAGPS's online half from BuildSchedule (§5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.build_schedule import (
    MAX_CANDIDATES,
    Candidates,
    best_list,
    schedule,
    shared_resources,
)
from policies.dagps.dag import Dag, demand_quanta, one_job, stage_profile
from sim.base import disk_cache
from sim.base.arrays import F8, I4, I8
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns


@dataclass(frozen=True, eq=False)
class OfflineOrder:
    """Offline order of J jobs with G stages and T tasks, for the online half (§5)."""

    # priScore (§5): 1 for the task of its job that begins first, 0 for the one that begins last,
    # evenly spaced between; 1 for an only task. Ties go by row
    pri_score: F8
    stage_pri: F8  # maximum over the stage's tasks
    # tasks of each stage by begin, as indices within the stage:
    # `sim.engine.plan.Plan.task_order`
    task_order: I4
    makespan_s: F8  # of each job's offline schedule
    n_built: int  # number of schedules built; the other jobs share one


def offline_order(
    columns: Columns,
    cluster: Cluster,
    *,
    max_candidates: int | None = MAX_CANDIDATES,
    candidates: Candidates = "more",
) -> OfflineOrder:
    """Build every job's offline schedule and order its tasks by it.

    All tasks of a stage have one profile (§8.2.1). Jobs of one template with equal stages, sizes,
    demands and edges share the schedule of the first of them, even if their durations differ.
    Jobs without a template share one only if their profiles are equal, too.
    """
    duration = stage_profile(columns)
    demand, capacity = demand_quanta(columns, cluster)
    shared = shared_resources(cluster, candidates)
    schedule_index: dict[tuple[object, ...], int] = {}
    first_job: list[int] = []  # the job that each schedule is built for
    job_schedule = np.empty(len(columns.job_submit), dtype=np.int64)
    for job in range(len(job_schedule)):
        key = _schedule_key(columns, demand, job, duration)
        if key not in schedule_index:
            schedule_index[key] = len(first_job)
            first_job.append(job)
        job_schedule[job] = schedule_index[key]

    def build(i: int) -> disk_cache.Arrays:
        dag = one_job(columns, demand, first_job[i], duration)
        built = schedule(dag, capacity, max_candidates, shared)
        rank, inside = _ranks(dag, built.begin_s)
        return {"rank": rank, "task_order": inside, "makespan_s": np.array(built.makespan_s)}

    common_digest = disk_cache.digest(capacity, max_candidates, shared)
    digests = [
        disk_cache.digest(common_digest, *_dag_arrays(columns, demand, j, duration))
        for j in first_job
    ]
    built = disk_cache.get_or_compute(__name__, digests, build)
    return _assemble(columns, built, job_schedule)


def best_list_order(
    columns: Columns,
    cluster: Cluster,
    *,
    max_candidates: int | None = MAX_CANDIDATES,
    overbook: bool = True,
) -> tuple[OfflineOrder, tuple[str, ...]]:
    """Order the tasks of a single job by the list with the least makespan.

    With `overbook`, lists that share fungible resources are tried, too.

    Returns
    -------
    order : OfflineOrder
        Order of the tasks by that list (`policies.dagps.build_schedule.best_list`).
    fit_resources : tuple of str
        The resources that a task must fit (`sim.engine.plan.Plan`).
    """
    duration = stage_profile(columns)
    demand, capacity = demand_quanta(columns, cluster)
    shared = np.isin(cluster.resources, cluster.fungible if overbook else ())

    def build(_: int) -> disk_cache.Arrays:
        dag = one_job(columns, demand, 0, duration)
        position, checked, span_s = best_list(dag, capacity, max_candidates, shared)
        rank, inside = _ranks(dag, position)
        arrays = {"rank": rank, "task_order": inside, "makespan_s": np.array(span_s)}
        return {**arrays, "checked": checked}

    dag_arrays = _dag_arrays(columns, demand, 0, duration)
    key = disk_cache.digest("followed", capacity, max_candidates, shared, *dag_arrays)
    (built,) = disk_cache.get_or_compute(__name__, [key], build)
    checked = tuple(
        r for r, is_checked in zip(cluster.resources, built["checked"], strict=True) if is_checked
    )
    return _assemble(columns, [built], np.zeros(1, dtype=np.int64)), checked


def _assemble(columns: Columns, built: list[disk_cache.Arrays], job_schedule: I8) -> OfflineOrder:
    n_tasks = int(columns.stage_task0[-1])
    pri_score, task_order = np.empty(n_tasks), np.empty(n_tasks, dtype=np.int32)
    for job, i in enumerate(job_schedule.tolist()):
        t0, t1 = columns.stage_task0[columns.job_stage0[job : job + 2]]
        pri_score[t0:t1] = 1.0 - built[i]["rank"] / max(t1 - t0 - 1, 1)
        task_order[t0:t1] = built[i]["task_order"]
    stage_pri = np.maximum.reduceat(pri_score, columns.stage_task0[:-1])
    makespan = np.array([float(arrays["makespan_s"]) for arrays in built])
    return OfflineOrder(pri_score, stage_pri, task_order, makespan[job_schedule], len(built))


def _schedule_key(columns: Columns, demand: I8, job: int, duration: F8) -> tuple[object, ...]:
    *common, profile = _dag_arrays(columns, demand, job, duration)
    template = columns.template_names[columns.job_template[job]]
    durations = b"" if template else profile.tobytes()
    return (template, durations, *(array.tobytes() for array in common))


def _dag_arrays(columns: Columns, demand: I8, job: int, duration: F8) -> list[NDArray[Any]]:
    """Return the arrays that define one job's DAG: sizes, demands, edges and durations."""
    s0, s1 = columns.job_stage0[job : job + 2].tolist()
    tasks, edges = columns.stage_task0[s0 : s1 + 1], columns.edge0[s0 : s1 + 1]
    t0, t1, e0, e1 = tasks[0], tasks[-1], edges[0], edges[-1]
    child = columns.edge_child[e0:e1] - s0
    dag = [tasks - t0, demand[s0:s1], edges - e0, child, columns.edge_kind[e0:e1]]
    return [*dag, duration[t0:t1]]


def _ranks(dag: Dag, begin: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rank of each task of a job by its begin, and the order inside each stage.

    Both use the smallest integer type that holds them, because they are stored on disk.
    """
    small = np.min_scalar_type(len(begin))
    rank = np.empty(len(begin), dtype=small)
    rank[np.argsort(begin, kind="stable")] = np.arange(len(begin))
    stage = dag.task_stage
    inside = np.lexsort((begin, stage)) - dag.task0[stage]
    return rank, inside.astype(small)
