"""Service that jobs have had, and how long they have waited since they were stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.engine.plan import Batch, Event, Plan, World

SPAN = 2.0**40
"""Distance of the keys of two ranks, s."""
SOON_S = 1e-6
"""Time by which a promotion may be early, s."""


@dataclass
class Served:
    """Jobs of a run, with their queues and, for promotions, their times.

    Times of jobs whose tasks do not all run together are as of the last event.

    Attributes
    ----------
    gpus : (J,) float64
        GPUs by which the service of a task counts.
    is_whole : (J,) bool
        Gangs, and jobs of one task.
    queue : (J,) int64
    before_s : (J,) float64
        Service before the last promotion, task s.
    service_s : (J,) float64
        Service in all, task s.
    ran_s, waited_s : (J,) float64
        Time since the last promotion in which the job ran, and in which it was stopped, s.
    now : float
        Time up to which these count, s.
    rows : list of int
        Jobs that are submitted and not over.
    """

    gpus: F8
    is_whole: Mask
    queue: I8
    before_s: F8
    service_s: F8
    ran_s: F8
    waited_s: F8
    now: float = 0.0
    rows: list[int] = field(default_factory=list)

    @classmethod
    def before(cls, world: World) -> Served:
        """Return the jobs of a world before its first event."""
        columns, name = world.columns, world.cluster.devices
        n_jobs = len(columns.job_submit)
        gpus = np.ones(n_jobs)
        if name in columns.resources:
            demand = columns.stage_demand_f[:, columns.resources.index(name)]
            widest = np.maximum.reduceat(demand, columns.job_stage0[:-1])
            gpus = np.where(widest > 0, widest, 1.0)  # a job without GPUs counts as of one a task
        before_s, service_s, ran_s, waited_s = np.zeros((4, n_jobs))
        is_whole = (columns.job_min_tasks > 0) | (columns.job_n_tasks == 1)
        return cls(gpus, is_whole, np.zeros(n_jobs, np.int64), before_s, service_s, ran_s, waited_s)

    def follow(self, batch: Batch) -> None:
        """Take the jobs that come and go."""
        over = {*batch.rows(Event.JOB_DONE).tolist(), *batch.rows(Event.JOB_FAILED).tolist()}
        arrived = batch.rows(Event.JOB_ARRIVED).tolist()
        self.rows = [j for j in self.rows + arrived if j not in over]

    def place(self, plan: Plan, jobs: I4 | I8, rank: I8, start_s: F8, until_gpu_s: F8) -> None:
        """Order some jobs by rank, then those that have run by first start, then by submission.

        A gang, or a job of one task, stops such ones of a greater rank.

        :param until_gpu_s: Service since the last promotion at which to look at each again.
        """
        key = rank * SPAN + np.where(np.isnan(start_s), SPAN / 2 + jobs, start_s)
        bound = self.before_s[jobs] + until_gpu_s / self.gpus[jobs]
        is_whole, level = self.is_whole[jobs], -rank.astype(np.float64)
        level, below = np.where(is_whole, level, np.inf), np.where(is_whole, level, -np.inf)
        plan.set_jobs(jobs, key=key, service_at=bound, preempt_level=level, preempts_below=below)

    def promote(self, batch: Batch, world: World, knob: float) -> tuple[I8, float]:
        """Let jobs that have waited for `knob` times their run go to the first queue.

        Return them, and when the next is due, if it is stopped now or was before, s.
        """
        rows, lasted_s = np.array(self.rows, np.int64), batch.now - self.now
        self.now = batch.now
        running = world.view["running"][rows]
        runs, stopped = rows[running > 0], rows[(running == 0) & (self.ran_s[rows] > 0)]
        self.service_s[runs] += running[running > 0] * lasted_s
        self.ran_s[runs] += lasted_s
        self.waited_s[stopped] += lasted_s
        self.follow(batch)
        low = np.array([j for j in self.rows if self.queue[j] > 0], np.int64)
        left_s = knob * self.ran_s[low] - self.waited_s[low]
        is_due = (left_s <= SOON_S) & (world.view["running"][low] == 0)
        up = low[is_due]
        self.queue[up] = 0
        self.before_s[up] = self.service_s[up]
        self.ran_s[up] = self.waited_s[up] = 0.0
        next_s = np.maximum(left_s[~is_due], SOON_S).min(initial=math.inf)
        return up, float(batch.now + next_s)


@dataclass
class Indexed(Served):
    """Jobs in quanta of service (`queue`), known services, GPU s, and ranks by quanta had.

    The `newest` services are not in the ranks yet.
    """

    services: F8 = field(default_factory=lambda: np.zeros(0))
    newest: F8 = field(default_factory=lambda: np.zeros(0))
    ranks: I8 = field(default_factory=lambda: np.zeros(1, np.int64))

    def learn(self, services: F8, quantum: float) -> bool:
        """Take more services; rank by all, and return True, once they are a sixteenth more."""
        self.newest = np.append(self.newest, services)
        if len(self.newest) * 16 < max(len(self.services), 1):
            return False
        self.services = np.sort(np.append(self.services, self.newest))
        self.newest = np.zeros(0)
        self.ranks = gittins_ranks(self.services, quantum)
        return True


def gittins_ranks(services: F8, quantum: float) -> I8:
    """Return the rank of a job that has had 0, 1, 2, ... quanta by its Gittins index, (Q,).

    The index is P(S - a <= quantum) / E[min(S - a, quantum)] of the services S above a, what it has
    had; rank 0 is that of the greatest. The last is of jobs beyond all services, whose index is 0.

    :param services: Ascending, above 0, (N,).
    """
    n = len(services)
    longest = float(services[-1]) if n else 0.0
    had = np.arange(int(longest / quantum) + 2) * quantum
    first, last = (np.searchsorted(services, x, side="right") for x in (had, had + quantum))
    sums = np.concatenate([np.zeros(1), np.cumsum(services)])
    n_ending = last - first
    takes = sums[last] - sums[first] - had * n_ending + quantum * (n - last)
    index = np.where(n_ending > 0, n_ending * quantum / np.where(takes > 0, takes, 1.0), 0.0)
    ranks: I8 = np.unique(-np.round(index, 9), return_inverse=True)[1]
    return ranks
