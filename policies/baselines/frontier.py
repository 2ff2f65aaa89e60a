"""Frontier of jobs that are there, the stages whose inputs are made, in drawn order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policies.estimates.durations import Declared
from policies.estimates.paths import expected_tails_s
from sim.base import maths
from sim.base.arrays import F8, I4, I8, Mask
from sim.base.random import Stream
from sim.cluster.carbon import HORIZON_S, steps_ahead
from sim.cluster.power import CARBON
from sim.engine.plan import NO_LIMIT, Batch, Event, World
from sim.engine.plan.world import MIN_RUN_S
from sim.workload.columns import Columns
from sim.workload.paths import stage_tail_s

_OF_JOBS = Event.JOB_ARRIVED | Event.JOB_DONE | Event.JOB_FAILED
EVENTS = _OF_JOBS | Event.STAGE_DONE | Event.TASKS_DONE | Event.TIMER
"""Events after which stages are drawn."""


@dataclass
class Frontier:
    """Stages of a run whose parents have all ended once, of jobs that are submitted and not over.

    A stage with one-to-one inputs is in it when its parents have ended, too.

    Attributes
    ----------
    columns : Columns
    n_parents : (G,) int64
        Parents of each stage that have not ended.
    is_done : (G,) bool
        Stages that have ended.
    stages_by_job : dict of int to list of int
        Stages in the frontier, of each job that is there.
    """

    columns: Columns
    n_parents: I8
    is_done: Mask
    stages_by_job: dict[int, list[int]]

    @classmethod
    def before(cls, columns: Columns) -> Frontier:
        """Return the frontier before the first event."""
        n_parents = columns.stage_n_barrier.astype(np.int64) + columns.stage_n_o2o
        return cls(columns, n_parents, np.zeros(len(n_parents), bool), {})

    def follow(self, batch: Batch) -> None:
        """Take the jobs that come and go, and the children of stages that end."""
        c = self.columns
        for stage in batch.rows(Event.STAGE_DONE).tolist():
            if self.is_done[stage]:  # it has been run again, as an output was lost
                continue
            self.is_done[stage] = True
            for child in c.edge_child[c.edge0[stage] : c.edge0[stage + 1]].tolist():
                self.n_parents[child] -= 1
                stages = self.stages_by_job.get(int(c.stage_job[child]))
                if self.n_parents[child] == 0 and stages is not None:
                    stages.append(child)
        for job in batch.rows(Event.JOB_ARRIVED).tolist():
            first, last = int(c.job_stage0[job]), int(c.job_stage0[job + 1])
            self.stages_by_job[job] = [g for g in range(first, last) if self.n_parents[g] == 0]
        for kind in (Event.JOB_DONE, Event.JOB_FAILED):
            for job in batch.rows(kind).tolist():
                self.stages_by_job.pop(job, None)

    def waiting(self, view: Mapping[str, NDArray[Any]]) -> tuple[I8, I8]:
        """Return the stages with tasks that have not started, and how many these are."""
        rows = [stage for stages in self.stages_by_job.values() for stage in stages]
        stages = np.array(rows, np.int64)
        task0 = self.columns.stage_task0
        n_left: I8 = task0[stages + 1] - task0[stages] - view["stage_started"][stages]
        return stages[n_left > 0], n_left[n_left > 0]

    def runs(self, view: Mapping[str, NDArray[Any]]) -> bool:
        """Tell whether a task of these jobs runs."""
        jobs: I4 = np.fromiter(self.stages_by_job, np.int32, len(self.stages_by_job))
        return bool(view["running"][jobs].any())


@dataclass
class Drawing:
    """Draws of stages by the longest path to the end of their job, and the carbon intensity.

    Attributes
    ----------
    frontier : Frontier
    path_s : (G,) float64
        Longest path of tasks from each stage to the end of its job, s.
    at_s : (N,) float64
        Times from which on the steps hold, on the clock of the run.
    steps : (N, 3) float64
        Carbon intensity, and the least and the greatest to come.
    rng : Stream
    gated : set of int
        Jobs of which some task may not start.
    """

    frontier: Frontier
    path_s: F8
    at_s: F8
    steps: F8
    rng: Stream
    gated: set[int] = field(default_factory=set)

    @classmethod
    def before(cls, world: World, knowledge: Literal["true", "declared"]) -> Drawing:
        """Return the draws before the first; a world without an intensity has one step."""
        c, power = world.columns, world.cluster.power
        n_jobs = len(c.job_submit)
        if knowledge == "true":
            path_s = stage_tail_s(c)
        else:
            task_s = Declared(c).expect(np.arange(len(c.stage_job)))
            path_s = expected_tails_s(c, task_s, np.arange(n_jobs))[1]
        at_s, steps = np.zeros(1), np.zeros((1, 3))
        if power is not None and CARBON in power.series:
            first_s, last_s = float(c.job_submit[0]), float(c.job_submit[-1])
            at_s, rows = steps_ahead(power.series[CARBON], last_s - first_s, HORIZON_S)
            at_s, steps = at_s + first_s, np.array([*rows])
            steps[-1, 1:] = steps[-1, 0]  # not followed any further
        path_s = np.maximum(path_s, MIN_RUN_S)
        return cls(Frontier.before(c), path_s, at_s, steps, world.rng("pcaps"))

    def draw(self, stages: I8) -> F8:
        """Return keys by which stages come one after the other by chance, each by its path."""
        key: F8 = self.rng.exponential(1.0, len(stages)) / self.path_s[stages]
        return key

    def intensity(self, now: float) -> tuple[float, float, float, float]:
        """Return the intensity, the least and the greatest to come, and when it changes, s."""
        step = max(int(np.searchsorted(self.at_s, now, side="right")) - 1, 0)
        is_last = step + 1 == len(self.at_s)
        grams, low, high = self.steps[step].tolist()
        return grams, low, high, np.inf if is_last else float(self.at_s[step + 1])

    def gates(
        self, stages: I8, n_left: I8, is_deferred: Mask, view: Mapping[str, NDArray[Any]]
    ) -> tuple[I4, I8]:
        """Return the job of each drawn stage, and how many tasks it may start in all.

        Tasks of the stages before the first that is deferred may, or of the first if nothing runs.
        """
        n_released = int(is_deferred.argmax()) if is_deferred.any() else len(stages)
        if n_released == 0 and not self.frontier.runs(view):
            n_released = 1
        columns = self.frontier.columns
        jobs = columns.stage_job[stages]
        n_more = np.zeros(int(jobs.max(initial=-1)) + 1, np.int64)
        waits = np.zeros(len(n_more), bool)
        np.add.at(n_more, jobs[:n_released], n_left[:n_released])
        waits[jobs[n_released:]] = True
        gates: I8 = view["started"][jobs] + n_more[jobs]
        is_whole = (columns.job_min_tasks[jobs] > 0) & (gates > 0)  # a gang that begins goes on
        is_held = waits[jobs] & ~is_whole
        self.gated.update(jobs[is_held].tolist())
        return jobs, np.where(is_held, gates, NO_LIMIT)

    def released(self) -> I4:
        """Return the jobs that may have been held, which no longer are."""
        jobs = np.fromiter(self.gated, np.int32, len(self.gated))
        self.gated.clear()
        return jobs


def threshold(importance: F8, gamma: float, low: float, high: float) -> F8:
    """Return the carbon intensity up to which stages of some importance, 0 to 1, start.

    It rises with importance, from ``high`` - γ (``high`` - ``low``) to ``high``.
    """
    if gamma == 0:
        return np.full(len(importance), high)
    rise = maths.expm1(gamma * importance) / maths.expm1(gamma)
    return high - gamma * (high - low) * (1.0 - rise)
