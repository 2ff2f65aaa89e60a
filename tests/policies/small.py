"""Helpers for small runs: jobs by hand, starts, and running tasks."""

import numpy as np

import policies
import sim

ONE = sim.Cluster.slots(1)


def job(name, submit_s, durations, demand=None, **more):
    stages = [{"durations_s": list(durations), "demand": demand or {"cpu": 1}}]
    return {"job_id": name, "submit_s": float(submit_s), "stages": stages, **more}


def run(policy, jobs, cluster=ONE, seed=0, **params):
    w = sim.Workload.from_jobs(jobs)
    return sim.simulate(w, cluster, policies.build(policy, **params), seed=seed, record="tasks")


def started(result):
    """Return the names of the jobs in the order of their first tasks."""
    names = np.array(result.workload.jobs["job_id"].to_pylist())
    return "".join(names[np.argsort(result.job_start, kind="stable")])


def running_at(result, t):
    """Count the running tasks of each job at time t."""
    c = result.workload.columns
    task_job = np.repeat(c.stage_job, np.diff(c.stage_task0))
    alive = (result.task_start <= t) & (t < result.task_finish)
    return np.bincount(task_job[alive], minlength=result.workload.n_jobs).tolist()


def stage_starts(result):
    """Return the names of the stages in the order of their first tasks."""
    task0 = result.workload.columns.stage_task0[:-1]
    first = np.minimum.reduceat(result.task_start, task0)
    names = result.workload.stages["name"].to_pylist()
    return [names[i] for i in np.argsort(first, kind="stable")]


def stage(name, *durations, parents=(), **demand):
    demand = demand or {"cpu": 1}
    parents = list(parents)
    return {"name": name, "durations_s": list(durations), "parents": parents, "demand": demand}


def runs_of(template, *durations):
    """Build one-stage jobs of a template, a minute apart, from the durations of their tasks."""
    return [
        {"submit_s": 60.0 * i, "template": template, "stages": [{"durations_s": list(d)}]}
        for i, d in enumerate(durations)
    ]
