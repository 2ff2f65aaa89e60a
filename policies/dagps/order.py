"""What the online half takes from the offline one: the order of the tasks of every job (§5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from policies.dagps.dag import Dag, demand_quanta, one_job
from policies.dagps.offline import MAX_CANDIDATES, schedule, stage_profile
from sim.base.arrays import F8, I4

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


@dataclass(frozen=True, eq=False)
class Order:
    """The offline order of J jobs with G stages and T tasks."""

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
    stage_duration_s: F8 | None = None,
    max_candidates: int | None = MAX_CANDIDATES,
) -> Order:
    """Build every job's offline schedule and order its tasks by it.

    All tasks of a stage have one profile (§8.2.1). Jobs of one template whose stages, sizes,
    demands and edges are the same share the schedule of the first of them, whatever they last;
    jobs without a template do so if their profiles are the same too.
    """
    sizes = np.diff(columns.stage_task0)
    if stage_duration_s is None:
        duration = stage_profile(columns)
    else:
        duration = np.repeat(np.asarray(stage_duration_s, dtype=np.float64), sizes)
    demand, capacity = demand_quanta(columns, cluster)
    known: dict[tuple[object, ...], tuple[F8, I4, float]] = {}
    pri_score, task_order = np.empty(len(duration)), np.empty(len(duration), dtype=np.int32)
    makespan = np.empty(len(columns.job_submit))
    for job in range(len(makespan)):
        dag = one_job(columns, demand, job, duration)
        key = _key(dag, columns.template_names[columns.job_template[job]])
        if key not in known:
            found = schedule(dag, capacity, max_candidates)
            known[key] = (*_ranked(dag, found.begin_s), found.makespan_s)
        t0, t1 = columns.stage_task0[columns.job_stage0[job : job + 2]]
        pri_score[t0:t1], task_order[t0:t1], makespan[job] = known[key]
    stage_pri = np.maximum.reduceat(pri_score, columns.stage_task0[:-1])
    return Order(pri_score, stage_pri, task_order, makespan, len(known))


def _key(dag: Dag, template: str) -> tuple[object, ...]:
    same = (dag.task0, dag.demand, dag.edge0, dag.edge_child, dag.edge_kind)
    profile = b"" if template else dag.duration.tobytes()
    return (template, profile, *(array.tobytes() for array in same))


def _ranked(dag: Dag, begin_s: F8) -> tuple[F8, I4]:
    """Return priScore of the tasks of one job, and the order inside each stage."""
    n = len(begin_s)
    rank = np.empty(n)
    rank[np.argsort(begin_s, kind="stable")] = np.arange(n)
    stage = dag.task_stage
    inside = np.lexsort((begin_s, stage)) - dag.task0[stage]
    return 1.0 - rank / max(n - 1, 1), inside.astype(np.int32)
