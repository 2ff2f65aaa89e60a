"""The arrays that the kernel and the policies read: a workload as plain NumPy columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.workload.features import Features
from sim.workload.schema import (
    DEMAND_PREFIX,
    EDGE_KINDS,
    INPUT_HOME,
    INPUT_MODES,
    JOB_EDGE_KINDS,
    NEW_DEADLINE,
    NEW_DEADLINE_AT,
    POLL_LAG,
    REMOTE_FACTOR,
    Column,
)
from sim.workload.tables import names, values
from sim.workload.training import Training

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.workload.workload import Workload

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
I1 = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Columns:
    """A workload of J jobs, G stages, T tasks, R resources and E stage edges as arrays.

    Every array is read-only, C-contiguous and of fixed dtype.

    Attributes
    ----------
    job_submit : (J,) float64
        When a job is submitted, s; non-decreasing.
    job_stage0 : (J+1,) int64
        Stages of job j are the rows ``job_stage0[j]`` to ``job_stage0[j+1]``.
    job_priority : (J,) float64
        The user's priority; larger goes first.
    job_deadline : (J,) float64
        Deadline relative to submission, s; NaN for none.
    job_new_deadline, job_new_deadline_at : (J,) float64
        The deadline that holds from a time on, both relative to submission, s; NaN if it stays.
    job_min_tasks : (J,) int32
        Gang: how many tasks start together; 0 for none.
    job_queue, job_user, job_template : (J,) int32
        Index into `queue_names`, `user_names`, `template_names`.
    job_input_mode : (J,) int8
        0 none, 1 blind, 2 poll (`sim.workload.schema.INPUT_MODES`).
    job_poll_lag : (J,) float64
        How long after its last hard input a job that polls is submitted at the earliest, s.
    job_work : (J,) float64
        Sum of the durations of a job's tasks, s.
    stage_job : (G,) int32
        Row of the job.
    stage_task0 : (G+1,) int64
        Tasks of stage g are the rows ``stage_task0[g]`` to ``stage_task0[g+1]``.
    stage_demand : (G, R) int64
        What one task holds, in quanta: demand over `quantum`, rounded to nearest, a positive
        demand to at least 1.
    stage_demand_f : (G, R) float64
        The same as given.
    stage_work : (G,) float64
        Sum of the durations of a stage's tasks, s.
    stage_home : (G,) int32
        The input of task i lies on machine ``(stage_home + i) mod machines``; -1 for none.
    stage_remote_factor : (G,) float64
        How many times as long its tasks take on other machines.
    stage_max_s, stage_min_s : (G,) float64
        Longest and shortest of them, s.
    task_duration : (T,) float64
        How long a task runs, s.
    attempt0 : (T+1,) or (1,) int64
        Attempts of task t that fail are the rows ``attempt0[t]`` to ``attempt0[t+1]``, in order;
        a lone 0 where there is no table of failures.
    attempt_s : (F,) float64
        How long the attempt runs before it fails, s.
    attempt_lost : (F,) int32
        The task of a parent stage whose output it finds lost; -1 for none.
    input0 : (J+1,) int64
        The jobs that need what job j makes (hard edges) are the rows ``input0[j]`` to
        ``input0[j+1]`` of `input_reader`.
    input_reader : (H,) int32
        Row of the job; ascending for each upstream.
    edge0 : (G+1,) int64
        Edges of parent g are the rows ``edge0[g]`` to ``edge0[g+1]``.
    edge_child : (E,) int32
        Stage that waits; ascending for each parent.
    edge_kind : (E,) int8
        0 barrier, 1 one_to_one (`sim.workload.schema.EDGE_KINDS`).
    stage_n_barrier, stage_n_o2o : (G,) int32
        Number of parents of each kind.
    quantum : (R,) float64
        Size of one quantum of each resource.
    resources, queue_names, user_names, template_names : tuple of str
        What the indices mean.
    features : Features
        By what a job is known, and the jobs of the past (`sim.workload.features`).
    training : Training
        The tasks of earlier runs of the jobs' templates (`sim.workload.training`).
    """

    job_submit: F8
    job_stage0: I8
    job_priority: F8
    job_deadline: F8
    job_new_deadline: F8
    job_new_deadline_at: F8
    job_min_tasks: I4
    job_queue: I4
    job_user: I4
    job_template: I4
    job_input_mode: I1
    job_poll_lag: F8
    job_work: F8
    stage_job: I4
    stage_task0: I8
    stage_demand: I8
    stage_demand_f: F8
    stage_work: F8
    stage_home: I4
    stage_remote_factor: F8
    stage_max_s: F8
    stage_min_s: F8
    task_duration: F8
    attempt0: I8
    attempt_s: F8
    attempt_lost: I4
    input0: I8
    input_reader: I4
    edge0: I8
    edge_child: I4
    edge_kind: I1
    stage_n_barrier: I4
    stage_n_o2o: I4
    quantum: F8
    resources: tuple[str, ...]
    queue_names: tuple[str, ...]
    user_names: tuple[str, ...]
    template_names: tuple[str, ...]
    features: Features
    training: Training


def build(workload: Workload) -> Columns:
    """Build the columns of a valid workload."""
    views = shared_with_tables(workload)
    jobs, edges = workload.jobs, workload.stage_edges
    n_jobs, n_stages = workload.n_jobs, workload.n_stages
    task0 = workload.stage_task0
    uniform = workload.stage_duration_s
    if uniform is None:
        task_duration = views["task_duration"]
    else:
        task_duration = np.repeat(uniform, values(workload.stages, "n_tasks"))
    work, longest, shortest = _stage_durations(workload, task_duration)
    whole, demand, quantum = stage_demand(workload)
    child = views["edge_child"]
    kind = _codes(edges, "kind", EDGE_KINDS)
    hard = _codes(workload.job_edges, "kind", JOB_EDGE_KINDS) == 0
    upstream = values(workload.job_edges, "upstream")[hard]
    derived = {
        "job_stage0": job_stage0(workload),
        "job_deadline": jobs["deadline_s"].chunk(0).to_numpy(zero_copy_only=False),
        "job_new_deadline": _or_default(jobs, NEW_DEADLINE),
        "job_new_deadline_at": _or_default(jobs, NEW_DEADLINE_AT),
        "job_input_mode": _codes(jobs, "input_mode", INPUT_MODES),
        "job_poll_lag": _or_default(jobs, POLL_LAG),
        "job_work": np.bincount(views["stage_job"], work, n_jobs),
        "stage_task0": task0,
        "stage_demand": whole,
        "stage_demand_f": demand,
        "stage_work": work,
        "stage_home": _or_default(workload.stages, INPUT_HOME),
        "stage_remote_factor": _or_default(workload.stages, REMOTE_FACTOR),
        "stage_max_s": longest,
        "stage_min_s": shortest,
        "task_duration": task_duration,
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


def shared_with_tables(workload: Workload) -> dict[str, NDArray[Any]]:
    """Return the columns that are views of the tables' buffers, at no cost."""
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
    if workload.stage_duration_s is None:
        views["task_duration"] = values(workload.tasks, "duration_s")
    return views


def assemble(workload: Workload, arrays: dict[str, NDArray[Any]]) -> Columns:
    """Make `arrays` read-only and name the indices."""
    for array in arrays.values():
        array.setflags(write=False)
    return Columns(
        **arrays,
        resources=workload.resources,
        queue_names=names(workload.jobs, "queue"),
        user_names=names(workload.jobs, "user"),
        template_names=names(workload.jobs, "template"),
        features=Features(workload.jobs, workload.stages, workload.history),
        training=Training(workload.jobs, workload.training),
    )


def arrays_of(columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the arrays of `columns` by name."""
    found = {f.name: getattr(columns, f.name) for f in fields(columns)}
    return {k: v for k, v in found.items() if isinstance(v, np.ndarray)}


def offsets(counts: NDArray[Any]) -> I8:
    """Return where each group begins, and the end: (n+1,) int64 from (n,) counts."""
    out = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def ranges(begin: I8, end: I8) -> I8:
    """Return the numbers begin[i], ..., end[i] - 1 for each i, one range after the other."""
    sizes = end - begin
    starts = np.cumsum(sizes) - sizes
    return np.repeat(begin - starts, sizes) + np.arange(sizes.sum())


def quanta(demand: F8, quantum: F8) -> I8:
    """Return demands as whole quanta: nearest, and at least 1 for what is positive."""
    whole: I8 = np.rint(demand / quantum).astype(np.int64)
    whole[(whole == 0) & (demand > 0)] = 1
    return whole


def capacity_quanta(amount: F8, quantum: F8 | float) -> I8:
    """Return how many whole quanta `amount` holds; a hair below a whole number counts as it.

    More than 2^50 count as 2^50, which no demand reaches, so that sums stay within int64.
    """
    whole = np.floor(amount / quantum * (1 + 1e-12) + 1e-9)
    return np.minimum(whole, 2.0**50).astype(np.int64)


def stage_demand(workload: Workload) -> tuple[I8, F8, F8]:
    """Return what a task of each stage holds: (G, R) quanta, (G, R) as given, (R,) quantum."""
    demand = np.zeros((workload.n_stages, len(workload.resources)))
    for r, name in enumerate(workload.resources):
        demand[:, r] = values(workload.stages, DEMAND_PREFIX + name)
    quantum = np.array([workload.quantum[r] for r in workload.resources])
    return quanta(demand, quantum), demand, quantum


def stage_work_s(workload: Workload) -> F8:
    """Return the summed durations of each stage's tasks, (G,) s, without expanding any."""
    uniform = workload.stage_duration_s
    if uniform is not None:
        work: F8 = uniform * values(workload.stages, "n_tasks")
        return work
    return _stage_durations(workload, values(workload.tasks, "duration_s"))[0]


def job_stage0(workload: Workload) -> I8:
    """Return the first stage of each job, and the number of stages: (J+1,)."""
    return offsets(np.bincount(values(workload.stages, "job"), minlength=workload.n_jobs))


def _or_default(table: pa.Table, column: Column) -> NDArray[Any]:
    if column.name in table.column_names:
        array: NDArray[Any] = table[column.name].chunk(0).to_numpy(zero_copy_only=False)
        return array.copy()
    return np.full(table.num_rows, column.default, dtype=column.type.to_pandas_dtype())


def _attempt0(workload: Workload) -> I8:
    failures = workload.failures
    if failures.num_rows == 0:
        return np.zeros(1, np.int64)
    return offsets(np.bincount(values(failures, "task"), minlength=workload.n_tasks))


def _stage_durations(workload: Workload, task_duration: F8) -> tuple[F8, F8, F8]:
    uniform = workload.stage_duration_s
    if uniform is not None:
        return uniform * values(workload.stages, "n_tasks"), uniform, uniform
    first = workload.stage_task0[:-1]
    longest = np.maximum.reduceat(task_duration, first)
    shortest = np.minimum.reduceat(task_duration, first)
    # like tasks count as one product, so that the sum has the same bits however they are held
    alike = shortest * values(workload.stages, "n_tasks")
    work = np.where(longest == shortest, alike, np.add.reduceat(task_duration, first))
    return work, longest, shortest


def _codes(table: Any, column: str, choices: tuple[str, ...]) -> I1:
    lookup = np.array([choices.index(n) for n in names(table, column)], dtype=np.int8)
    return lookup[values(table, column)] if len(lookup) else np.zeros(table.num_rows, np.int8)
