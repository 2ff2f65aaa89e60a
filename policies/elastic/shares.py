"""Shares of the cluster that places of jobs take, and the jobs among which they are shared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from policies.base import Policy
from sim.base.arrays import F8, I8, Mask
from sim.cluster.sizing import stage_demands
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.elastic import paces

SLACK = 1e-9
"""Part of the cluster by which sums of shares may exceed it, for their last bits."""


@dataclass
class Jobs:
    """Jobs of a run, and those of them that are active: submitted, and not over.

    Attributes
    ----------
    cost : (J,) float64
        Dominant share of the cluster that one place takes.
    low, high : (J,) int64
        Widths: of a job that is not elastic the slots of its gang, or 1.
    is_elastic : (J,) bool
        Elastic jobs.
    active : list of int
        Rows, in the order of submission.
    """

    world: World
    cost: F8
    low: I8
    high: I8
    is_elastic: Mask
    active: list[int] = field(default_factory=list)

    @classmethod
    def before(cls, world: World) -> Jobs:
        """Return the jobs of a world before its first event."""
        columns, cluster = world.columns, world.cluster
        share = (stage_demands(columns, cluster) / cluster.total).max(axis=1)
        is_elastic = columns.job_width_min > 0
        low = np.maximum(columns.job_min_tasks, 1).astype(np.int64)
        high = np.where(is_elastic, columns.job_n_tasks, low)
        cost = np.maximum.reduceat(share, columns.job_stage0[:-1])
        return cls(world, cost, low, high, is_elastic)

    def follow(self, batch: Batch) -> I8:
        """Take the jobs that came and went; return the active ones."""
        over = {*batch.rows(Event.JOB_DONE).tolist(), *batch.rows(Event.JOB_FAILED).tolist()}
        if over:
            self.active = [j for j in self.active if j not in over]
        self.active += [j for j in batch.rows(Event.JOB_ARRIVED).tolist() if j not in over]
        return np.array(self.active, np.int64)

    def pace(self, j: int) -> F8:
        """Return the pace of elastic job `j` at the widths from 0 on."""
        columns = self.world.columns
        return paces(columns.speedups[columns.job_speedup[j]], int(self.high[j]))

    def admitted(self, rows: I8) -> tuple[I8, float]:
        """Return those that have their least widths together, in order, and the share left over.

        Jobs that run have theirs in any case, and a waiting one that does not fit stops the rest.
        """
        runs = self.world.view["running"][rows] > 0
        in_order = np.concatenate([rows[runs], rows[~runs]])
        used = np.cumsum(self.cost[in_order] * self.low[in_order])
        n = max(int(np.searchsorted(used, 1.0 + SLACK, side="right")), int(runs.sum()))
        left = 1.0 - float(used[n - 1]) if n else 1.0
        return in_order[:n], left

    def set_widths(self, plan: Plan, rows: I8, width: I8) -> None:
        """Set the widths of some jobs that are elastic, and have others."""
        changes = self.is_elastic[rows] & (self.world.view["running"][rows] != width)
        if changes.any():
            plan.set_jobs(rows[changes], width=width[changes])


@dataclass(frozen=True)
class Widths(Policy):
    """Base of policies that share the cluster out anew whenever a job comes or goes.

    Jobs start in the order of submission, each with its least width at least.
    """

    events: ClassVar[Event] = Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED
    conserves_work: ClassVar[bool] = False

    def prepare(self, world: World, plan: Plan) -> Jobs:
        """Let each job wait with its least width."""
        jobs = Jobs.before(world)
        plan.set_jobs(width=jobs.low)
        return jobs

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Share the cluster out among the active jobs, if any job of the run is elastic."""
        assert isinstance(memory, Jobs)
        if memory.is_elastic.any():
            self.share(memory, memory.follow(batch), batch, plan)

    def share(self, jobs: Jobs, rows: I8, batch: Batch, plan: Plan) -> None:
        """Set the widths of the active jobs `rows`."""
        if len(rows):
            rows, left = jobs.admitted(rows)
            jobs.set_widths(plan, rows, self.widths(jobs, rows, left))

    def widths(self, jobs: Jobs, rows: I8, left: float) -> I8:
        """Return the width of each of the jobs `rows`; `left` is what their least leave over.

        The least, unless a policy has others.
        """
        return jobs.low[rows]
