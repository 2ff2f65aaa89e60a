"""Duel: two policies on the same jobs, and the ratio of a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import sim
from sim.base import disk_cache
from sim.base.errors import SimError
from sim.metrics import metric as look_up
from sim.result import Result
from sim.workload.workload import Workload
from sweep.driver.captured_run import Captured, capturing
from sweep.driver.worlds import World
from sweep.questions.adversary.instances import Jobs

FAST: Mapping[str, Callable[[Result], float]] = {
    "jct_mean_s": lambda run: float((run.job_finish - run.job_submit).mean()),
    "makespan_s": lambda run: float(run.job_finish.max() - run.job_submit.min()),
}
"""Metrics that need no records of tasks."""


@dataclass
class Duel:
    """Two policies on a cluster; it counts how often they ran.

    Attributes
    ----------
    world : World
        Whose cluster, faults and seed it has.
    names, policies : (str, str), (Policy, Policy)
        The one that is to lose, and the other.
    metric : str
    n_runs : int
        Instances on which both have run.
    """

    world: World
    names: tuple[str, str]
    policies: tuple[Any, Any]
    metric: str
    n_runs: int = 0

    def loss(self, jobs: Jobs) -> float:
        """Return the logarithm of how many times worse the first is; -inf for no comparison."""
        values = self.values(jobs)
        if values is None or not all(math.isfinite(v) and v > 0 for v in values):
            return -math.inf
        first, second = map(math.log, values)
        return first - second if look_up(self.metric).better == "lower" else second - first

    def values(self, jobs: Jobs) -> tuple[float, float] | None:
        """Return the metric of both; None if a run fails, or a job is not done in one."""
        self.n_runs += 1
        try:
            workload = Workload.from_jobs(jobs)
            with disk_cache.disabled():  # each instance is another
                first, second = (self._value(workload, policy) for policy in self.policies)
        except SimError:
            return None
        return None if first is None or second is None else (first, second)

    def _value(self, workload: Workload, policy: Any) -> float | None:
        fast = FAST.get(self.metric)
        record: Literal["jobs", "tasks"] = "tasks" if fast is None else "jobs"
        cluster = self.world.cluster_for(policy)
        result = sim.simulate(workload, cluster, policy, seed=self.world.seed, record=record)
        if result.job_failed.any() or not np.isfinite(result.job_finish).all():
            return None
        own = result.on_own_clock
        return fast(own) if fast is not None else result.metrics.get(self.metric)  # type: ignore[arg-type]

    def runs(self, jobs: Jobs) -> list[Captured]:
        """Run both with records of tasks, for a timeline."""
        workload = Workload.from_jobs(jobs)
        captured: list[Captured] = []
        simulate = capturing(captured)
        for policy in self.policies:
            simulate(workload, self.world.cluster_for(policy), policy, seed=self.world.seed)
        for run, name in zip(captured, self.names, strict=True):
            run.title = name
        return captured
