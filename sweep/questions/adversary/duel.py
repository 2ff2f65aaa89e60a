"""Duel: two policies on the same jobs, and the ratio of a metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import sim
from sim.base import disk_cache
from sim.base.arrays import F8
from sim.base.errors import SimError
from sim.metrics import metric as look_up
from sim.workload.workload import Workload
from sweep.driver.captured_run import Captured, capturing
from sweep.driver.worlds import World
from sweep.questions.adversary.instances import Jobs

FAST: Mapping[str, Callable[[F8, F8], float]] = {
    "jct_mean_s": lambda submit_s, finish_s: float((finish_s - submit_s).mean()),
    "makespan_s": lambda submit_s, finish_s: float(finish_s.max() - submit_s.min()),
}
"""Metrics that need no records of tasks; of bounded completions they are bounds of the metric."""


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
        Instances that were tried.
    """

    world: World
    names: tuple[str, str]
    policies: tuple[Any, Any]
    metric: str
    n_runs: int = 0

    def loss(self, jobs: Jobs, at_least: float = -math.inf) -> float:
        """Return the logarithm of how many times worse the first is; -inf for no comparison.

        -inf, too, if a lower bound shows that it is below `at_least`: then the other does not run.
        """
        values = self.values(jobs, at_least)
        if values is None or not all(math.isfinite(v) and v > 0 for v in values):
            return -math.inf
        first, second = map(math.log, values)
        return first - second if look_up(self.metric).better == "lower" else second - first

    def values(self, jobs: Jobs, at_least: float = -math.inf) -> tuple[float, float] | None:
        """Return the metric of both; None if a run fails, a job is not done in one, or see `loss`.

        The second is run last: it may be the slow one.
        """
        self.n_runs += 1
        try:
            workload = Workload.from_jobs(jobs)
            with disk_cache.disabled():  # each instance is another
                first = self._value(workload, self.policies[0])
                if first is None or self._is_less(workload, first, at_least):
                    return None
                second = self._value(workload, self.policies[1])
        except SimError:
            return None
        return None if second is None else (first, second)

    def _is_less(self, workload: Workload, first: float, at_least: float) -> bool:
        """Tell whether the loss is below a number, whatever the second policy does."""
        if self.metric not in FAST or at_least == -math.inf or first <= 0:
            return False
        cluster = self.world.cluster_for(self.policies[1])
        submit_s = workload.columns.job_submit
        bound_s = sim.lower_bound(workload, cluster)["tight_lb"].to_numpy()
        best = FAST[self.metric](submit_s, submit_s + bound_s)
        return best > 0 and math.log(first) - math.log(best) < at_least

    def _value(self, workload: Workload, policy: Any) -> float | None:
        fast = FAST.get(self.metric)
        record: Literal["jobs", "tasks"] = "tasks" if fast is None else "jobs"
        cluster = self.world.cluster_for(policy)
        result = sim.simulate(workload, cluster, policy, seed=self.world.seed, record=record)
        if result.job_failed.any() or not np.isfinite(result.job_finish).all():
            return None
        own = result.on_own_clock
        if fast is not None:
            return fast(own.job_submit, own.job_finish)
        return result.metrics.get(self.metric)

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
