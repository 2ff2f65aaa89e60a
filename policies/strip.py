"""Strip packing with precedence constraints: whole levels, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.base.arrays import I4, I8
from sim.base.ragged import offsets
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.paths import topological_order

if TYPE_CHECKING:
    from sim.workload.columns import Columns


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
        from sim.dags.kernels.levels import strip_levels

        c = world.columns
        order = topological_order(c)
        level = strip_levels(c.job_stage0, order, c.edge0, c.edge_child, c.stage_max_s)
        key = np.empty(len(level))
        key[np.lexsort((-c.stage_max_s, level, c.stage_job))] = np.arange(len(level))
        plan.set_stages(key=key)
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
