"""NumPy columns of a workload, as read by the kernel and the policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4, I8, Mask, frozen, offsets
from sim.workload.history import Features, Training
from sim.workload.record import Tables
from sim.workload.releases import Releases
from sim.workload.schema import (
    CHECKPOINT,
    DEMAND_PREFIX,
    EDGE_KINDS,
    EXCLUSIVE,
    INPUT_HOME,
    INPUT_MODES,
    JOB_EDGE_KINDS,
    N_NODES,
    NEW_DEADLINE,
    NEW_DEADLINE_AT,
    ONE_PER_NODE,
    PARTITION,
    POLL_LAG,
    PREEMPTS,
    RECONFIGURE,
    REMOTE_FACTOR,
    REQUEST_PREFIX,
    REQUESTED,
    RESTART,
    RUNS_ON,
    SPEEDUP,
    STAGE_LAG,
    TOPOLOGY_PREFERRED,
    TOPOLOGY_REQUIRED,
    WIDTH_MIN,
    Column,
    speed_column,
)
from sim.workload.tables import (
    codes,
    column_or_default,
    column_or_nan,
    names,
    speed_classes,
    values,
)


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a workload of J jobs, G stages, T tasks, R resources and E stage edges.

    Every array is read-only, C-contiguous and of fixed dtype.
    """

    job_submit: F8  # submission time, s; non-decreasing
    job_stage0: I8  # stages of job j are the rows ``job_stage0[j]`` to ``job_stage0[j+1]``
    job_priority: F8  # the user's priority; larger goes first
    job_deadline: F8  # deadline relative to submission, s; NaN for none
    # a changed deadline and the time of the change, relative to submission, s; NaN if unchanged
    job_new_deadline: F8
    job_new_deadline_at: F8
    job_requested: F8  # the user's limit on its running time, s; NaN for none or unknown
    job_preempts: NDArray[np.bool_]  # it may preempt others
    job_checkpoint: F8  # time between two of its checkpoints, s; inf for none
    job_restart: F8  # time to restart a task of it that was stopped, s
    # elastic jobs (`sim.workload.elastic`): least width, 0 for others; index into `speedups`; time
    # that it stands still after its width changed, s, inf if that is fixed at its start
    job_width_min: I4
    job_speedup: I4
    job_reconfigure: F8
    job_min_tasks: I4  # gang: number of tasks that start together; 0 for none
    job_queue: I4  # index into `queue_names`, `user_names`, `template_names`
    job_user: I4
    job_template: I4
    job_input_mode: I1  # 0 none, 1 blind, 2 poll (`sim.workload.schema.INPUT_MODES`)
    # earliest submission of a polling job after its last hard input, s
    job_poll_lag: F8
    job_work: F8  # sum of the durations of a job's tasks, s
    stage_job: I4  # row of the job
    stage_task0: I8  # tasks of stage g are the rows ``stage_task0[g]`` to ``stage_task0[g+1]``
    # demand of one task in quanta: demand over `quantum`, rounded to nearest, a positive demand
    # to at least 1
    stage_demand: I8
    stage_demand_f: F8  # demand of one task, in the resources' units
    stage_work: F8  # sum of the durations of a stage's tasks, s
    # the input of task i lies on machine ``(stage_home + i) mod machines``; -1 for none
    stage_home: I4
    stage_remote_factor: F8  # slowdown of its tasks on any other machine
    stage_lag: F8  # time from the end of its last barrier parent to its opening, s
    stage_runs_on: I4  # index into `runs_on`
    job_partition: I4  # index into `partitions`
    job_exclusive: Mask  # each of its tasks, or slots, takes a whole machine
    job_one_per_node: Mask  # no two of its tasks, or slots, share a machine
    job_n_nodes: I4  # nodes that it runs on; 0: one for each slot of a gang, or one
    job_level_required: I4  # index into `levels_required`
    job_level_preferred: I4  # index into `levels_preferred`
    # speed of its tasks on machines of each of `speed_classes`, (G, C): durations are divided by it
    stage_speed: F8
    stage_max_s: F8  # longest and shortest duration of a stage's tasks, s
    stage_min_s: F8
    # runs of like tasks (`sim.workload.runs`): those of stage g are ``stage_run0[g]`` to
    # ``stage_run0[g+1]``, tasks of run n ``run_task0[n]`` to ``run_task0[n+1]``
    stage_run0: I8
    run_task0: I8
    run_duration: F8  # running time of each task of the run, s
    # attempts of task t that fail are the rows ``attempt0[t]`` to ``attempt0[t+1]``, in order; a
    # lone 0 where there is no table of failures
    attempt0: I8
    attempt_s: F8  # running time of the attempt before it fails, s
    attempt_lost: I4  # a parent stage's task whose output is lost for the attempt; -1 for none
    # the jobs that need the output of job j (hard edges) are the rows ``input0[j]`` to
    # ``input0[j+1]`` of `input_reader`
    input0: I8
    input_reader: I4  # row of the job; ascending for each upstream
    edge0: I8  # edges of parent g are the rows ``edge0[g]`` to ``edge0[g+1]``
    edge_child: I4  # stage that waits; ascending for each parent
    edge_kind: I1  # 0 barrier, 1 one_to_one (`sim.workload.schema.EDGE_KINDS`)
    stage_n_barrier: I4  # number of parents of each kind
    stage_n_o2o: I4
    quantum: F8  # size of one quantum of each resource
    resources: tuple[str, ...]  # names, by index
    queue_names: tuple[str, ...]
    user_names: tuple[str, ...]
    template_names: tuple[str, ...]
    runs_on: tuple[str, ...]  # classes of machines (`sim.workload.schema.RUNS_ON`)
    speedups: tuple[str, ...]  # curves (`sim.workload.schema.SPEEDUP`)
    partitions: tuple[str, ...]  # sets of machines (`sim.workload.schema.PARTITION`)
    levels_required: tuple[str, ...]  # of domains (`sim.workload.schema.TOPOLOGY_REQUIRED`)
    levels_preferred: tuple[str, ...]
    speed_classes: tuple[str, ...]  # classes of `stage_speed`; on those of others the speed is 1
    features: Features  # features of jobs, and the history of past jobs (`sim.workload.history`)
    releases: Releases  # begin times and dependencies (`sim.workload.releases`)
    training: Training  # tasks of earlier runs of the jobs' templates (`sim.workload.history`)

    @cached_property
    def stage_n_tasks(self) -> I8:
        """Number of tasks of each stage, (G,)."""
        return frozen(np.diff(self.stage_task0))

    @cached_property
    def job_n_tasks(self) -> I8:
        """Number of tasks of each job, (J,)."""
        return frozen(np.diff(self.stage_task0[self.job_stage0]))

    @property
    def n_tasks(self) -> int:
        """Number of tasks T."""
        return int(self.stage_task0[-1])

    @cached_property
    def task_duration(self) -> F8:
        """Running time of each task, (T,) s; made of the runs on first use, if tasks are alike."""
        if len(self.run_duration) == self.n_tasks:
            return self.run_duration
        return frozen(np.repeat(self.run_duration, np.diff(self.run_task0)))

    def stages_of(self, tasks: I4 | I8) -> I8:
        """Return the row of the stage of each of some tasks."""
        return np.searchsorted(self.stage_task0, tasks, side="right") - 1

    def task_stage(self) -> I8:
        """Return the row of each task's stage, (T,); a new array at each call."""
        return np.repeat(np.arange(len(self.stage_job)), self.stage_n_tasks)


def build(workload: Tables) -> Columns:
    """Build the columns of a valid workload."""
    views = shared_with_tables(workload)
    jobs, edges = workload.jobs, workload.stage_edges
    n_jobs, n_stages = workload.n_jobs, workload.n_stages
    work, longest, shortest = stage_durations(workload)
    demand_quanta, demand, quantum = stage_demand(workload)
    child = views["edge_child"]
    kind = codes(edges, "kind", EDGE_KINDS)
    hard = codes(workload.job_edges, "kind", JOB_EDGE_KINDS) == 0
    upstream = values(workload.job_edges, "upstream")[hard]
    derived = {
        "job_stage0": job_stage0(workload),
        "job_deadline": jobs["deadline_s"].chunk(0).to_numpy(zero_copy_only=False),
        "job_new_deadline": column_or_default(jobs, NEW_DEADLINE),
        "job_new_deadline_at": column_or_default(jobs, NEW_DEADLINE_AT),
        "job_requested": column_or_default(jobs, REQUESTED),
        "job_preempts": column_or_default(jobs, PREEMPTS),
        "job_checkpoint": _unless_null(jobs, CHECKPOINT),
        "job_restart": column_or_default(jobs, RESTART),
        "job_width_min": column_or_default(jobs, WIDTH_MIN),
        "job_speedup": _texts(jobs, SPEEDUP)[0],
        "job_reconfigure": _unless_null(jobs, RECONFIGURE),
        "job_partition": _texts(jobs, PARTITION)[0],
        "job_exclusive": column_or_default(jobs, EXCLUSIVE),
        "job_one_per_node": column_or_default(jobs, ONE_PER_NODE),
        "job_n_nodes": column_or_default(jobs, N_NODES),
        "job_level_required": _texts(jobs, TOPOLOGY_REQUIRED)[0],
        "job_level_preferred": _texts(jobs, TOPOLOGY_PREFERRED)[0],
        "job_input_mode": codes(jobs, "input_mode", INPUT_MODES),
        "job_poll_lag": column_or_default(jobs, POLL_LAG),
        "job_work": np.bincount(views["stage_job"], work, n_jobs),
        "stage_task0": workload.stage_task0,
        "stage_demand": demand_quanta,
        "stage_demand_f": demand,
        "stage_work": work,
        "stage_home": column_or_default(workload.stages, INPUT_HOME),
        "stage_remote_factor": column_or_default(workload.stages, REMOTE_FACTOR),
        "stage_lag": column_or_default(workload.stages, STAGE_LAG),
        "stage_runs_on": _texts(workload.stages, RUNS_ON)[0],
        "stage_speed": _speeds(workload.stages),
        "stage_max_s": longest,
        "stage_min_s": shortest,
        **_runs(workload),
        "attempt0": _attempt0(workload),
        "input0": offsets(np.bincount(upstream, minlength=n_jobs)),
        "input_reader": values(workload.job_edges, "downstream")[hard],
        "edge0": offsets(np.bincount(values(edges, "parent"), minlength=n_stages)),
        "edge_kind": kind,
        "stage_n_barrier": np.bincount(child[kind == 0], minlength=n_stages).astype(np.int32),
        "stage_n_o2o": np.bincount(child[kind == 1], minlength=n_stages).astype(np.int32),
        "quantum": quantum,
    }
    return assemble(workload, {**views, **derived})


def _unless_null(jobs: pa.Table, column: Column) -> F8:
    """Return an optional column of times, inf where it is null."""
    seconds = column_or_default(jobs, column)
    return np.where(np.isnan(seconds), np.inf, seconds)


def shared_with_tables(workload: Tables) -> dict[str, NDArray[Any]]:
    """Return the columns that are views of the tables' buffers, without a copy."""
    jobs = workload.jobs
    views = {
        "job_submit": values(jobs, "submit_s"),
        "job_priority": values(jobs, "priority"),
        "job_min_tasks": values(jobs, "min_tasks"),
        "job_queue": values(jobs, "queue"),
        "job_user": values(jobs, "user"),
        "job_template": values(jobs, "template"),
        "stage_job": values(workload.stages, "job"),
        "edge_child": values(workload.stage_edges, "child"),
        "attempt_s": values(workload.failures, "after_s"),
        "attempt_lost": values(workload.failures, "lost"),
    }
    if not workload.in_runs:  # if no two neighbours are alike
        return views | {"run_duration": values(workload.tasks, "duration_s")}
    if workload.runs.one_a_stage:
        return views | {"run_duration": workload.runs.duration_s}
    return views | _runs(workload)


def assemble(workload: Tables, arrays: dict[str, NDArray[Any]]) -> Columns:
    """Build `Columns` of `arrays`, which become read-only, and the names of the indices."""
    for array in arrays.values():
        array.setflags(write=False)
    columns = Columns(
        **arrays,
        resources=workload.resources,
        queue_names=names(workload.jobs, "queue"),
        user_names=names(workload.jobs, "user"),
        template_names=names(workload.jobs, "template"),
        runs_on=_texts(workload.stages, RUNS_ON)[1],
        speedups=_texts(workload.jobs, SPEEDUP)[1],
        partitions=_texts(workload.jobs, PARTITION)[1],
        levels_required=_texts(workload.jobs, TOPOLOGY_REQUIRED)[1],
        levels_preferred=_texts(workload.jobs, TOPOLOGY_PREFERRED)[1],
        speed_classes=speed_classes(workload.stages),
        features=Features(workload.jobs, workload.stages, workload.history),
        releases=Releases(workload.jobs, workload.job_edges),
        training=Training(workload.jobs, workload.training),
    )
    if not workload.in_runs:  # share the numbers of the table
        columns.__dict__["task_duration"] = values(workload.tasks, "duration_s")
    return columns


def replaced(columns: Columns, **changed: Any) -> Columns:
    """Return the same columns except those `changed`; tasks are not expanded again."""
    other = replace(columns, **changed)
    if "task_duration" in columns.__dict__:
        other.__dict__["task_duration"] = columns.task_duration
    return other


def not_shared(columns: Columns, shared: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of `columns` that are not among those of `shared_with_tables`."""
    by_name = {f.name: getattr(columns, f.name) for f in fields(columns)}
    arrays = {k: v for k, v in by_name.items() if isinstance(v, np.ndarray)}
    return {k: v for k, v in arrays.items() if k not in shared or len(v) != len(shared[k])}


def quanta(demand: F8, quantum: F8) -> I8:
    """Convert demands to whole quanta: rounded to nearest, a positive demand to at least 1."""
    whole: I8 = np.rint(demand / quantum).astype(np.int64)
    whole[(whole == 0) & (demand > 0)] = 1
    return whole


def capacity_quanta(amount: F8, quantum: F8 | float) -> I8:
    """Convert a capacity to whole quanta, rounded down up to a relative error of 1e-12.

    Limited to 2^50, which no demand reaches, so that sums stay within int64.
    """
    whole = np.floor(amount / quantum * (1 + 1e-12) + 1e-9)
    return np.minimum(whole, 2.0**50).astype(np.int64)


def stage_demand(workload: Tables) -> tuple[I8, F8, F8]:
    """Return the demand of a task of each stage, (G, R) in quanta and in units; (R,) quantum."""
    demand = np.zeros((workload.n_stages, len(workload.resources)))
    for r, name in enumerate(workload.resources):
        demand[:, r] = values(workload.stages, DEMAND_PREFIX + name)
    quantum = np.array([workload.quantum[r] for r in workload.resources])
    return quanta(demand, quantum), demand, quantum


def stage_request(workload: Tables) -> tuple[I8, F8, F8]:
    """Return the request of a task of each stage like `stage_demand`: its demand if it has none."""
    _, demand, quantum = stage_demand(workload)
    for r, name in enumerate(workload.resources):
        if REQUEST_PREFIX + name in workload.stages.column_names:
            request = column_or_nan(workload.stages, REQUEST_PREFIX + name)
            demand[:, r] = np.where(np.isnan(request), demand[:, r], request)
    return quanta(demand, quantum), demand, quantum


def stage_work_s(workload: Tables) -> F8:
    """Return the summed durations of each stage's tasks, (G,) s, without expanding tasks."""
    return stage_durations(workload)[0]


def job_work_s(workload: Tables) -> F8:
    """Sum the durations of each job's tasks, (J,) s."""
    job = values(workload.stages, "job")
    return np.bincount(job, stage_work_s(workload), workload.n_jobs).astype(np.float64)


def stage_durations(workload: Tables) -> tuple[F8, F8, F8]:
    """Return sum, maximum and minimum of each stage's durations, (G,) s, without expanding."""
    runs = workload.runs
    n_tasks = values(workload.stages, "n_tasks")
    if runs.one_a_stage:
        return runs.duration_s * n_tasks, runs.duration_s, runs.duration_s
    longest = np.maximum.reduceat(runs.duration_s, runs.stage0[:-1])
    shortest = np.minimum.reduceat(runs.duration_s, runs.stage0[:-1])
    # equal tasks are one product, so that the sum has the same bits in either representation
    work = shortest * n_tasks
    for stages in chunks(workload, np.flatnonzero(longest != shortest)):
        task0 = offsets(n_tasks[stages])
        work[stages] = np.add.reduceat(workload.stage_tasks_s(stages), task0[:-1])
    return work, longest, shortest


CHUNK = 2**20
"""Number of tasks processed together."""


def chunks(workload: Tables, stages: I8) -> Iterator[I8]:
    """Yield the stages in parts of about `CHUNK` tasks."""
    task0 = workload.stage_task0
    n_before = np.cumsum(task0[stages + 1] - task0[stages])
    for part in np.split(stages, np.flatnonzero(np.diff(n_before // CHUNK)) + 1):
        if len(part):
            yield part


def job_stage0(workload: Tables) -> I8:
    """Return the first stage of each job, and the number of stages: (J+1,)."""
    return offsets(np.bincount(values(workload.stages, "job"), minlength=workload.n_jobs))


def job_n_tasks(workload: Tables) -> I8:
    """Return the number of tasks of each job, (J,), without building columns."""
    return np.diff(workload.stage_task0[job_stage0(workload)])


def _texts(table: pa.Table, column: Column) -> tuple[I4, tuple[str, ...]]:
    """Return an optional column of texts as an index, and the texts of the index."""
    if column.name in table.column_names:
        return values(table, column.name).copy(), names(table, column.name)
    return np.zeros(table.num_rows, np.int32), ("",)


def _speeds(stages: pa.Table) -> F8:
    speeds = [values(stages, speed_column(name).name) for name in speed_classes(stages)]
    return np.column_stack(speeds) if speeds else np.zeros((stages.num_rows, 0))


def _attempt0(workload: Tables) -> I8:
    failures = workload.failures
    if failures.num_rows == 0:
        return np.zeros(1, np.int64)
    return offsets(np.bincount(values(failures, "task"), minlength=workload.n_tasks))


def _runs(workload: Tables) -> dict[str, NDArray[Any]]:
    runs = workload.runs
    return {
        "stage_run0": runs.stage0, "run_task0": runs.task0, "run_duration": runs.duration_s
    }  # fmt: skip


def final_deadline_s(columns: Columns, elapsed_s: F8) -> F8:
    """Return the deadline in force when each job ended, relative to its submission: (J,) s."""
    changed = elapsed_s >= columns.job_new_deadline_at  # False for NaN
    return np.where(changed, columns.job_new_deadline, columns.job_deadline)


def task_homes(columns: Columns, n_machines: int) -> I4 | None:
    """Return the machine on which each task's input lies, -1 for none: (T,) int32.

    None if no task's input lies anywhere.
    """
    if not has_homes(columns):
        return None
    stage = columns.task_stage()
    home = columns.stage_home.astype(np.int64)[stage]
    index = np.arange(len(home)) - columns.stage_task0[stage]
    return np.where(home >= 0, (home + index) % n_machines, -1).astype(np.int32)


def has_homes(columns: Columns) -> bool:
    """Check for a task whose input lies on some machine."""
    return bool((columns.stage_home >= 0).any())
