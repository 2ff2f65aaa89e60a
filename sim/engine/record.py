"""What happened in a run, as arrays: the bare record; `sim.Result` is the facade above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I4, Mask
from sim.cluster.cluster import Cluster
from sim.engine.plan import Scheduler
from sim.workload.workload import Workload

LimitsSet = tuple[float, I4, I4]


@dataclass(frozen=True, eq=False)
class Run:
    """The outcome of one run, as columns.

    Attributes
    ----------
    workload, cluster, policy, seed
        What was run.
    job_submit : (J,) float64
        When the job was submitted, s: later than in the workload if it waited for inputs.
    job_start, job_finish : (J,) float64
        When the job's first task started and its last one ended, s; NaN if that never was.
    job_failed : (J,) bool
        Whether the job failed.
    task_start, task_finish : (T,) float64 or None
        The same for each task, where records were asked for or metrics need them.
    task_machine : (T,) int32 or None
        The machine it ran on.
    job_estimate : (J,) float64 or None
        What the policy took for the sum of the job's task durations, s; NaN for nothing.
    limits_set : sequence of (float, (N,) int32, (N,) int32)
        When the policy set run limits (s; NaN for before the run), of which jobs, and to what.
    """

    workload: Workload
    cluster: Cluster
    policy: Scheduler
    seed: int
    job_submit: F8
    job_start: F8
    job_finish: F8
    job_failed: Mask
    task_start: F8 | None = None
    task_finish: F8 | None = None
    task_machine: I4 | None = None
    record: str = "jobs"
    job_estimate: F8 | None = None
    limits_set: Sequence[LimitsSet] = ()

    @cached_property
    def estimate_s(self) -> F8:
        """`job_estimate`, NaN throughout where there is none: (J,) float64."""
        if self.job_estimate is None:
            return np.full(len(self.job_start), np.nan)
        return self.job_estimate
