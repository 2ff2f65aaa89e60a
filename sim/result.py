"""The record of a run, as tables, bounds and metrics."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.bounds import bound_arrays
from sim.engine.record import Run
from sim.engine.stops import REASONS
from sim.metrics import compute
from sim.metrics.jobs import gap_lb, job_utility, prediction_error, slowdown
from sim.metrics.tokens import limit_changes
from sim.metrics.troubles import unmet


class Result(Run):
    """Outcome of one run, as columns, with tables, bounds and metrics.

    Attributes
    ----------
    workload, cluster, policy, seed
        The arguments of the run.
    job_submit : (J,) float64
        Submission of each job, s: later than in the workload if it waited for inputs.
    job_start, job_finish : (J,) float64
        Start of the job's first task and end of its last one, or of its limit of run time, s; NaN
        if it never started or ended.
    job_failed : (J,) bool
        True if the job failed: an input was missing, it was ended at its limit of run time, it was
        rejected, preempted and cancelled, or never released.
    job_eligible : (J,) float64 or None
        When the job could start, s: submitted, and released by its begin time and other jobs; NaN
        if never. None if no job waits for those (`sim.workload.releases`).
    job_unreleased : (J,) bool
        True if the job waited for ever for others; empty where none can.
    records : sim.engine.record.TaskRecords or None
        Start, end and machine of each task or batch of like tasks; None with record="jobs", as the
        next six. Of a task that never completed NaN, and machine -1; its attempts are in `stops`.
    stopped : sim.engine.stops.StoppedAttempts or None
        The attempts of tasks that had to run again; `stops` is their table.
    task_start, task_finish : (T,) float64 or None
        Start and end of each task's last attempt, s; made of `records` on first use, as the next
        one.
    task_machine : (T,) int32 or None
        The machine it ran on.
    task_devices : (T,) int64 or None
        The devices of its machine that it took, as bits; None where machines have none.
    task_placed : (T,) float64 or None
        When each task took its room, s: earlier than its start by the lag of its launch; None
        where starts don't lag.
    job_estimate : (J,) float64 or None
        The policy's estimate of the sum of the job's task durations, s; NaN for none.
    job_worth : (J,) float64 or None
        The job's worth as the policy set it last (`sim.plan.Plan.set_jobs`); None if it set none.
    limits_set : sequence of (float, (N,) int32, (N,) int32)
        Run limits that the policy set: time (s; NaN for before the run), jobs, limits.
    job_timeout : (J,) bool or None
        True if the job was ended at its limit, or with its reservation; None where the cluster has
        no reservations and enforces no limits.
    job_rejected : (J,) bool or None
        True if the job was refused at submission, by a cap of submitted jobs, or as its reservation
        was over; None for none.
    job_cancelled : (J,) bool or None
        True if the job was preempted and cancelled; None where nothing is preempted.
    own : sim.engine.record.Run or None
        The same run on its own clock, if that is not the workload's (`sim.engine.clock`). Take
        differences between times from `on_own_clock`: those of epoch seconds lack small digits.
    """

    @cached_property
    def bounds(self) -> dict[str, F8]:
        """Lower bounds of each job, (J,) float64 each, s; see `sim.bounds.bound_arrays`."""
        return bound_arrays(self.workload.columns, self.cluster)

    @cached_property
    def slowdown(self) -> F8:
        """Completion time over critical path length of each job done that has one, else NaN."""
        return slowdown(self.on_own_clock, self.bounds["cp_len"])

    @cached_property
    def gap_lb(self) -> F8:
        """Completion time over ``new_lb`` - 1 of each job done whose bound is above 0, else NaN."""
        return gap_lb(self.on_own_clock, self.bounds["new_lb"])

    @cached_property
    def prediction_error(self) -> F8:
        """|estimate - size| / size of each job done that has both, else NaN: (J,) float64."""
        return prediction_error(self)

    @cached_property
    def utility(self) -> F8 | None:
        """Utility of each job with a deadline, else NaN: (J,) float64; None without deadlines."""
        return job_utility(self.on_own_clock)

    @cached_property
    def jobs(self) -> pa.Table:
        """A row a job: job_id, submit_s, start_s, finish_s, outcome, queue, n_tasks.

        Also ``eligible_s`` if jobs wait for begin times or each other, ``utility`` (null without a
        deadline) if jobs have deadlines, and ``worth`` if the policy sets it. An ``outcome`` is
        "done", "failed" or "never released".
        """
        utility = self.utility
        columns = self.workload.columns
        code = self.job_failed.astype(np.int8)
        if self.job_timeout is not None:
            code += self.job_timeout
        if self.job_rejected is not None:
            code += 2 * self.job_rejected
        if self.job_cancelled is not None:
            code += 4 * self.job_cancelled
        if len(self.job_unreleased):
            code += 3 * self.job_unreleased
        outcomes = ["done", "failed", "timeout", "rejected", "never released", "preempted"]
        outcome = pa.DictionaryArray.from_arrays(pa.array(code), pa.array(outcomes))
        return pa.table(
            {
                "job_id": self.workload.jobs["job_id"],
                "submit_s": self.job_submit,
                **({} if self.job_eligible is None else {"eligible_s": self.job_eligible}),
                "start_s": self.job_start,
                "finish_s": self.job_finish,
                "outcome": outcome.cast(pa.string()),
                "queue": self.workload.jobs["queue"],
                "n_tasks": columns.job_n_tasks,
                **({} if utility is None else {"utility": pa.array(utility, from_pandas=True)}),
                **({} if self.job_worth is None else {"worth": self.job_worth}),
            }
        )

    @cached_property
    def tasks(self) -> pa.Table | None:
        """A row a task: job_id, stage, task, machine, start_s, finish_s; None with record="jobs".

        ``devices`` as well where machines have some, as bits. ``stage`` is the row of the
        workload's stages, ``task`` the index within the stage.
        """
        if self.records is None:
            return None
        columns = self.workload.columns
        stage = columns.task_stage().astype(np.int32)
        task = np.arange(len(stage)) - columns.stage_task0[stage]
        devices = {} if self.task_devices is None else {"devices": self.task_devices}
        return pa.table(
            {
                "job_id": self.workload.jobs["job_id"].take(pa.array(columns.stage_job[stage])),
                "stage": stage,
                "task": task.astype(np.int32),
                "machine": self.task_machine,
                "start_s": self.task_start,
                "finish_s": self.task_finish,
                **devices,
            }
        )

    @cached_property
    def stops(self) -> pa.Table | None:
        """A row an attempt that was stopped, or whose output was lost.

        Its task ran again, unless its job was ended (``timeout``, ``cancelled``).

        job_id, stage, task, machine as in `tasks`; start_s, stop_s float64, s; reason string, one
        of `sim.engine.stops.REASONS`; kept_s float64, the part of its time whose work is saved, s.
        By stop_s and task. None with record="jobs". A task that was stopped before it ran has no
        row.
        """
        if self.stopped is None:
            return None
        columns, stopped = self.workload.columns, self.stopped
        stage = columns.stages_of(stopped.task).astype(np.int32)
        reason = pa.DictionaryArray.from_arrays(pa.array(stopped.reason), pa.array(REASONS))
        return pa.table(
            {
                "job_id": self.workload.jobs["job_id"].take(pa.array(columns.stage_job[stage])),
                "stage": stage,
                "task": (stopped.task - columns.stage_task0[stage]).astype(np.int32),
                "machine": stopped.machine,
                "start_s": stopped.start_s,
                "stop_s": stopped.stop_s,
                "reason": reason.cast(pa.string()),
                "kept_s": stopped.kept_s,
            }
        )

    @cached_property
    def batches(self) -> pa.Table | None:
        """A row a batch: stage, task, count, machine, start_s, finish_s; None with record="jobs".

        A batch is `count` like tasks of one stage, `task` and those after it, that ran at the same
        time. Where the run moved each task by itself, it is one task.
        """
        if self.records is None:
            return None
        records, columns = self.records, self.workload.columns
        first: I4 | I8
        count: I4
        if records.task is None or records.count is None:
            first, count = np.arange(columns.n_tasks), np.ones(columns.n_tasks, np.int32)
        else:
            first, count = records.task, records.count
        stage = columns.stages_of(first)
        return pa.table(
            {
                "stage": stage.astype(np.int32),
                "task": (first - columns.stage_task0[stage]).astype(np.int32),
                "count": count,
                "machine": records.machine,
                "start_s": records.start_s,
                "finish_s": records.finish_s,
            }
        )

    @cached_property
    def limits(self) -> pa.Table:
        """A row for each time the policy set a job's run limit: job, time_s, tokens.

        By job and time; ``job`` is the row of the workload's jobs, ``tokens`` the limit from then
        on. A job's first row is at its submission, even if the limit was set before; no row of a
        job comes after its end.
        """
        job, time_s, tokens = limit_changes(self.limits_set, self.job_submit, self.job_finish)
        return pa.table({"job": job, "time_s": time_s, "tokens": tokens})

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Metrics of the run by name; each is defined in `sim.metrics`.

        Raises
        ------
        InputError
            If the run was simulated with record="jobs": some metrics need the times of tasks.
        """
        if self.records is None:
            raise InputError(
                "metrics need the times of tasks, which record='jobs' does not keep: simulate with "
                "record='tasks', the default",
                rule="record",
            )
        return compute(self.on_own_clock, self.bounds)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the cluster was to meet and did not, such as outages."""
        return tuple(unmet(self.on_own_clock))

    def __repr__(self) -> str:
        """Describe the run and its outcome in one line."""
        n_failed = int(self.job_failed.sum())
        own = self.on_own_clock
        jct_s = (own.job_finish - own.job_submit)[~self.job_failed]
        mean = f"; mean JCT {jct_s.mean():.6g} s" if len(jct_s) else ""
        failed = f", {n_failed:,} failed" if n_failed else ""
        jobs = f"{len(self.job_submit):,} job{'s' * (len(self.job_submit) != 1)}"
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"<Result {self.policy!r} on {self.cluster.describe()}, seed {self.seed}: "
            f"{jobs}{failed}{mean}{notes}>"
        )
