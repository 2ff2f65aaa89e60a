"""Worth of jobs: what a second of work is weighed by. The parts are factors of one product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from policies.wing.efficiency import Waiting
from policies.wing.past import Past
from policies.wing.rescue import WingDep
from sim.base.arrays import F8, I8
from sim.cluster.sizing import machine_capacity
from sim.engine.plan import Plan, World

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
