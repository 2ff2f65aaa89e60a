"""Runs of requeued jobs as jobs of their own, for the states of a log.

What a log shows of a preempted job is several runs, each on nodes of its own. A state has each, and
a model is asked for the start of each, from when it was free to start again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, ranges
from sim.transforms.parts import rebuild
from sim.workload.columns import job_stage0
from sim.workload.node_names import NODE_LIST, NODE_TASKS
from sim.workload.schema import ELIGIBLE, RECORDED, RUNS
from sim.workload.tables import column_or_default, values, with_column
from sim.workload.transform import take_tasks
from sim.workload.workload import Workload


class _Run(NamedTuple):
    """A run of a job: when it was free, its row and number, times, s, nodes, tasks on some."""

    free_s: float
    job: int
    number: int
    is_last: bool
    start_s: float
    finish_s: float
    nodes: str
    tasks: str


def with_attempts(workload: Workload) -> Workload:
    """Return the workload in which each run of a requeued job is a job, as long as it ran.

    The last one has the job's name, and jobs that depend on it wait for it.
    """
    jobs = workload.jobs
    if RUNS.name not in jobs.column_names or NODE_LIST not in workload.stages.column_names:
        return workload
    runs = sorted(run for j in range(workload.n_jobs) for run in _runs(workload, j))
    rows = np.array([run.job for run in runs], np.int64)
    is_part = np.array([run.number > 0 or not run.is_last for run in runs])
    if not is_part.any():
        return workload
    start_s, finish_s = (np.array([getattr(run, key) for run in runs]) for key in _TIMES)
    other = submitted_at(workload, rows, np.array([run.free_s for run in runs]))
    jobs, stages = other.jobs, other.stages
    ids = jobs["job_id"].to_pylist()
    named = [
        name if run.is_last else f"{name}, run {run.number + 1}"
        for name, run in zip(ids, runs, strict=True)
    ]
    jobs = jobs.set_column(jobs.column_names.index("job_id"), "job_id", pa.array(named))
    job = values(stages, "job")
    for column, times_s in zip(RECORDED, (start_s, finish_s), strict=True):
        own = column_or_default(jobs, column)
        jobs = with_column(jobs, column.name, np.where(is_part, times_s, own))
        own = column_or_default(stages, column)
        stages = with_column(stages, column.name, np.where(is_part[job], times_s[job], own))
    if ELIGIBLE.name in jobs.column_names:
        is_again = np.array([run.number > 0 for run in runs])
        eligible_s = column_or_default(jobs, ELIGIBLE)
        free_s = values(jobs, "submit_s")
        jobs = with_column(jobs, ELIGIBLE.name, np.where(is_again, free_s, eligible_s))
    lists = stages[NODE_LIST].to_pylist()
    lists = [runs[j].nodes if is_part[j] else own for j, own in zip(job, lists, strict=True)]
    place = stages.column_names.index(NODE_LIST)
    stages = stages.set_column(place, NODE_LIST, pa.array(lists, pa.string()))
    if NODE_TASKS in stages.column_names:
        known = stages[NODE_TASKS].to_pylist()
        known = [runs[j].tasks if is_part[j] else own for j, own in zip(job, known, strict=True)]
        place = stages.column_names.index(NODE_TASKS)
        stages = stages.set_column(place, NODE_TASKS, pa.array(known, pa.string()))
    tasks = other.runs.table() if other.in_runs else other.tasks
    task_job = job[values(tasks, "stage")]
    ran_s = np.where(is_part[task_job], (finish_s - start_s)[task_job], values(tasks, "duration_s"))
    tasks = with_column(tasks, "duration_s", ran_s)
    return rebuild(other, None, jobs=jobs, stages=stages, tasks=tasks)


_TIMES = ("start_s", "finish_s")


def _runs(workload: Workload, job: int) -> list[_Run]:
    """Return the runs of a job; one that stands for it as it is if the log has one run only."""
    jobs = workload.jobs
    text = jobs[RUNS.name][job].as_py()
    first_s, submit_s = jobs[RECORDED[0].name][job].as_py(), jobs["submit_s"][job].as_py()
    if not text or first_s is None:
        return [_Run(submit_s, job, 0, True, np.nan, np.nan, "", "")]
    rows = [[*run.split(" "), ""][:5] for run in text.split(";")]
    return [
        _Run(
            first_s + float(free_s) if number else submit_s,
            job,
            number,
            number == len(rows) - 1,
            first_s + float(start_s),
            first_s + float(finish_s),
            nodes,
            tasks,
        )
        for number, (free_s, start_s, finish_s, nodes, tasks) in enumerate(rows)
    ]


def submitted_at(workload: Workload, rows: I8, submit_s: F8) -> Workload:
    """Return the jobs `rows`, some of them several times, submitted at these times, ascending.

    A job that depends on a repeated one waits for the last of them.
    """
    stage0 = job_stage0(workload)
    stages = ranges(stage0[rows], stage0[rows + 1])
    new = {key: np.empty(workload.n_jobs, np.int32) for key in ("upstream", "downstream")}
    places = np.arange(len(rows), dtype=np.int32)
    new["upstream"][rows] = places  # the last one
    new["downstream"][rows[::-1]] = places[::-1]
    tasks, runs = take_tasks(workload, stages)
    edges = workload.job_edges
    for key, place in new.items():
        edges = with_column(edges, key, place[values(edges, key)])
    return rebuild(
        workload,
        None,
        runs,
        jobs=with_column(workload.jobs.take(pa.array(rows)), "submit_s", submit_s),
        stages=with_column(
            workload.stages.take(pa.array(stages)), "job", np.repeat(places, np.diff(stage0)[rows])
        ),
        job_edges=edges,
        **({} if tasks is None else {"tasks": tasks}),
    )
