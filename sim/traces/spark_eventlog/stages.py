"""Build jobs and their stages from an application's events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from sim.base.arrays import F8
from sim.base.reading import Account
from sim.traces.spark_eventlog.application import NO_JOB, Application, SparkJob
from sim.traces.spark_eventlog.edges import build_edges
from sim.traces.spark_eventlog.tasks import Tasks

NO_JOB_START: Final = "a stage of a job whose start is not in the log"


@dataclass
class Job:
    """A job of the workload: one or more Spark jobs of an application."""

    job_id: str
    submit_ms: float
    end_ms: float
    template: str
    job_name: str
    queue: str
    app: Application
    tasks: dict[int, F8] = field(default_factory=dict)  # by stage, of the whole application
    is_censored: bool = False
    stages: list[int] = field(default_factory=list)  # Stage IDs, ascending
    edges: list[tuple[int, int]] = field(default_factory=list)  # (parent, child), Stage IDs


def build_jobs(
    app: Application, tasks: Tasks, account: Account, read_as: str, order: bool
) -> list[Job]:
    """Return an application's jobs; count what is peculiar, and enter jobs and dependencies."""
    _add_missing_jobs(app, tasks.by_stage)
    key = {number: _key(read_as, number, job) for number, job in app.jobs.items()}
    grouped: dict[str, Job] = {}
    for number, spark_job in app.jobs.items():
        job = grouped.get(key[number])
        if job is None:
            job = grouped[key[number]] = _job(app, read_as, key[number], number, spark_job)
            job.tasks = tasks.by_stage
        elif read_as != "applications":
            job.end_ms = max(job.end_ms, spark_job.end_ms)
        if read_as != "applications" or not math.isfinite(app.begin_ms):
            job.submit_ms = float(np.fmin(job.submit_ms, spark_job.submit_ms))
        if not math.isfinite(spark_job.end_ms) and not math.isfinite(app.end_ms):
            job.is_censored = True
    _notice_stages(app, tasks)
    for stage_id in sorted(tasks.by_stage):
        grouped[key[app.stages[stage_id].job]].stages.append(stage_id)
    edges = build_edges(app, tasks, account, lambda i: key[app.stages[i].job], order)
    for parent, child in edges:
        grouped[key[app.stages[child].job]].edges.append((parent, child))
    jobs = [job for job in grouped.values() if job.stages]
    n_censored = sum(job.is_censored for job in jobs)
    app.notice("a job that still ran where the log ends (censored)", n_censored)
    unit = "an application" if read_as == "applications" else "a job"
    n_empty = len(grouped) - len(jobs) if app.jobs else int(read_as == "applications")
    app.drop(f"{unit} without a successful task", n_empty)
    account.count(jobs=len(jobs))
    account.add(f"{unit} without a successful task", jobs=n_empty)
    return jobs


def _notice_stages(app: Application, tasks: Tasks) -> None:
    n_incomplete = sum(
        len(part) < app.stages[stage_id].n_tasks for stage_id, part in tasks.by_stage.items()
    )
    app.notice("a stage of which not every task has ended", n_incomplete)
    ended = {number for number, job in app.jobs.items() if math.isfinite(job.end_ms)}
    n_skipped = sum(
        stage_id not in tasks.ran and stage.job in ended for stage_id, stage in app.stages.items()
    )
    app.notice("a skipped stage: its output existed", n_skipped)


def _add_missing_jobs(app: Application, tasks: dict[int, F8]) -> None:
    """Give stages that no job's start lists a job: those of one execution or that read each other.

    It begins with the first of them, and ends with the last one if all completed.
    """
    alone = sorted(i for i, stage in app.stages.items() if stage.job == NO_JOB)
    app.notice(NO_JOB_START, len(alone))
    link = {stage_id: stage_id for stage_id in alone}  # to an earlier stage of the same job
    first_of_execution: dict[str, int] = {}

    def first(stage_id: int) -> int:
        while link[stage_id] != stage_id:
            link[stage_id] = link[link[stage_id]]
            stage_id = link[stage_id]
        return stage_id

    for stage_id in alone:
        related = [parent for parent in app.stages[stage_id].parents if parent in link]
        execution = app.stage_jobs[stage_id].execution if stage_id in app.stage_jobs else ""
        if execution:
            related.append(first_of_execution.setdefault(execution, stage_id))
        roots = [first(i) for i in (stage_id, *related)]
        link.update(dict.fromkeys(roots, min(roots)))
    members: dict[int, list[int]] = {}
    for stage_id in alone:
        members.setdefault(first(stage_id), []).append(stage_id)
    for group, stages in members.items():
        app.jobs[-1 - group] = _missing_job(app, stages, tasks)
        for stage_id in stages:
            app.stages[stage_id] = replace(app.stages[stage_id], job=-1 - group)


def _missing_job(app: Application, stages: list[int], tasks: dict[int, F8]) -> SparkJob:
    described = [app.stage_jobs[i] for i in stages if i in app.stage_jobs]
    job = described[0] if described else SparkJob(math.nan, "", "", "")
    begins = [app.submissions.get(i, math.nan) for i in stages]
    begins += [float(np.nanmin(tasks[i][:, 0])) for i in stages if i in tasks]
    ends = [app.completions.get(i, math.nan) for i in stages]
    return replace(
        job,
        submit_ms=min((ms for ms in begins if math.isfinite(ms)), default=math.nan),
        end_ms=max(ms if math.isfinite(ms) else math.inf for ms in ends),
        listed=tuple(stages),
    )


def _key(read_as: str, number: int, job: SparkJob) -> str:
    if read_as == "applications":
        return ""
    if read_as == "queries" and job.execution:
        return f"query-{job.execution}"
    return f"job-{number}" if number >= 0 else f"stages-{-1 - number}"


def _job(app: Application, read_as: str, key: str, number: int, job: SparkJob) -> Job:
    queue = app.properties.get("spark.yarn.queue", "") or "default"
    if read_as == "applications":
        begin_ms = app.begin_ms if np.isfinite(app.begin_ms) else job.submit_ms
        return Job(app.app_id, begin_ms, app.end_ms, app.name, app.name, queue, app)
    last = max((i for i, stage in app.stages.items() if stage.job == number), default=-1)
    name = job.description or (app.stages[last].name if last >= 0 else "")
    if key.startswith("query-"):
        name = app.executions.get(job.execution, "") or name
    return Job(
        f"{app.app_id}/{key}", job.submit_ms, job.end_ms, f"{app.name}: {name}", name,
        job.pool or queue, app,
    )  # fmt: skip
