"""List scheduling, stages by a rank in their job's DAG: bfs, critical_path, coffman_graham, heft.

And strip packing (strip), which holds the levels of a DAG apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from policies.base import Policy
from policies.dagps.build_schedule import heft_schedule
from policies.dagps.dag import demand_quanta, one_job
from policies.registry import register
from sim.base.arrays import F8, I4, I8, offsets
from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.columns import Columns
from sim.workload.paths import stage_depth, stage_tail_s, task_tail_s, topological_order
from sim.workload.workload import Workload


@dataclass(frozen=True)
class ListScheduling(Policy, ABC):
    """Stages by a list that is made of the DAGs beforehand.

    Attributes
    ----------
    across : {"jobs", "stages"}
        "jobs": jobs first come, first served, and the order holds inside each; "stages": the
        stage that is first of all goes first, whatever its job.
    """

    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each stage by its place in the list."""
        plan.set_stages(key=self.stage_key(world.columns))
        plan.task_order = self.task_order(world.columns)
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(world.columns.job_submit)))

    @abstractmethod
    def stage_key(self, columns: Columns) -> F8 | I4:
        """Return the key of each stage, (G,); the least goes first."""

    def task_order(self, columns: Columns) -> I4 | None:
        """Return the order of the tasks inside each stage (`Plan.task_order`); None: by row."""
        return None


def longest_first(seconds: F8, columns: Columns) -> I4 | None:
    """Order the tasks inside each stage by falling `seconds`, (T,); None if that is by row."""
    task0 = columns.stage_task0
    stage = np.repeat(np.arange(len(task0) - 1), np.diff(task0))
    order = np.lexsort((-seconds, stage))
    if (order[1:] > order[:-1]).all():
        return None
    return (order - task0[stage]).astype(np.int32)


@register("bfs")
@dataclass(frozen=True)
class BreadthFirst(ListScheduling):
    """Breadth first: by depth, the longest path of edges from a source of the job.

    What Tez does inside a job, and the baseline of DAGPS (MSR-TR-2016-19, §8.1).
    """

    def stage_key(self, columns: Columns) -> I4:
        """Return each stage's depth."""
        return stage_depth(columns)


@register("critical_path")
@dataclass(frozen=True)
class CriticalPath(ListScheduling):
    """Stages in the order of the longest path of tasks from them to their job's end.

    Highest level first (Hu, *Parallel sequencing and assembly line problems*, 1961; Graham's
    list scheduling), the CP of DAGPS (MSR-TR-2016-19, §8.1), with true durations. Inside a stage
    tasks go by the longest path from themselves, the longest task first over barriers.
    """

    def stage_key(self, columns: Columns) -> F8:
        """Return each stage's negative path length."""
        return -stage_tail_s(columns)

    def task_order(self, columns: Columns) -> I4 | None:
        """Return the order by path length."""
        return longest_first(task_tail_s(columns), columns)


@register("coffman_graham")
@dataclass(frozen=True)
class CoffmanGraham(ListScheduling):
    """Stages by falling Coffman–Graham label, which looks at the DAG alone.

    Coffman and Graham, *Optimal scheduling for two-processor systems*, Acta Informatica 1, 1972:
    optimal for unit tasks on two machines, within 2 − 2/m of it on m (a baseline of DAGPS, §8.3).
    Tasks of a stage wait for the same and are waited for by the same, so that over barriers the
    labels of stages order tasks as labels of tasks would; a one-to-one edge counts as a barrier.
    """

    def stage_key(self, columns: Columns) -> I4:
        """Return each stage's negative label."""
        from sim.dags.kernels.levels import coffman_graham_labels  # numba: slow to import

        c = columns
        label: I4 = coffman_graham_labels(c.job_stage0, topological_order(c), c.edge0, c.edge_child)
        return -label


@register("heft")
@dataclass(frozen=True)
class Heft(CriticalPath):
    """Heterogeneous earliest finish time: by falling upward rank, each task in the first hole.

    Topcuoglu, Hariri and Wu, *Performance-effective and low-complexity task scheduling for
    heterogeneous computing*, IEEE TPDS 13(3), 2002. The upward rank is the longest path from a task
    to its job's end; data moves for free here, and machines differ in nothing but what is free on
    them, so that the earliest finish is the earliest start. HEFT writes its schedule down in
    advance, and puts a task into a hole that one of higher rank left: `built_s` is how long that
    schedule of one job takes. A run, which can't know when holes end, goes by rank, as
    `CriticalPath` does; what may pass those that wait for room: hence the default `fit`.
    """

    fit: Literal["strict", "skip", "pack"] = "skip"

    def built_s(self, workload: Workload, cluster: Cluster) -> float:
        """Return the makespan of the schedule that HEFT writes down for the one job, s."""
        columns = workload.columns
        demand, capacity = demand_quanta(columns, cluster)
        dag = one_job(columns, demand, 0, columns.task_duration)
        return heft_schedule(dag, capacity).span_s


@register("strip")
@dataclass(frozen=True)
class Strip(Policy):
    """Each job's stages part into levels of mutually independent ones, which run one by one.

    Augustine, Banerjee and Irani, *Strip packing with precedence constraints and strip packing
    with release times*, SPAA 2006: levels by divide and conquer on the time that the job would
    take with unlimited room, O(log n) from the optimum for one resource (StripPart, a baseline of
    DAGPS, §8.3). Within a level the longest stage goes first (the decreasing heights that their
    packers take), and no task of a level starts before the one before it has ended: on purpose
    room stays empty that tasks want. The levels of a gang job are ordered, not held apart. With a
    fit other than "strict" a task of a later level may take the turn of one that does not fit.
    """

    events: ClassVar[Event] = Event.TASKS_DONE
    conserves_work: ClassVar[bool] = False

    def prepare(self, world: World, plan: Plan) -> Gates:
        """Order stages by level and length, and let each job start its first level only."""
        from sim.dags.kernels.levels import strip_levels  # numba: slow to import

        c = world.columns
        order = topological_order(c)
        level = strip_levels(c.job_stage0, order, c.edge0, c.edge_child, c.stage_max_s)
        key = np.empty(len(level))
        key[np.lexsort((-c.stage_max_s, level, c.stage_job))] = np.arange(len(level))
        plan.set_stages(key=key)
        plan.task_order = longest_first(c.task_duration, c)
        gates = Gates.of(level, c)
        held = np.flatnonzero(c.job_min_tasks == 0)
        first = gates.n_tasks[gates.at[held]]
        plan.set_jobs(held, start_gate=first, notify_at=first)
        return gates

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Let the jobs whose level has ended start the next one."""
        assert isinstance(memory, Gates)
        jobs = batch.rows(Event.TASKS_DONE)
        memory.at[jobs] += 1
        jobs = jobs[memory.at[jobs] < memory.end[jobs]]
        gate = memory.n_tasks[memory.at[jobs]]
        plan.set_jobs(jobs, start_gate=gate, notify_at=gate)


@dataclass(frozen=True, eq=False)
class Gates:
    """How many tasks each job may have started by the end of each of its L levels."""

    n_tasks: I8  # tasks of the job up to and with the level, for the levels of all jobs
    at: I8  # the level at which each job is, moved on as it runs
    end: I8  # the level behind each job's last

    @classmethod
    def of(cls, level: I4, columns: Columns) -> Gates:
        """Count the tasks up to each level of each job."""
        n_levels = np.maximum.reduceat(level, columns.job_stage0[:-1]).astype(np.int64) + 1
        first = offsets(n_levels)
        size = np.diff(columns.stage_task0)
        inside = np.bincount(first[columns.stage_job] + level, size, first[-1]).astype(np.int64)
        upto = offsets(inside)
        before = np.repeat(upto[first[:-1]], n_levels)
        return cls(upto[1:] - before, first[:-1].copy(), first[1:])
