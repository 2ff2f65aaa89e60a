"""List scheduling by ranks of stages in their DAG: bfs, critical_path, coffman_graham.

Strip packing (strip) runs the levels of a DAG one after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from policies.base import Policy
from policies.estimates.by_duration import ByDuration
from policies.estimates.durations import Declared
from policies.estimates.paths import order_by_paths
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I4, I8, frozen, offsets
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.columns import Columns
from sim.workload.paths import stage_depth, stage_tail_s, task_tail_s, topological_order


@dataclass(frozen=True)
class ListScheduling(Policy, ABC):
    """Stages in the order of a list that is computed from the DAGs before the run.

    Attributes
    ----------
    across : {"jobs", "stages"}
        Scope of the order. "jobs": jobs go first come, first served, and the order holds inside
        each. "stages": one order of the stages of all jobs.
    """

    across: Literal["jobs", "stages"] = "jobs"

    def prepare(self, world: World, plan: Plan) -> object:
        """Key each stage by its rank in the list."""
        plan.set_stages(key=self.stage_key(world.columns))
        plan.task_order = self.task_order(world.columns)
        self._set_scope(world, plan)
        return None

    def _set_scope(self, world: World, plan: Plan) -> None:
        if self.across == "stages":
            plan.set_jobs(key=np.zeros(len(world.columns.job_submit)))

    @abstractmethod
    def stage_key(self, columns: Columns) -> F8 | I4:
        """Return the key of each stage, (G,); the lowest goes first."""

    def task_order(self, columns: Columns) -> I4 | None:
        """Return the order of the tasks inside each stage (`Plan.task_order`); None: by row."""
        return None


def longest_first(seconds: F8, columns: Columns) -> I4 | None:
    """Order the tasks inside each stage by descending `seconds`, (T,); None if that is by row."""
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

    The order of Tez inside a job, and the baseline of DAGPS (MSR-TR-2016-19, §8.1).
    """

    def stage_key(self, columns: Columns) -> I4:
        """Return each stage's depth."""
        return stage_depth(columns)


@register("critical_path")
@dataclass(frozen=True)
class CriticalPath(ByDuration, ListScheduling):
    """Stages in the order of the longest path of tasks from them to their job's end.

    Highest level first (Hu, *Parallel sequencing and assembly line problems*, 1961; Graham's
    list scheduling), the CP of DAGPS (MSR-TR-2016-19, §8.1). With true durations, the default,
    tasks inside a stage go by the longest path from themselves, the longest task first over
    barriers; otherwise all tasks of a stage are expected to take equally long.
    """

    def prepare(self, world: World, plan: Plan) -> object:
        """Key each stage by its path."""
        self._set_scope(world, plan)
        return super().prepare(world, plan)

    def order_by_truth(self, world: World, plan: Plan) -> None:
        """Key each stage by its true path."""
        ListScheduling.prepare(self, world, plan)

    def order_by_estimates(self, world: World, plan: Plan, jobs: I4 | I8, work_s: F8) -> None:
        """Key the stages of `jobs` by their expected paths."""
        order_by_paths(world.columns, plan, jobs)

    def stage_key(self, columns: Columns) -> F8:
        """Return each stage's negative path length."""
        return -stage_tail_s(columns)

    def task_order(self, columns: Columns) -> I4 | None:
        """Return the order by path length."""
        return longest_first(task_tail_s(columns), columns)


@register("coffman_graham")
@dataclass(frozen=True)
class CoffmanGraham(ListScheduling):
    """Stages by descending Coffman–Graham label, which depends on the shape of the DAG alone.

    Coffman and Graham, *Optimal scheduling for two-processor systems*, Acta Informatica 1, 1972:
    optimal for unit tasks on two machines, within 2 − 2/m of the optimum on m (a baseline of DAGPS,
    §8.3). Over barriers all tasks of a stage have the same parents and children, so that the labels
    of stages order tasks as labels of tasks would. A one-to-one edge counts as a barrier.
    """

    def stage_key(self, columns: Columns) -> I4:
        """Return each stage's negative label."""
        from sim.dags.kernels.levels import coffman_graham_labels  # numba: slow to import

        c = columns
        label: I4 = coffman_graham_labels(c.job_stage0, topological_order(c), c.edge0, c.edge_child)
        return -label


@register("strip")
@dataclass(frozen=True)
class Strip(Policy):
    """Strip packing: each job's DAG is split into levels of independent stages, run in sequence.

    Augustine, Banerjee and Irani, *Strip packing with precedence constraints and strip packing
    with release times*, SPAA 2006: levels by divide and conquer on the time that the job would
    take with unlimited resources, O(log n) from the optimum for one resource (StripPart, a baseline
    of DAGPS, §8.3). Within a level the longest stage goes first (the decreasing heights of their
    packers). No task of a level starts before the level before it has ended, so that resources
    stay idle on purpose. The levels of a gang job are ordered, but may overlap, and so may those of
    a job that loses outputs, as a level may need a task of an earlier one again: with declared
    durations those of any job, if tasks fail. With a fit other than "strict" a task of a later
    level may run instead of one that does not fit.

    Attributes
    ----------
    knowledge : {"true", "declared"}
        Source of durations: the truth, or requested run times. Levels are made before the run,
        so that nothing can be learnt during it.
    """

    knowledge: Literal["true", "declared"] = "true"

    events: ClassVar[Event] = Event.TASKS_DONE
    conserves_work: ClassVar[bool] = False

    @property
    def knows(self) -> Knows:
        """Durations, from the source that `knowledge` names."""
        return Knows(durations=self.knowledge)

    def prepare(self, world: World, plan: Plan) -> LevelGates:
        """Order stages by level and length, and let each job start its first level only."""
        from sim.dags.kernels.levels import strip_levels  # numba: slow to import

        c = world.columns
        order = topological_order(c)
        is_true = self.knowledge == "true"
        longest_s = c.stage_max_s if is_true else frozen(Declared(c).expect(np.arange(len(order))))
        level = strip_levels(c.job_stage0, order, c.edge0, c.edge_child, longest_s)
        key = np.empty(len(level))
        key[np.lexsort((-longest_s, level, c.stage_job))] = np.arange(len(level))
        plan.set_stages(key=key)
        if is_true:
            plan.task_order = longest_first(c.task_duration, c)
        gates = LevelGates.build(level, c)
        has_gate = (c.job_min_tasks == 0) & (np.maximum.reduceat(level, c.job_stage0[:-1]) > 0)
        if is_true:
            has_gate[jobs_that_lose_outputs(c)] = False
        elif world.fails:  # any of them may
            has_gate[:] = False
        gated = np.flatnonzero(has_gate)
        first_gate = np.array(gates.n_tasks, np.int64)[np.array(gates.current, np.int64)[gated]]
        plan.set_jobs(gated, start_gate=first_gate, notify_at=first_gate)
        return gates

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Open the next level of jobs whose level has ended."""
        assert isinstance(memory, LevelGates)
        for job in batch.row.tolist():
            memory.current[job] = level = memory.current[job] + 1
            gate = memory.n_tasks[level]
            is_last = level + 1 == memory.end[job]
            plan.set_jobs(job, start_gate=gate, notify_at=0 if is_last else gate)


def jobs_that_lose_outputs(columns: Columns) -> I4:
    """Return the rows of jobs of which a failing attempt loses the output of another task."""
    lost = columns.attempt_lost[columns.attempt_lost >= 0]
    return np.unique(columns.stage_job[columns.stages_of(lost)])


@dataclass(frozen=True, eq=False)
class LevelGates:
    """Limits on started tasks by level, for jobs that run their levels in sequence.

    Lists, because callbacks read one number at a time.
    """

    n_tasks: list[int]  # of the job, up to and including the level, for the levels of all jobs
    current: list[int]  # each job's current level, advanced as it runs
    end: list[int]  # one past each job's last level

    @classmethod
    def build(cls, level: I4, columns: Columns) -> LevelGates:
        """Count the tasks up to each level of each job."""
        n_levels = np.maximum.reduceat(level, columns.job_stage0[:-1]).astype(np.int64) + 1
        first_level = offsets(n_levels)
        size = np.diff(columns.stage_task0)
        level_tasks = np.bincount(
            first_level[columns.stage_job] + level, size, first_level[-1]
        ).astype(np.int64)
        cumulative = offsets(level_tasks)
        n_before = np.repeat(cumulative[first_level[:-1]], n_levels)
        n_tasks = cumulative[1:] - n_before
        return cls(n_tasks.tolist(), first_level[:-1].tolist(), first_level[1:].tolist())
