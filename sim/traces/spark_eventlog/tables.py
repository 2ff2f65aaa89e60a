"""Tables of a workload from jobs and the tasks of their stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.traces.spark_eventlog.application import demand
from sim.traces.spark_eventlog.stages import Job
from sim.traces.spark_eventlog.tasks import BYTES, TASK


def to_tables(jobs: list[Job], begin_ms: float) -> dict[str, Any]:
    """Return the tables of a workload; times are s from `begin_ms`."""
    rows = [(number, job, i) for number, job in enumerate(jobs) for i in job.stages]
    row_of = {(number, i): row for row, (number, _, i) in enumerate(rows)}
    stages = [job.app.stages[i] for _, job, i in rows]
    stage_tasks = [job.tasks[i] for _, job, i in rows]
    tasks = dict(zip(TASK, np.concatenate(stage_tasks).T, strict=True))
    n_tasks = np.array([len(part) for part in stage_tasks])
    task_stage = np.repeat(np.arange(len(rows), dtype=np.int32), n_tasks)
    demands = np.array(
        [demand(job.app, stage.profile) for (_, job, _), stage in zip(rows, stages, strict=True)]
    )
    edges = [
        (row_of[number, parent], row_of[number, child])
        for number, job in enumerate(jobs)
        for parent, child in job.edges
    ]
    parent, child = np.array(edges, np.int32).reshape(-1, 2).T
    end_ms = np.array([job.end_ms for job in jobs])
    finish_s = np.where(np.isfinite(end_ms), (end_ms - begin_ms) / 1000, np.nan)
    start_ms = np.full(len(jobs), np.inf)
    task_job = np.array([number for number, _, _ in rows])[task_stage]
    np.fmin.at(start_ms, task_job, tasks["launch_ms"])
    return {
        "jobs": {
            "job_id": [job.job_id for job in jobs],
            "submit_s": np.array([job.submit_ms - begin_ms for job in jobs]) / 1000,
            "template": [job.template for job in jobs],
            "user": [job.app.user for job in jobs],
            "queue": [job.queue for job in jobs],
            "application": [job.app.name for job in jobs],
            "job_name": [job.job_name for job in jobs],
            "recorded_start_s": (start_ms - begin_ms) / 1000,
            "recorded_finish_s": finish_s,
        },
        "stages": {
            "job": np.array([number for number, _, _ in rows], np.int32),
            "name": [
                f"{i} {stage.name}".strip() for (_, _, i), stage in zip(rows, stages, strict=True)
            ],
            "n_tasks": n_tasks.astype(np.int32),
            "demand_cpu": demands[:, 0],
            "demand_mem": demands[:, 1],
            "spark_stage": np.array([i for _, _, i in rows]),
            **{name: np.bincount(task_stage, tasks[name], len(rows)) for name in BYTES},
        },
        "tasks": {
            "stage": task_stage,
            "duration_s": tasks["duration_s"],
            "recorded_start_s": (tasks["launch_ms"] - begin_ms) / 1000,
            "recorded_finish_s": (tasks["finish_ms"] - begin_ms) / 1000,
        },
        "stage_edges": {"parent": parent, "child": child},
    }
