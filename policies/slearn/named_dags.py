"""Transform: join jobs with the same name and user into DAGs (Jajoo et al., NSDI 2022, §6)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.base.parameters import Count, checked
from sim.base.random import Stream, stream
from sim.transforms.parts import rebuild
from sim.workload.schema import FEATURES
from sim.workload.tables import names, take_rows, values, with_column
from sim.workload.transform import take_tasks
from sim.workload.workload import Workload

MIN_STAGES, MAX_STAGES = 2, 5
"""Range of the number of stages of a DAG."""


@checked
def named_dags(workload: Workload, jobs: Count = 900, seed: int = 0) -> Workload:
    """Join single-stage jobs with the same name and user into DAGs of 2 to 5 stages.

    The jobs of each name and user, in order of submission, are cut into groups of 2 to 5, all sizes
    equally likely. A group becomes a job, submitted when its first job was; jobs that are left over
    are dropped. The first job of a group becomes the only stage without a parent; every other stage
    waits for one earlier stage, all equally likely. The paper does not say how its stages depend on
    each other.

    Parameters
    ----------
    workload : Workload
        Workload of single-stage jobs with ``job_name`` and ``user``, such as ``synth: recurring``
        makes; its history is preserved.
    jobs : int
        Number of DAGs to keep, drawn at random.
    seed : int
        Seed of the sizes, the parents and the selection.

    Raises
    ------
    InputError
        If a job has several stages or no name, jobs depend on each other, or there are too few.
    """
    if workload.n_stages != workload.n_jobs or workload.job_edges.num_rows:
        raise InputError(
            "the transform named_dags joins jobs of one stage that don't depend on each other; "
            f"this workload has {workload.n_stages} stages in {workload.n_jobs} jobs and "
            f"{workload.job_edges.num_rows} dependencies between jobs"
        )
    if "job_name" not in workload.jobs.column_names:
        raise InputError(
            "the jobs have no column job_name, and named_dags joins jobs with the same name"
        )
    rng = stream(seed, "named_dags")
    groups = _cut_groups(_jobs_by_name(workload), rng)
    if len(groups) < jobs:
        raise InputError(
            f"the workload has jobs for {len(groups)} DAGs, fewer than {jobs}; give "
            f"jobs={len(groups)} or less, or a larger workload"
        )
    selected = [groups[index] for index in np.sort(rng.permutation(len(groups))[:jobs])]
    selected.sort(key=lambda group: int(group[0]))
    rows = np.concatenate(selected)
    sizes = np.array([len(group) for group in selected])
    begin = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(len(rows)) - begin  # of the stage in its DAG
    child = np.flatnonzero(position)
    parent = begin[child] + rng.integers(position[child])
    tasks, runs = take_tasks(workload, rows)
    stages = take_rows(workload.stages, rows)
    stages = with_column(stages, "job", np.repeat(np.arange(jobs, dtype=np.int32), sizes))
    stages = with_column(stages, "name", [f"stage-{number}" for number in position])
    for feature in FEATURES:
        if feature.name in workload.jobs.column_names:
            column = take_rows(workload.jobs.select([feature.name]), rows)[feature.name]
            stages = stages.append_column(feature.name, column)
    first_jobs = take_rows(workload.jobs, rows[begin[np.flatnonzero(position == 0)]])
    transform = {"named_dags": jobs, "jobs": len(rows), "seed": int(seed)}
    edges = {"parent": parent, "child": child}
    return rebuild(
        workload, transform, runs, True, False, jobs=first_jobs, stages=stages, tasks=tasks,
        stage_edges=edges, downloads=None,
    )  # fmt: skip


def _jobs_by_name(workload: Workload) -> list[I8]:
    """Return the jobs of each name and user, in order of submission."""
    jobs = workload.jobs
    if "" in names(jobs, "job_name"):
        raise InputError(
            "a job has an empty job_name, and named_dags joins jobs with the same name"
        )
    key = values(jobs, "job_name").astype(np.int64) * (1 + len(names(jobs, "user")))
    key += values(jobs, "user")
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _cut_groups(jobs_by_name: list[I8], rng: Stream) -> list[I8]:
    """Cut the jobs of each name into groups of a random size; drop a single job at the end."""
    groups = []
    for jobs in jobs_by_name:
        begin = 0
        while len(jobs) - begin >= MIN_STAGES:
            size = min(int(rng.integers(MIN_STAGES, MAX_STAGES + 1)), len(jobs) - begin)
            groups.append(jobs[begin : begin + size])
            begin += size
    return groups
