"""The bare record of a run, as arrays; `sim.Result` is the facade above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.cluster.cluster import Cluster
from sim.engine.batches import Batches
from sim.engine.plan import Scheduler
from sim.workload.workload import Workload

LimitsSet = tuple[float, I4, I4]


@dataclass(frozen=True, eq=False)
class Run:
    """Outcome of one run, as columns; `sim.Result` documents each."""

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
    task_devices: I8 | None = None  # bits of its machine's devices; None without devices
    batches: Batches | None = None  # the same, if like tasks moved as one
    job_estimate: F8 | None = None
    limits_set: Sequence[LimitsSet] = ()

    @cached_property
    def estimate_s(self) -> F8:
        """`job_estimate`, NaN throughout without one: (J,) float64."""
        if self.job_estimate is None:
            return np.full(len(self.job_start), np.nan)
        return self.job_estimate
