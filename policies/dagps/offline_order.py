"""The offline order of many jobs: what the online half of DAGPS takes from BuildSchedule (§5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.build_schedule import (
    MAX_CANDIDATES,
    Candidates,
    schedule,
    shared_resources,
)
from policies.dagps.dag import Dag, demand_quanta, one_job, stage_profile
from sim.base import kept
from sim.base.arrays import F8, I4, I8, Mask
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
    dags: list[Dag] = []
    known: dict[tuple[object, ...], int] = {}
    built_for = np.empty(len(columns.job_submit), dtype=np.int64)
    for job in range(len(built_for)):
        dag = one_job(columns, demand, job, duration)
        key = _key(dag, columns.template_names[columns.job_template[job]])
        if key not in known:
            known[key] = len(dags)
            dags.append(dag)
        built_for[job] = known[key]
    built = _built(dags, capacity, max_candidates, shared_resources(cluster, candidates))
    ranked = [_ranked(dag, of["begin_s"]) for dag, of in zip(dags, built, strict=True)]
    pri_score, task_order = np.empty(len(duration)), np.empty(len(duration), dtype=np.int32)
    for job, of in enumerate(built_for.tolist()):
        t0, t1 = columns.stage_task0[columns.job_stage0[job : job + 2]]
        pri_score[t0:t1], task_order[t0:t1] = ranked[of]
    stage_pri = np.maximum.reduceat(pri_score, columns.stage_task0[:-1])
    makespan = np.array([float(of["makespan_s"]) for of in built])
    return OfflineOrder(pri_score, stage_pri, task_order, makespan[built_for], len(dags))


def _built(
    dags: list[Dag], capacity: I8, max_candidates: int | None, shared: Mask | None
) -> list[kept.Arrays]:
    """Build the schedule of each DAG, or take what is kept: ``begin_s``, (T,), ``makespan_s``."""
    for_all = kept.digest(capacity, max_candidates, shared)

    def build(i: int) -> kept.Arrays:
        built = schedule(dags[i], capacity, max_candidates, shared)
        return {"begin_s": built.begin_s, "makespan_s": np.array(built.makespan_s)}

    made_from = [kept.digest(for_all, *_arrays(dag), dag.duration) for dag in dags]
    return kept.each(__name__, made_from, build)


def _arrays(dag: Dag) -> tuple[NDArray[Any], ...]:
    return dag.task0, dag.demand, dag.edge0, dag.edge_child, dag.edge_kind


def _key(dag: Dag, template: str) -> tuple[object, ...]:
    profile = b"" if template else dag.duration.tobytes()
    return (template, profile, *(array.tobytes() for array in _arrays(dag)))


def _ranked(dag: Dag, begin_s: F8) -> tuple[F8, I4]:
    """Return priScore of the tasks of one job, and the order inside each stage."""
    n = len(begin_s)
    rank = np.empty(n)
    rank[np.argsort(begin_s, kind="stable")] = np.arange(n)
    stage = dag.task_stage
    inside = np.lexsort((begin_s, stage)) - dag.task0[stage]
    return 1.0 - rank / max(n - 1, 1), inside.astype(np.int32)
