"""The bare record of a run, as arrays; `sim.Result` is the facade above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.memory import check_memory
from sim.cluster.cluster import Cluster
from sim.engine.allocation import allocated
from sim.engine.batches import TaskRecords
from sim.engine.plan import Scheduler
from sim.engine.stops import StoppedAttempts
from sim.workload.columns import Columns
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
    job_eligible: F8 | None = None  # s; None if no job waits for others or a begin time
    job_unreleased: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # empty for none
    records: TaskRecords | None = None
    stopped: StoppedAttempts | None = None
    task_devices: I8 | None = None  # bits of its machine's devices; None without devices
    task_placed: F8 | None = None  # when its room was taken, s; None: when it started
    job_estimate: F8 | None = None
    job_worth: F8 | None = None
    limits_set: Sequence[LimitsSet] = ()
    job_timeout: Mask | None = None  # None: no limit of run time is enforced
    job_cancelled: Mask | None = None  # preempted, and so failed; None: nothing is preempted
    job_rejected: Mask | None = None  # refused at submission, and so failed
    own: Run | None = None  # the same run on its own clock, if that is not the workload's

    @property
    def on_own_clock(self) -> Run:
        """The same run on its own clock, on which differences between times have all their bits."""
        return self if self.own is None else self.own

    @cached_property
    def allocated(self) -> Columns:
        """Columns whose demands are what tasks held under the policy (`sim.engine.allocation`)."""
        return allocated(self.workload, self.cluster, self.policy).columns

    @cached_property
    def task_start(self) -> F8 | None:
        """Start of each task, (T,) s; expanded from batches on first use."""
        times: F8 | None = self._task_column("start_s", np.nan)
        return times

    @cached_property
    def task_finish(self) -> F8 | None:
        """End of each task, (T,) s; expanded from batches on first use."""
        times: F8 | None = self._task_column("finish_s", np.nan)
        return times

    @cached_property
    def task_machine(self) -> I4 | None:
        """Machine of each task, (T,); expanded from batches on first use."""
        machines: I4 | None = self._task_column("machine", -1)
        return machines

    @property
    def task_acquired(self) -> F8 | None:
        """Time from which each task held its room, (T,) s: a lag before its start."""
        return self.task_start if self.task_placed is None else self.task_placed

    def occupancy(self, rows: slice) -> tuple[F8, F8]:
        """Return the times from which, and until which, some rows of `records` held room, s."""
        assert self.records is not None
        start_s, finish_s = self.records.times(rows)
        if self.task_placed is None:
            return start_s, finish_s
        task = self.records.task
        return self.task_placed[rows if task is None else task[rows]], finish_s

    def _task_column(self, name: str, missing: float) -> Any:
        if self.records is None:
            return None
        values, n_tasks = getattr(self.records, name), self.workload.n_tasks
        if self.records.task is not None:
            check_memory(
                values.itemsize * n_tasks,
                f"a record of each of {n_tasks:,} tasks",
                "read the batches of like tasks instead (result.batches)",
            )
        return self.records.expand(values, missing, 0, n_tasks)

    @cached_property
    def estimate_s(self) -> F8:
        """`job_estimate`, NaN throughout without one: (J,) float64."""
        if self.job_estimate is None:
            return np.full(len(self.job_start), np.nan)
        return self.job_estimate
