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
from sim.base.arrays import F8, I4, I8, Mask
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
    max_candidates: int | None = MAX_CANDIDATES,
    candidates: Candidates = "more",
) -> OfflineOrder:
    """Build every job's offline schedule from true durations and order its tasks by it.

    All tasks of a stage have one profile (§8.2.1). Jobs of one template with equal stages, sizes,
    demands and edges share the schedule of the first of them, even if their durations differ.
    Jobs without a template share one only if their profiles are equal, too. Nobody can know these
    orders before the jobs have run; `OrdersAtArrival` learns them.
    """
    duration = stage_profile(columns)
    builder = _Builder(columns, cluster, max_candidates, candidates)
    schedule_index: dict[tuple[object, ...], int] = {}
    first_job: list[int] = []  # the job that each schedule is built for
    job_schedule = np.empty(len(columns.job_submit), dtype=np.int64)
    for job in range(len(job_schedule)):
        template = columns.template_names[columns.job_template[job]]
        own = b"" if template else duration[_tasks(columns, job)].tobytes()
        key = (template, own, *builder.shape(job))
        if key not in schedule_index:
            schedule_index[key] = len(first_job)
            first_job.append(job)
        job_schedule[job] = schedule_index[key]
    return _assemble(columns, builder.build(first_job, duration), job_schedule)


class OrdersAtArrival:
    """Offline orders of jobs when they arrive, from the durations that are expected then.

    A job of whose template no run is known is ordered like a DAG whose stages have equal durations.
    Jobs of one template with equal stages, sizes, demands and edges share an order, until twice as
    many runs of the template are known (1, 2, 4, ...). So a template of n runs has at most
    2 + log2(n) schedules. Expected durations count as fractions of the longest, in single
    precision: the last bits of a mean are no reason for another schedule. Jobs whose order is that
    of their rows whatever is expected (`rows_in_order`) need no schedule.
    """

    def __init__(
        self,
        columns: Columns,
        cluster: Cluster,
        max_candidates: int | None = MAX_CANDIDATES,
        candidates: Candidates = "more",
    ) -> None:
        self._columns = columns
        self._builder = _Builder(columns, cluster, max_candidates, candidates)
        self._duration = np.ones(int(columns.stage_task0[-1]))  # of one job's tasks at a time
        self.in_order = self._builder.rows_in_order()
        self._shared: dict[tuple[object, ...], tuple[int, disk_cache.Arrays]] = {}
        self._built: dict[tuple[bytes, ...], disk_cache.Arrays] = {}

    @property
    def n_built(self) -> int:
        """Number of schedules built so far."""
        return len(self._built)

    def rows(self, job: int) -> tuple[I8, slice]:
        """Return the rows of a job's stages and tasks."""
        first, last = self._columns.job_stage0[job : job + 2].tolist()
        return np.arange(first, last), _tasks(self._columns, job)

    def order(self, job: int, expected_s: F8, n_runs: int) -> OfflineOrder:
        """Return the order of one job's tasks.

        Parameters
        ----------
        job : int
            Row of the job.
        expected_s : (S,) float64
            Expected task duration of each of its stages, s; not used without a known run.
        n_runs : int
            Number of known runs of its template.
        """
        shape = self._builder.shape(job)
        key = (self._columns.job_template[job], *shape)
        n_before, built = self._shared.get(key, (-1, {}))
        if n_runs >= max(2 * n_before, n_before + 1):
            known_s = expected_s if n_runs else np.ones_like(expected_s)
            built = self._build(job, shape, known_s)
            self._shared[key] = n_runs, built
        return _assemble(self._columns, [built], np.zeros(1, dtype=np.int64), job)

    def _build(self, job: int, shape: tuple[bytes, ...], expected_s: F8) -> disk_cache.Arrays:
        longest_s = expected_s.max()
        ratio = (expected_s / longest_s if longest_s > 0 else expected_s).astype(np.float32)
        key = (*shape, ratio.tobytes())
        if key not in self._built:
            s0, s1 = self._columns.job_stage0[job : job + 2]
            n_tasks = np.diff(self._columns.stage_task0[s0 : s1 + 1])
            self._duration[_tasks(self._columns, job)] = np.repeat(ratio, n_tasks)
            (self._built[key],) = self._builder.build([job], self._duration)
        return self._built[key]


class _Builder:
    """Builder of the offline schedules of a workload's jobs; those built before are on disk."""

    def __init__(
        self, columns: Columns, cluster: Cluster, max_candidates: int | None, candidates: Candidates
    ) -> None:
        self._columns, self._max_candidates = columns, max_candidates
        self._demand, self._capacity = demand_quanta(columns, cluster)
        self._shared = shared_resources(cluster, candidates)

    def shape(self, job: int) -> tuple[bytes, ...]:
        """Return sizes, demands and edges of a job's stages as bytes."""
        return tuple(array.tobytes() for array in _shape(self._columns, self._demand, job))

    def rows_in_order(self) -> Mask:
        """Find the jobs whose tasks begin in the order of their rows in any schedule, (J,).

        These are chains of stages in the order of rows over barriers. Each stage is a part of its
        own (§4.4), and equal tasks begin by row: see `policies.dagps.build_schedule.is_uniform`.
        """
        columns, n_tasks = self._columns, np.diff(self._columns.stage_task0)
        parent = np.repeat(np.arange(len(n_tasks)), np.diff(columns.edge0))
        is_next = (columns.edge_child == parent + 1) & (columns.edge_kind == 0)
        chained = np.zeros(len(n_tasks), dtype=np.bool_)
        chained[parent[is_next]] = True
        chained[columns.job_stage0[1:] - 1] = True
        if self._shared is not None:
            chained &= (n_tasks == 1) | ~self._demand[:, self._shared].any(axis=1)
        in_order = np.ones(len(columns.job_submit), dtype=np.bool_)
        in_order[columns.stage_job[~chained]] = False
        return in_order

    def build(self, jobs: list[int], duration: F8) -> list[disk_cache.Arrays]:
        """Build the schedule of each of `jobs`, given the expected duration of each task, (T,) s.

        Returns ranks, orders inside stages and makespans.
        """
        columns, demand = self._columns, self._demand

        def build(i: int) -> disk_cache.Arrays:
            dag = one_job(columns, demand, jobs[i], duration)
            built = schedule(dag, self._capacity, self._max_candidates, self._shared)
            rank, inside = _ranks(dag, built.begin_s)
            return {"rank": rank, "task_order": inside, "makespan_s": np.array(built.makespan_s)}

        common_digest = disk_cache.digest(self._capacity, self._max_candidates, self._shared)
        digests = [
            disk_cache.digest(
                common_digest, *_shape(columns, demand, j), duration[_tasks(columns, j)]
            )
            for j in jobs
        ]
        return disk_cache.get_or_compute(__name__, digests, build)


def best_list_order(
    columns: Columns,
    cluster: Cluster,
    duration: F8,
    max_candidates: int | None = MAX_CANDIDATES,
    overbook: bool = True,
) -> tuple[OfflineOrder, tuple[str, ...]]:
    """Order the tasks of a single job by the list with the least makespan.

    `duration` is the expected duration of each task, (T,) s. With `overbook`, lists that share
    fungible resources are tried, too.

    Returns
    -------
    order : OfflineOrder
        Order of the tasks by that list (`policies.dagps.build_schedule.best_list`).
    fit_resources : tuple of str
        The resources that a task must fit (`sim.engine.plan.Plan`).
    """
    demand, capacity = demand_quanta(columns, cluster)
    shared = np.isin(cluster.resources, cluster.fungible if overbook else ())

    def build(_: int) -> disk_cache.Arrays:
        dag = one_job(columns, demand, 0, duration)
        position, checked, span_s = best_list(dag, capacity, max_candidates, shared)
        rank, inside = _ranks(dag, position)
        arrays = {"rank": rank, "task_order": inside, "makespan_s": np.array(span_s)}
        return {**arrays, "checked": checked}

    shape = _shape(columns, demand, 0)
    key = disk_cache.digest("followed", capacity, max_candidates, shared, *shape, duration)
    (built,) = disk_cache.get_or_compute(__name__, [key], build)
    checked = tuple(
        r for r, is_checked in zip(cluster.resources, built["checked"], strict=True) if is_checked
    )
    return _assemble(columns, [built], np.zeros(1, dtype=np.int64)), checked


def row_priority(columns: Columns) -> F8:
    """Return priScore of the tasks of all jobs, (T,), in the order of their rows."""
    job_task0 = columns.stage_task0[columns.job_stage0]
    n_tasks = np.diff(job_task0)
    rank = np.arange(job_task0[-1]) - np.repeat(job_task0[:-1], n_tasks)
    score: F8 = 1.0 - rank / np.repeat(np.maximum(n_tasks - 1, 1), n_tasks)
    return score


def _assemble(
    columns: Columns, built: list[disk_cache.Arrays], job_schedule: I8, first_job: int = 0
) -> OfflineOrder:
    """Return the order of the jobs from `first_job` on, given the schedule of each."""
    job_stage0 = columns.job_stage0[first_job : first_job + len(job_schedule) + 1]
    stage_task0 = columns.stage_task0[job_stage0[0] : job_stage0[-1] + 1]
    stage_task0 = stage_task0 - stage_task0[0]
    n_tasks = int(stage_task0[-1])
    pri_score, task_order = np.empty(n_tasks), np.empty(n_tasks, dtype=np.int32)
    job_task0 = stage_task0[job_stage0 - job_stage0[0]].tolist()
    for t0, t1, i in zip(job_task0[:-1], job_task0[1:], job_schedule.tolist(), strict=True):
        pri_score[t0:t1] = 1.0 - built[i]["rank"] / max(t1 - t0 - 1, 1)
        task_order[t0:t1] = built[i]["task_order"]
    stage_pri = np.maximum.reduceat(pri_score, stage_task0[:-1])
    makespan = np.array([float(arrays["makespan_s"]) for arrays in built])
    return OfflineOrder(pri_score, stage_pri, task_order, makespan[job_schedule], len(built))


def _tasks(columns: Columns, job: int) -> slice:
    """Return the rows of a job's tasks."""
    t0, t1 = columns.stage_task0[columns.job_stage0[job : job + 2]].tolist()
    return slice(t0, t1)


def _shape(columns: Columns, demand: I8, job: int) -> list[NDArray[Any]]:
    """Return the arrays that define one job's DAG, durations aside: sizes, demands and edges."""
    s0, s1 = columns.job_stage0[job : job + 2].tolist()
    tasks, edges = columns.stage_task0[s0 : s1 + 1], columns.edge0[s0 : s1 + 1]
    e0, e1 = int(edges[0]), int(edges[-1])
    child = columns.edge_child[e0:e1] - s0
    return [tasks - tasks[0], demand[s0:s1], edges - e0, child, columns.edge_kind[e0:e1]]


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
