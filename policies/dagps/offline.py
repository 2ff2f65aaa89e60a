"""The offline half of DAGPS (§4): a compact schedule for one DAG on machines of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from policies.dagps.dag import Dag, check_demand, demand_quanta, one_job, parts, take
from policies.dagps.search import most_compact
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns
    from sim.workload.workload import Workload

MAX_CANDIDATES = 128
"""Default of how many sets of troublesome tasks are tried for each part of a DAG.

``python -m benchmarks.dagps`` measures what fewer lose. Of drawn DAGs of 1,000 tasks with a
profile a stage, few have more sets than that, and trying all of them found nothing better.
"""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule of T tasks."""

    begin_s: F8  # when each task runs; the first begins at 0
    end_s: F8
    machine: I4  # where
    order: I8  # tasks by begin, ties by row
    makespan_s: float  # when the last ends


def build_schedule(
    workload: Workload,
    cluster: Cluster,
    job: int = 0,
    *,
    profile: Literal["task", "stage"] = "task",
    max_candidates: int | None = MAX_CANDIDATES,
) -> Schedule:
    """Build the schedule of one job that has all of a cluster: BuildSchedule (§4, Figs. 5 to 7)."""
    columns = workload.columns
    if not 0 <= job < len(columns.job_submit):
        raise InputError(f"there is no job {job}; valid: 0 to {len(columns.job_submit) - 1}")
    demand, capacity = demand_quanta(columns, cluster)
    duration = columns.task_duration if profile == "task" else stage_profile(columns)
    return schedule(one_job(columns, demand, job, duration), capacity, max_candidates)


def schedule(dag: Dag, capacity: I8, max_candidates: int | None = MAX_CANDIDATES) -> Schedule:
    """Build the schedule of a DAG, part by part."""
    if max_candidates is not None and max_candidates < 1:
        raise InputError(f"max_candidates must be at least 1, or None for all: {max_candidates}")
    check_demand(dag.demand, capacity)
    n = len(dag.duration)
    begin, end, machine = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int32)
    now = 0.0
    for stages in parts(dag):
        part, tasks = take(dag, stages)
        placed = most_compact(part, capacity, max_candidates)
        shift = now - placed.begin.min()
        begin[tasks], end[tasks] = placed.begin + shift, placed.end + shift
        machine[tasks] = placed.machine
        now = float(end[tasks].max())
    return Schedule(begin, end, machine, np.argsort(begin, kind="stable"), now)


def stage_profile(columns: Columns) -> F8:
    """Return for each task the mean duration of its stage, (T,) s."""
    sizes = np.diff(columns.stage_task0)
    mean = np.where(
        columns.stage_min_s == columns.stage_max_s, columns.stage_max_s, columns.stage_work / sizes
    )
    return np.repeat(mean, sizes)
