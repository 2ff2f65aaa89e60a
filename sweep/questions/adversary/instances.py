"""Instances: small workloads as lists of jobs that can be changed, and their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.workload.schema import DEMAND_PREFIX
from sim.workload.workload import Workload

Job = dict[str, Any]
Jobs = list[Job]
"""Jobs as `Workload.from_jobs` takes them; they are never changed in place."""
_JOB_KEYS = (
    *("template", "user", "queue", "priority", "deadline_s", "min_tasks", "requested_s"),
    *("partition", "application", "job_name"),
)


def to_jobs(workload: Workload, n_jobs: int, n_tasks: int) -> Jobs:
    """Return the first jobs of a workload, at most `n_tasks` tasks of each of their stages."""
    columns = workload.columns
    rows = workload.jobs.slice(0, n_jobs).to_pylist()
    stages = workload.stages
    demands = [name for name in stages.column_names if name.startswith(DEMAND_PREFIX)]
    demand_rows = stages.select(demands).to_pylist()
    runs_on = stages["runs_on"].to_pylist() if "runs_on" in stages.column_names else None
    parents: dict[int, dict[str, str]] = {}
    for edge in workload.stage_edges.to_pylist():
        parents.setdefault(edge["child"], {})[f"s{edge['parent']}"] = edge["kind"]
    jobs = []
    for j, row in enumerate(rows):
        own = []
        for g in range(int(columns.job_stage0[j]), int(columns.job_stage0[j + 1])):
            first = int(columns.stage_task0[g])
            last = min(int(columns.stage_task0[g + 1]), first + n_tasks)
            demand = {k.removeprefix(DEMAND_PREFIX): v for k, v in demand_rows[g].items()}
            own.append(
                {
                    "name": f"s{g}",
                    "durations_s": columns.task_duration[first:last].tolist(),
                    "demand": demand,
                    "parents": parents.get(g, {}),
                    **({"runs_on": runs_on[g]} if runs_on else {}),
                }
            )
        width = sum(len(stage["durations_s"]) for stage in own)
        job = {key: row[key] for key in _JOB_KEYS if row.get(key) is not None}
        if job.get("min_tasks"):
            job["min_tasks"] = min(job["min_tasks"], width)
        jobs.append({"job_id": f"job-{j}", "submit_s": row["submit_s"], **job, "stages": own})
    return shifted(jobs)


def shifted(jobs: Jobs) -> Jobs:
    """Return jobs in the order of submission, the first at 0."""
    first = min(job["submit_s"] for job in jobs)
    later = [{**job, "submit_s": job["submit_s"] - first} for job in jobs]
    return sorted(later, key=lambda job: job["submit_s"])


def size(jobs: Jobs) -> tuple[int, int, int]:
    """Return the numbers of jobs, tasks and edges."""
    stages = [*stages_of(jobs)]
    n_tasks = sum(len(stage["durations_s"]) for stage in stages)
    return len(jobs), n_tasks, sum(len(stage["parents"]) for stage in stages)


def stages_of(jobs: Jobs) -> Iterator[dict[str, Any]]:
    """Yield the stages of all jobs."""
    for job in jobs:
        yield from job["stages"]


def with_job(jobs: Jobs, i: int, **changed: Any) -> Jobs:
    """Return jobs of which one has other values."""
    return [{**job, **changed} if k == i else job for k, job in enumerate(jobs)]


def with_stage(jobs: Jobs, i: int, s: int, **changed: Any) -> Jobs:
    """Return jobs of which one stage has other values."""
    stages = jobs[i]["stages"]
    replaced = [{**stage, **changed} if k == s else stage for k, stage in enumerate(stages)]
    return with_job(jobs, i, stages=replaced)


def without_stage(jobs: Jobs, i: int, s: int) -> Jobs:
    """Return jobs without a stage; its children wait for its parents."""
    removed = jobs[i]["stages"][s]
    stages = []
    for k, stage in enumerate(jobs[i]["stages"]):
        if k != s:
            parents = {
                name: kind for name, kind in stage["parents"].items() if name != removed["name"]
            }
            if removed["name"] in stage["parents"]:
                parents = {**removed["parents"], **parents}
            stages.append({**stage, "parents": parents})
    return with_job(jobs, i, **fit_gang({**jobs[i], "stages": stages}))


def fit_gang(job: Job) -> Job:
    """Return a job whose gang is no wider than its tasks."""
    width = sum(len(stage["durations_s"]) for stage in job["stages"])
    if job.get("min_tasks", 0) > 1:
        job = {**job, "min_tasks": width if is_rigid(job) else min(job["min_tasks"], width)}
    return job


def is_rigid(job: Job) -> bool:
    """Tell whether a job is one stage that is a gang as a whole."""
    return len(job["stages"]) == 1 and job.get("min_tasks", 0) > 0
