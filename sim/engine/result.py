"""What a simulation gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, Mask

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Scheduler
    from sim.workload.workload import Workload


LimitsSet = tuple[float, I4, I4]


@dataclass(frozen=True, eq=False)
class Result:
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

    @cached_property
    def bounds(self) -> dict[str, F8]:
        """Lower bounds of each job, (J,) float64 each, s; see `sim.bounds.bound_arrays`."""
        from sim.bounds import bound_arrays

        return bound_arrays(self.workload.columns, self.cluster)

    @cached_property
    def gap_lb(self) -> F8:
        """Completion time over ``new_lb`` - 1 of each job done whose bound is above 0, else NaN."""
        from sim.metrics.of_jobs import gap_lb

        return gap_lb(self)

    @cached_property
    def prediction_error(self) -> F8:
        """|estimate - size| / size of each job done that has both, else NaN: (J,) float64."""
        from sim.metrics.of_jobs import prediction_error

        return prediction_error(self)

    @cached_property
    def jobs(self) -> pa.Table:
        """A row a job: job_id, submit_s, start_s, finish_s, outcome, queue, n_tasks."""
        columns = self.workload.columns
        outcome = pa.DictionaryArray.from_arrays(
            pa.array(self.job_failed.astype(np.int8)), pa.array(["done", "failed"])
        )
        n_tasks = np.diff(columns.stage_task0[columns.job_stage0])
        return pa.table(
            {
                "job_id": self.workload.jobs["job_id"],
                "submit_s": self.job_submit,
                "start_s": self.job_start,
                "finish_s": self.job_finish,
                "outcome": outcome.cast(pa.string()),
                "queue": self.workload.jobs["queue"],
                "n_tasks": n_tasks,
            }
        )

    @cached_property
    def tasks(self) -> pa.Table | None:
        """With record="tasks", a row a task: job_id, stage, task, machine, start_s, finish_s.

        ``stage`` is the row of the workload's stages, ``task`` the index within the stage.
        """
        if self.record != "tasks":
            return None
        columns = self.workload.columns
        sizes = np.diff(columns.stage_task0)
        stage = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        task = np.arange(len(stage)) - columns.stage_task0[stage]
        return pa.table(
            {
                "job_id": self.workload.jobs["job_id"].take(pa.array(columns.stage_job[stage])),
                "stage": stage,
                "task": task.astype(np.int32),
                "machine": self.task_machine,
                "start_s": self.task_start,
                "finish_s": self.task_finish,
            }
        )

    @cached_property
    def limits(self) -> pa.Table:
        """A row for each time the policy set a job's run limit: job, time_s, tokens.

        By job and time; ``job`` is the row of the workload's jobs, ``tokens`` the limit from then
        on. A job's first row is of its submission, whenever before the limit was set; no row of a
        job comes after its end.
        """
        from sim.metrics.limits import limits_of

        job, time_s, tokens = limits_of(self.limits_set, self.job_submit, self.job_finish)
        return pa.table({"job": job, "time_s": time_s, "tokens": tokens})

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Numbers of the run by name; each is defined in `sim.metrics`."""
        from sim.metrics import compute

        return compute(self)
