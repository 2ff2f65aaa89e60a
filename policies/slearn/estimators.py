"""Estimators of job sizes: the base class, the oracle, and lookups of jobs and stages.

Estimators give `policies.slearn.gs` the sizes of jobs: `Oracle` knows the truth;
`policies.slearn.history` learns over time, as 3Sigma does; `policies.slearn.pilots` learns in
space, as SLearn does; `policies.slearn.posterior` does both.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I8
from sim.cluster.cluster import Cluster
from sim.cluster.sizing import stage_demands
from sim.engine.plan import World
from sim.workload.columns import Columns


class Estimator(ABC):
    """Interface of estimators for `policies.slearn.gs`, one object a run; by default stateless."""

    def arrived(self, job: int, now: float, thin: bool) -> int:
        """Handle a job's arrival; return its number of pilots, 0 for none.

        A thin job has no pilots and its size is not estimated: it goes first in any case.
        """
        return 0

    @abstractmethod
    def size_s(self, job: int, now: float) -> float:
        """Estimate a job's total task duration, s, once its pilots have ended; NaN for unknown."""

    def stage_done(self, stage: int, now: float) -> None:  # noqa: B027
        """Handle the end of a stage's last task."""

    def job_done(self, job: int, now: float) -> None:  # noqa: B027
        """Handle the end of a job."""


class Oracle(Estimator):
    """True sizes: the sum of a job's task durations (SLearn, NSDI 2022, §5.1.3)."""

    def __init__(self, world: World) -> None:
        self._work = world.columns.job_work.tolist()

    def size_s(self, job: int, now: float) -> float:
        """Return the job's size."""
        return float(self._work[job])


class Jobs:
    """Sizes by job and stage; lists, because callbacks read one number at a time."""

    def __init__(self, world: World) -> None:
        columns = world.columns
        self._view = world.view
        self._cluster, self._columns = world.cluster, columns
        sizes = np.diff(columns.stage_task0)
        self.stage0: list[int] = columns.job_stage0.tolist()
        self.n_tasks: list[int] = sizes.tolist()
        self._mean_s: list[float] = world.once_ended(mean_task_s).values.tolist()
        self._submit: list[float] = columns.job_submit.tolist()
        has_parents = (columns.stage_n_barrier + columns.stage_n_o2o) > 0
        source_rows = np.where(has_parents, len(has_parents), np.arange(len(has_parents)))
        self.sampled: list[int] = np.minimum.reduceat(source_rows, columns.job_stage0[:-1]).tolist()
        self.gang: list[int] = columns.job_min_tasks.tolist()

    @cached_property
    def slots(self) -> list[int]:
        """See `usable_slots`."""
        slots: list[int] = usable_slots(self._columns, self._cluster).tolist()
        return slots

    @cached_property
    def _done_work(self) -> F8:
        return self._view["done_work"]

    def mean_task_s(self, stage: int) -> float:
        """Return the mean task duration of a stage that has ended, s."""
        return self._mean_s[stage]

    def normalised_jct(self, job: int, now: float) -> float:
        """Return the completion time over (size / usable slots) of a job that ends now.

        NaN for a job of no size (NSDI 2022, §5.1.2: "normalized by the job runtime").
        """
        work = self._done_work.item(job)
        return (now - self._submit[job]) * self.slots[job] / work if work > 0 else math.nan


def mean_task_s(columns: Columns) -> F8:
    """Return the mean task duration of each stage, (G,) s."""
    mean_s: F8 = columns.stage_work / columns.stage_n_tasks
    return mean_s


def usable_slots(columns: Columns, cluster: Cluster) -> I8:
    """Return the parallelism of each job's widest stage on an empty cluster, tasks, (J,)."""
    sizes = np.diff(columns.stage_task0)
    demand = stage_demands(columns, cluster)
    demands, demand_index = np.unique(demand, axis=0, return_inverse=True)
    room = np.zeros(len(demands))
    for i, one_demand in enumerate(demands):
        needed = one_demand > 0
        if not needed.any():
            room[i] = np.inf
            continue
        n_fitting = np.floor(cluster.capacity[:, needed] / one_demand[needed] * (1 + 1e-12))
        room[i] = n_fitting.min(axis=1).sum()
    at_once = np.minimum(sizes, room[demand_index.reshape(-1)]).astype(np.int64)
    widest: I8 = np.maximum.reduceat(at_once, columns.job_stage0[:-1])
    return np.maximum(widest, 1)
