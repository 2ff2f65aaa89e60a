"""DAGs whose stages are whole jobs of one name and user (Jajoo et al., NSDI 2022, §6)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.base.parameters import Count, checked
from sim.base.random import Stream, stream
from sim.transforms.parts import rebuilt
from sim.workload.schema import FEATURES
from sim.workload.tables import names, take_rows, values, with_column
from sim.workload.transform import take_tasks
from sim.workload.workload import Workload

FEWEST, MOST = 2, 5
"""Stages of a DAG."""


@checked
def named_dags(workload: Workload, jobs: Count = 900, seed: int = 0) -> Workload:
    """Make DAGs of 2 to 5 stages out of jobs of one stage with the same name and user.

    Jobs of each name and user, in the order in which they come, are cut into runs of 2 to 5, each
    number as likely; a run becomes a job, submitted when its first job was, and jobs left over
    are gone. The first of a run becomes the only stage without a parent; every other waits for
    one of those before it, each as likely. The paper does not say how its stages depend on each
    other.

    Parameters
    ----------
    workload : Workload
        Of jobs of one stage with ``job_name`` and ``user``, such as ``synth: recurring`` makes;
        its history stays.
    jobs : int
        How many DAGs; of more, a random choice is kept.
    seed : int
        Seed of sizes, parents and choice.

    Raises
    ------
    InputError
        If a job has several stages or no name, jobs depend on each other, or there are too few.
    """
    if workload.n_stages != workload.n_jobs or workload.job_edges.num_rows:
        raise InputError("DAGs are made of jobs of one stage that don't depend on each other")
    if "job_name" not in workload.jobs.column_names:
        raise InputError("the jobs have no column job_name, by which DAGs are put together")
    rng = stream(seed, "named_dags")
    runs = _runs(_groups(workload), rng)
    if len(runs) < jobs:
        raise InputError(
            f"the workload has jobs for {len(runs)} DAGs, fewer than {jobs}; give jobs={len(runs)} "
            "or less, or a larger workload"
        )
    chosen = [runs[at] for at in np.sort(rng.permutation(len(runs))[:jobs])]
    chosen.sort(key=lambda run: int(run[0]))
    rows = np.concatenate(chosen)
    sizes = np.array([len(run) for run in chosen])
    begin = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(rows)) - begin
    child = np.flatnonzero(place)
    parent = begin[child] + rng.integers(place[child])
    tasks, duration_s = take_tasks(workload, rows)
    stages = take_rows(workload.stages, rows)
    stages = with_column(stages, "job", np.repeat(np.arange(jobs, dtype=np.int32), sizes))
    stages = with_column(stages, "name", [f"stage-{number}" for number in place])
    for feature in FEATURES:
        if feature.name in workload.jobs.column_names:
            own = take_rows(workload.jobs.select([feature.name]), rows)[feature.name]
            stages = stages.append_column(feature.name, own)
    taken = take_rows(workload.jobs, rows[begin[np.flatnonzero(place == 0)]])
    transform = {"named_dags": jobs, "of": len(rows), "seed": int(seed)}
    edges = {"parent": parent, "child": child}
    return rebuilt(
        workload, transform, duration_s, True, jobs=taken, stages=stages, tasks=tasks,
        stage_edges=edges, downloads=None,
    )  # fmt: skip


def _groups(workload: Workload) -> list[I8]:
    """Return the jobs of each name and user, in the order in which they come."""
    jobs = workload.jobs
    if "" in names(jobs, "job_name"):
        raise InputError("a job has no name; DAGs are put together by name")
    key = values(jobs, "job_name").astype(np.int64) * (1 + len(names(jobs, "user")))
    key += values(jobs, "user")
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


def _runs(groups: list[I8], rng: Stream) -> list[I8]:
    cut = []
    for group in groups:
        at = 0
        while len(group) - at >= FEWEST:
            size = min(int(rng.integers(FEWEST, MOST + 1)), len(group) - at)
            cut.append(group[at : at + size])
            at += size
    return cut
