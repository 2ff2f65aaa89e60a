"""Urgency of jobs with deadlines: by their slack, or by Jockey's model of their recorded runs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from policies.estimates.durations import Truth
from policies.estimates.paths import expected_tails_s
from policies.jockey.control import Law, training_profile
from policies.jockey.model import Effort, Simulated, simulated_model
from policies.wserpt.worth import Worth
from sim.base import maths
from sim.base.arrays import F8, I8, ranges
from sim.base.errors import InputError
from sim.cluster.sizing import stage_demands
from sim.engine.plan import Plan, World
from sim.workload.columns import final_deadline_s

UrgencyName = Literal["model", "slack"]


class Urgency(Worth):
    """Apparent tardiness cost (Vepsalainen and Morton, Management Science 33, 1987).

    The factor is 1 plus `weight` times exp(-slack / (`lookahead` · need)). Slack is the time to the
    deadline beyond the need: the job's longest expected path, or its work over the cluster. So the
    order minimises completion times plus `weight` times tardiness. Here the scale is the job's own
    need, to which the error of its estimate is in proportion, and not the mean over jobs: those on
    one cluster differ by orders of magnitude. Jobs without a deadline have 1. With `runs` the need
    of a job with recorded runs is that of Jockey's model (`RecordedRuns`).
    """

    def __init__(
        self, world: World, plan: Plan, weight: float, lookahead: float, runs: RecordedRuns | None
    ) -> None:
        self._world, self._plan, self._runs = world, plan, runs
        self._weight, self._lookahead = weight, lookahead
        self._slots = slots(world)
        self._is_due = np.isfinite(world.columns.job_deadline)
        self._tail_s: dict[int, F8] = {}  # longest path from each stage to the end of its job, s

    def acts_on(self, job: int) -> bool:
        """See `Worth`: on a job with a deadline."""
        return bool(self._is_due[job])

    def factor(self, jobs: I8, now: float) -> F8:
        """See `Worth`."""
        out, columns = np.ones(len(jobs)), self._world.columns
        rows = np.flatnonzero(self._is_due[jobs])
        if not len(rows):
            return out
        due = jobs[rows]
        elapsed_s = now - self._world.view["submit"]
        left_s = final_deadline_s(columns, elapsed_s)[due] - elapsed_s[due]
        urgency = np.full(len(due), np.nan)
        if self._runs is not None:
            known = zip(due.tolist(), left_s.tolist(), strict=True)
            urgency[:] = [self._runs.urgency(job, left, self._lookahead) for job, left in known]
        rest = np.isnan(urgency)
        if rest.any():
            need_s = self._need_s(due[rest])
            urgency[rest] = tardiness(left_s[rest], need_s, self._lookahead)
        out[rows] += self._weight * urgency
        return out

    def _need_s(self, jobs: I8) -> F8:
        """Return the longer of the expected path and the work over the cluster of each job, s."""
        need_s = remaining_s(self._world, self._plan, jobs) / self._slots
        return np.maximum(need_s, [self._path_s(job) for job in jobs.tolist()])

    def _path_s(self, job: int) -> float:
        """Return the longest path through what is left of a job, as expected on its arrival, s."""
        columns = self._world.columns
        first, last = columns.job_stage0[job : job + 2].tolist()
        if job not in self._tail_s:
            expected_s = self._plan.stages["expected_s"]
            if np.isnan(expected_s[first]):
                expected_s = Truth(columns).expect(np.arange(len(expected_s)))
            self._tail_s[job] = expected_tails_s(columns, expected_s, np.array([job]))[1]
        left = self._world.view["stage_left"][first:last] > 0
        return float(self._tail_s[job][left].max(initial=0.0))


def tardiness(left_s: F8, need_s: F8, lookahead: float) -> F8:
    """Return exp(-slack / (`lookahead` · need)) of jobs with a time to their deadline, s."""
    scale_s = lookahead * np.maximum(need_s, 1e-9)
    return maths.exp(-np.maximum(left_s - need_s, 0.0) / scale_s)


class RecordedRuns:
    """Jockey's C(p, a) of jobs with a deadline, on all slots of the cluster (EuroSys 2012, §4.1).

    The urgency is the mean over simulated runs of `tardiness` by the time that each leaves, times
    Jockey's slack. A run that would be late has `late` in place of it: the arbiter, too, serves
    first the jobs whose deadlines can be met.
    """

    def __init__(self, world: World, late: float) -> None:
        self._world, self._late = world, late
        self._tokens = max(2, min(int(slots(world)), MAX_TOKENS))
        self._models: dict[int, Simulated | None] = {}

    def urgency(self, job: int, left_s: float, lookahead: float) -> float:
        """Return the urgency of a job with a time to its deadline, s; NaN without a model."""
        if job not in self._models:
            self._models[job] = self._model(job)
        model, columns = self._models[job], self._world.columns
        if model is None:
            return np.nan
        stages = slice(*columns.job_stage0[job : job + 2].tolist())
        done = 1.0 - self._world.view["stage_left"][stages] / columns.stage_n_tasks[stages]
        need_s: F8 = SLACK * model.left_by_run_s(done)[-1]
        urgency = tardiness(np.full(len(need_s), left_s), need_s, lookahead)
        return float(np.where(need_s <= left_s, urgency, self._late).mean())

    def _model(self, job: int) -> Simulated | None:
        """Return the model of a job; None for a gang, and without runs of the same stages."""
        columns = self._world.columns
        if columns.job_min_tasks[job] or columns.job_template[job] not in columns.training.template:
            return None
        try:
            profile = training_profile(columns, job)
        except InputError:
            return None
        return simulated_model(profile, INDICATOR, 1.0, self._tokens, EFFORT)


SLACK = Law().slack
"""Factor on predicted times (EuroSys 2012, §4.3)."""

INDICATOR = "totalworkWithQ"
"""Jockey's indicator of progress (§4.2)."""

EFFORT = Effort(allocations=2)
"""Simulated runs, of which those with the most tokens count."""

MAX_TOKENS = 1000
"""Largest number of tokens of a model, which limits its cost."""


def remaining_s(world: World, plan: Plan, jobs: I8) -> F8:
    """Return the expected task seconds left of each of `jobs`, true ones where all is known."""
    columns, view = world.columns, world.view
    if np.isnan(plan.stages["expected_s"][:1]).any():
        left: F8 = columns.job_work[jobs] - view["done_work"][jobs]
        return left
    begin, end = columns.job_stage0[jobs], columns.job_stage0[jobs + 1]
    stages = ranges(begin, end)
    work_s = view["stage_left"][stages] * plan.stages["expected_s"][stages]
    job = np.repeat(np.arange(len(jobs)), end - begin)
    return np.bincount(job, work_s, len(jobs)).astype(np.float64)


def slots(world: World) -> float:
    """Return the number of average tasks that the cluster holds at once."""
    columns, cluster = world.columns, world.cluster
    if cluster.unit:
        return float(cluster.total[0])
    n_tasks = columns.stage_n_tasks
    mean = maths.dot(n_tasks, stage_demands(columns, cluster)) / n_tasks.sum()
    demanded = mean > 0
    if not demanded.any():
        return float(n_tasks.sum())
    return max(1.0, float((cluster.total[demanded] / mean[demanded]).min()))
