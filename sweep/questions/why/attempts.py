"""Attempts of tasks in a run: when each held room, on which machine, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, Mask, offsets
from sim.cluster.exclusive import with_parts
from sim.engine.layout.choice import machine_quanta
from sim.engine.layout.columns import demand_quanta, order_resources, resource_quanta
from sim.engine.record import Run
from sim.engine.stops import REASONS
from sim.workload.columns import Columns
from sweep.driver.captured_run import Captured

DONE = -1
"""Reason of an attempt that was not stopped; else an index in `sim.engine.stops.REASONS`."""
OUTPUT_LOST = REASONS.index("output lost")


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attempts of tasks, or batches of like ones, by job and start: N rows.

    Attributes
    ----------
    captured : Captured
        The run.
    job, stage, task, count, machine : (N,) int64
        `count` tasks from `task` on.
    placed_s, start_s, end_s : (N,) float64
        When it took its room, ran, and ended, s on the clock of the run.
    held_s : (N,) float64
        Until when its room was held (`simple_gangs`).
    reason : (N,) int8
        Why it was stopped, or `DONE`.
    job0 : (J+1,) int64
        Rows of job j are ``job0[j]`` to ``job0[j + 1]``.
    resources : tuple of str
        The F resources that decide what fits.
    demand : (G, F) int64
        Of a task of each stage, quanta.
    capacity : (M, F) int64
        Of each machine, quanta.
    """

    captured: Captured
    job: I8
    stage: I8
    task: I8
    count: I8
    machine: I8
    placed_s: F8
    start_s: F8
    end_s: F8
    held_s: F8
    reason: I1
    job0: I8
    resources: tuple[str, ...]
    demand: I8
    capacity: I8

    @property
    def run(self) -> Run:
        """The run on its own clock."""
        return self.captured.result.on_own_clock

    @property
    def columns(self) -> Columns:
        """Columns of its workload."""
        return self.run.allocated

    @cached_property
    def came_s(self) -> F8:
        """Time at which each job could be started first, s; its submission if it never could."""
        run = self.run
        if run.job_eligible is None:
            return run.job_submit
        return np.where(np.isnan(run.job_eligible), run.job_submit, run.job_eligible)

    @cached_property
    def is_whole(self) -> Mask:
        """True for attempts whose output was made: they ran to their end."""
        whole: Mask = (self.reason == DONE) | (self.reason == OUTPUT_LOST)
        return whole

    @cached_property
    def by_placement(self) -> I8:
        """Rows by the time at which they took their room."""
        return np.argsort(self.placed_s, kind="stable")

    def parents(self, stage: int) -> list[tuple[int, int]]:
        """Return the parents of a stage, each with the kind of its edge."""
        order, first, parent = self._edges
        edges = order[first[stage] : first[stage + 1]]
        kinds = self.columns.edge_kind[edges]
        return list(zip(parent[edges].tolist(), kinds.tolist(), strict=True))

    @cached_property
    def _edges(self) -> tuple[I8, I8, I8]:
        """Edges by their child, the first of each child, and the parent of each edge."""
        columns, n_stages = self.columns, len(self.columns.stage_job)
        parent = np.repeat(np.arange(n_stages), np.diff(columns.edge0))
        first = offsets(np.bincount(columns.edge_child, minlength=n_stages))
        return np.argsort(columns.edge_child, kind="stable"), first, parent

    def rows_of(self, job: int) -> slice:
        """Return the rows of a job."""
        return slice(int(self.job0[job]), int(self.job0[job + 1]))


def read_attempts(captured: Captured) -> Attempts:
    """Read the attempts of a run that kept the times of its tasks."""
    run = captured.result.on_own_clock
    columns, cluster = with_parts(run.allocated, run.cluster)
    resources, _, n_fit = order_resources(cluster, captured.plan)
    quantum = resource_quanta(columns, cluster, resources)
    demand = demand_quanta(columns, cluster, resources)[:, :n_fit]
    demand = np.broadcast_to(demand, (len(columns.stage_job), n_fit))
    order = [cluster.resources.index(name) for name in resources]
    task, count, machine, placed, start, end, reason = _rows(run)
    stage = columns.stages_of(task)
    job = columns.stage_job[stage].astype(np.int64)
    by_job = np.lexsort((task, start, job))
    job, stage, placed, end = job[by_job], stage[by_job], placed[by_job], end[by_job]
    reason = reason[by_job]
    return Attempts(
        captured,
        job,
        stage,
        task[by_job],
        count[by_job],
        machine[by_job],
        placed,
        start[by_job],
        end,
        _held_until(columns, job, placed, end, reason),
        reason,
        offsets(np.bincount(job, minlength=len(columns.job_submit))),
        resources[:n_fit],
        demand,
        machine_quanta(cluster, order, quantum)[:, :n_fit],
    )


def _rows(run: Run) -> tuple[I8, I8, I8, F8, F8, F8, I1]:
    """Return task, count, machine, times and reason of what ran, and of what was stopped."""
    records, stopped = run.records, run.stopped
    assert records is not None
    assert stopped is not None
    whole = slice(0, len(records.start_s))
    start, end = records.times(whole)
    placed, _ = run.occupancy(whole)
    first: I4 | I8 = np.arange(len(start)) if records.task is None else records.task
    sizes = np.ones(len(start), np.int64) if records.count is None else records.count
    ran = np.flatnonzero(np.isfinite(start) & np.isfinite(end))
    n_stops = len(stopped.task)
    return (
        np.concatenate([first[ran], stopped.task]).astype(np.int64),
        np.concatenate([sizes[ran], np.ones(n_stops)]).astype(np.int64),
        np.concatenate([records.machine[ran], stopped.machine]).astype(np.int64),
        np.concatenate([placed[ran], stopped.start_s]),
        np.concatenate([start[ran], stopped.start_s]),
        np.concatenate([end[ran], stopped.stop_s]),
        np.concatenate([np.full(len(ran), DONE, np.int8), stopped.reason]),
    )


def simple_gangs(columns: Columns, job: I8, placed: F8, end: F8, reason: I1) -> Mask:
    """Tell which jobs are gangs that start once, with all their tasks, (J,).

    Of these alone it is known what they hold: the room of their tasks, until the last one ends. A
    task that ends at once leaves its slot to another.
    """
    gang = columns.job_min_tasks
    is_simple: Mask = (
        (gang > 1) & (gang == columns.job_n_tasks) & (np.diff(columns.job_stage0) == 1)
    )
    is_simple[job[reason != DONE]] = False
    first = np.full(len(gang), np.inf)
    np.minimum.at(first, job, placed)
    is_simple[job[(placed > first[job]) | (end <= placed)]] = False
    return is_simple


def _held_until(columns: Columns, job: I8, placed: F8, end: F8, reason: I1) -> F8:
    """Return until when room is held: that of a simple gang until its last attempt ends."""
    last = np.full(len(columns.job_submit), -np.inf)
    np.maximum.at(last, job, end)
    return np.where(simple_gangs(columns, job, placed, end, reason)[job], last[job], end)
