"""Worth of jobs: what a second of work is weighed by. The parts are factors of one product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from policies.estimates.durations import Truth
from policies.estimates.paths import expected_tails_s
from policies.wing.efficiency import Waiting
from policies.wing.past import Past
from policies.wing.rescue import WingDep
from sim.base import maths
from sim.base.arrays import F8, I8, ranges
from sim.cluster.sizing import machine_capacity, stage_demands
from sim.engine.plan import Plan, World
from sim.workload.columns import final_deadline_s

WorthName = Literal["auto", "one", "priority", "own", "aggregate", "decaying"]


class Worth(ABC):
    """A factor of jobs' worth."""

    moves = True  #: False if it never changes
    first: F8 | float = 1.0  #: the factor of each job on arrival, (J,), or of all

    @abstractmethod
    def factor(self, jobs: I8, now: float) -> F8:
        """Return the factor of each of `jobs` at time `now`: (n,), above 0."""

    def acts_on(self, job: int) -> bool:
        """Tell whether the factor of a job on arrival is not `first`."""
        return False

    def observe(self, live: I8, mean_s: float) -> None:  # noqa: B027
        """Take the jobs that have arrived and not ended, and the mean completion time so far."""


class Fixed(Worth):
    """A factor for each job, known before the run."""

    moves = False

    def __init__(self, factor: F8) -> None:
        self.first = self._factor = factor

    def factor(self, jobs: I8, now: float) -> F8:
        """See `Worth`."""
        return self._factor[jobs]


def priority(world: World) -> Fixed:
    """Return declared priorities, of which the least counts as 1."""
    columns = world.columns
    return Fixed(1.0 + columns.job_priority - columns.job_priority.min(initial=0.0))


def own_value(world: World) -> Fixed:
    """Return the expected value of jobs' own output, over the mean, plus `FLOOR`."""
    past = Past(world, "mean")
    return Fixed(_over_mean(past.expected(past.column("value"))))


def aggregate_value(world: World, plan: Plan) -> Fixed:
    """Return the expected value of jobs with all downstream, and set the work downstream.

    Wing-Agg (Chung et al., OSDI 2020, §5): aggregate value over aggregate resource-time.
    """
    past = Past(world, "mean")
    value, whole_s, own_s = (
        np.nan_to_num(past.expected(past.column(name)))
        for name in ("agg_value", "agg_compute_s", "compute_s")
    )
    unit = 1.0 if world.cluster.unit else float(machine_capacity(world.cluster)[0])
    plan.set_jobs(beyond=np.maximum(whole_s - own_s, 0.0) / unit)
    return Fixed(_over_mean(value))


class Decaying(Worth):
    """Value left at the expected completion over aggregate resource-time, as it decays in time.

    `policies.wing.rescue.WingDep`'s efficiency, over the mean. So a job is worth the rate at which
    resource-time spent on it and downstream attains value.
    """

    def __init__(self, world: World) -> None:
        waiting = WingDep().expected(world)
        value = waiting.value / np.maximum(waiting.value[:, :1].mean(), 1e-300)
        self._waiting = Waiting(value, np.ones(len(value)), waiting.length_s)
        self._view = world.view
        self.first = self.factor_after(np.arange(len(value)), np.zeros(len(value)))

    def factor_after(self, jobs: I8, waited_s: F8) -> F8:
        """Return the factor of each of `jobs` after a wait."""
        return FLOOR - self._waiting.keys(jobs, waited_s)

    def factor(self, jobs: I8, now: float) -> F8:
        """See `Worth`."""
        waited_s = now - self._view["submit"][jobs]
        return self.factor_after(jobs, waited_s)


class Urgency(Worth):
    """Apparent tardiness cost (Vepsalainen and Morton, Management Science 33, 1987).

    The factor is 1 plus `weight` times exp(-slack / (`lookahead` · need)). Slack is the time to the
    deadline beyond the need: the job's longest expected path, or its work over the cluster. So the
    order minimises completion times plus `weight` times tardiness. Here the scale is the job's own
    need, to which the error of its estimate is in proportion, and not the mean over jobs: those on
    one cluster differ by orders of magnitude. Jobs without a deadline have 1.
    """

    def __init__(self, world: World, plan: Plan, weight: float, lookahead: float) -> None:
        self._world, self._plan = world, plan
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
        need_s = remaining_s(self._world, self._plan, due) / self._slots
        need_s = np.maximum(need_s, [self._path_s(job) for job in due.tolist()])
        slack_s = final_deadline_s(columns, elapsed_s)[due] - elapsed_s[due] - need_s
        scale_s = self._lookahead * np.maximum(need_s, 1e-9)
        out[rows] += self._weight * maths.exp(-np.maximum(slack_s, 0.0) / scale_s)
        return out

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


class Ageing(Worth):
    """A guard for the tail: worth grows with the time since submission.

    The factor is 1 + `rate` · age / mean completion time so far. So the order minimises the sum of
    completion times C plus `rate` · C² / (2 · mean): the second norm beside the first (Bansal and
    Pruhs, Server scheduling in the weighted l_p norm, 2004).
    """

    def __init__(self, world: World, rate: float) -> None:
        self._view, self._rate = world.view, rate
        self._mean_s = 0.0

    def observe(self, live: I8, mean_s: float) -> None:
        """See `Worth`."""
        self._mean_s = mean_s

    def factor(self, jobs: I8, now: float) -> F8:
        """See `Worth`."""
        if self._mean_s <= 0:
            return np.ones(len(jobs))
        age_s = now - self._view["submit"][jobs]
        out: F8 = 1.0 + self._rate * age_s / self._mean_s
        return out


FLOOR = 0.001
"""Worth of a job without value, in mean values: its completion counts, too."""


def _over_mean(value: F8) -> F8:
    """Return values over their mean, plus the floor."""
    known = np.nan_to_num(value)
    return FLOOR + known / max(float(known.mean()), 1e-300)


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
