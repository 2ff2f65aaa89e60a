"""What the online half takes from the offline one: the order of the tasks of every job (§5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from policies.dagps.dag import F8, I4, Dag, demand_quanta, one_job
from policies.dagps.offline import MAX_CANDIDATES, schedule, stage_profile

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Columns


@dataclass(frozen=True, eq=False)
class Order:
    """The offline order of J jobs with G stages and T tasks.

    Attributes
    ----------
    pri_score : (T,) float64
        priScore (§5): 1 for the task of its job that begins first, 0 for the one that begins last,
        evenly spaced between; 1 for the only task. Ties go by row.
    stage_pri : (G,) float64
        The greatest of the stage's tasks'.
    task_order : (T,) int32
        For each stage its tasks (index within the stage) by begin:
        `sim.engine.plan.Plan.task_order`.
    makespan_s : (J,) float64
        How long each job's offline schedule takes.
    n_built : int
        How many schedules were built; the other jobs share one.
    """

    pri_score: F8
    stage_pri: F8
    task_order: I4
    makespan_s: F8
    n_built: int


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

    Parameters
    ----------
    columns : Columns
        Of a workload with J jobs, G stages and T tasks.
    cluster : Cluster
        The machines that each job's schedule is made for, all of them its own.
    stage_duration_s : (G,) float64, optional
        What a task of each stage is expected to last, s; left out, the mean of what it does.
    max_candidates : int or None
        As in `policies.dagps.offline.build_schedule`.

    Raises
    ------
    InputError
        If no machine holds some task, or the cluster lacks a resource that is demanded.
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
