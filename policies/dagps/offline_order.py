"""The offline order of many jobs: what the online half of DAGPS takes from BuildSchedule (§5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.build_schedule import (
    MAX_CANDIDATES,
    Candidates,
    followed,
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
    """What the online half takes from the offline one, of J jobs with G stages and T tasks (§5)."""

    # priScore (§5): 1 for the task of its job that begins first, 0 for the one that begins last,
    # evenly spaced between; 1 for the only task. Ties go by row
    pri_score: F8
    stage_pri: F8  # the greatest of the stage's tasks'
    # for each stage its tasks (index within the stage) by begin:
    # `sim.engine.plan.Plan.task_order`
    task_order: I4
    makespan_s: F8  # how long each job's offline schedule takes
    n_built: int  # how many schedules were built; the other jobs share one


def offline_order(
    columns: Columns,
    cluster: Cluster,
    *,
    max_candidates: int | None = MAX_CANDIDATES,
    candidates: Candidates = "more",
) -> OfflineOrder:
    """Build every job's offline schedule and order its tasks by it.

    All tasks of a stage have one profile (§8.2.1). Jobs of one template whose stages, sizes,
    demands and edges are the same share the schedule of the first of them, whatever they last;
    jobs without a template do so if their profiles are the same too.
    """
    duration = stage_profile(columns)
    demand, capacity = demand_quanta(columns, cluster)
    shared = shared_resources(cluster, candidates)
    known: dict[tuple[object, ...], int] = {}
    first: list[int] = []  # the job that each schedule is built for
    of_job = np.empty(len(columns.job_submit), dtype=np.int64)
    for job in range(len(of_job)):
        key = _key(columns, demand, job, duration)
        if key not in known:
            known[key] = len(first)
            first.append(job)
        of_job[job] = known[key]

    def build(i: int) -> disk_cache.Arrays:
        dag = one_job(columns, demand, first[i], duration)
        built = schedule(dag, capacity, max_candidates, shared)
        rank, inside = _ranked(dag, built.begin_s)
        return {"rank": rank, "task_order": inside, "makespan_s": np.array(built.makespan_s)}

    for_all = disk_cache.digest(capacity, max_candidates, shared)
    made_from = [
        disk_cache.digest(for_all, *_made_from(columns, demand, j, duration)) for j in first
    ]
    built = disk_cache.get_or_compute(__name__, made_from, build)
    return _order_of(columns, built, of_job)


def followed_order(
    columns: Columns,
    cluster: Cluster,
    *,
    max_candidates: int | None = MAX_CANDIDATES,
    overbook: bool = True,
) -> tuple[OfflineOrder, tuple[str, ...]]:
    """Order the tasks of the one job by the list that does best if it is followed throughout.

    Lists that share fungible resources are tried if it may `overbook`.

    Returns
    -------
    order : OfflineOrder
        Of the tasks in that list (`policies.dagps.build_schedule.followed`).
    fit_resources : tuple of str
        What must fit (`sim.engine.plan.Plan`).
    """
    duration = stage_profile(columns)
    demand, capacity = demand_quanta(columns, cluster)
    shared = np.isin(cluster.resources, cluster.fungible if overbook else ())

    def build(_: int) -> disk_cache.Arrays:
        dag = one_job(columns, demand, 0, duration)
        place, looks, span_s = followed(dag, capacity, max_candidates, shared)
        rank, inside = _ranked(dag, place)
        arrays = {"rank": rank, "task_order": inside, "makespan_s": np.array(span_s)}
        return {**arrays, "looks": looks}

    made_from = _made_from(columns, demand, 0, duration)
    key = disk_cache.digest("followed", capacity, max_candidates, shared, *made_from)
    (built,) = disk_cache.get_or_compute(__name__, [key], build)
    looks = tuple(r for r, look in zip(cluster.resources, built["looks"], strict=True) if look)
    return _order_of(columns, [built], np.zeros(1, dtype=np.int64)), looks


def _order_of(columns: Columns, built: list[disk_cache.Arrays], of_job: I8) -> OfflineOrder:
    n_tasks = int(columns.stage_task0[-1])
    pri_score, task_order = np.empty(n_tasks), np.empty(n_tasks, dtype=np.int32)
    for job, i in enumerate(of_job.tolist()):
        t0, t1 = columns.stage_task0[columns.job_stage0[job : job + 2]]
        pri_score[t0:t1] = 1.0 - built[i]["rank"] / max(t1 - t0 - 1, 1)
        task_order[t0:t1] = built[i]["task_order"]
    stage_pri = np.maximum.reduceat(pri_score, columns.stage_task0[:-1])
    makespan = np.array([float(of["makespan_s"]) for of in built])
    return OfflineOrder(pri_score, stage_pri, task_order, makespan[of_job], len(built))


def _key(columns: Columns, demand: I8, job: int, duration: F8) -> tuple[object, ...]:
    *same, profile = _made_from(columns, demand, job, duration)
    template = columns.template_names[columns.job_template[job]]
    own = b"" if template else profile.tobytes()
    return (template, own, *(array.tobytes() for array in same))


def _made_from(columns: Columns, demand: I8, job: int, duration: F8) -> list[NDArray[Any]]:
    """Return all that makes the DAG of one job: sizes, demands, edges and durations."""
    s0, s1 = columns.job_stage0[job : job + 2].tolist()
    tasks, edges = columns.stage_task0[s0 : s1 + 1], columns.edge0[s0 : s1 + 1]
    t0, t1, e0, e1 = tasks[0], tasks[-1], edges[0], edges[-1]
    child = columns.edge_child[e0:e1] - s0
    dag = [tasks - t0, demand[s0:s1], edges - e0, child, columns.edge_kind[e0:e1]]
    return [*dag, duration[t0:t1]]


def _ranked(dag: Dag, begin: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rank of each task of a job by its begin, and the order inside each stage.

    Of as few bytes as will do: they are kept.
    """
    small = np.min_scalar_type(len(begin))
    rank = np.empty(len(begin), dtype=small)
    rank[np.argsort(begin, kind="stable")] = np.arange(len(begin))
    stage = dag.task_stage
    inside = np.lexsort((begin, stage)) - dag.task0[stage]
    return rank, inside.astype(small)
