"""A trace cut in two: jobs of the past to learn from, and jobs to schedule."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.errors import InputError
from sim.base.parameters import Count, Positive, checked
from sim.base.random import stream
from sim.cluster.cluster import Cluster
from sim.describe.slearn import load_statistics, window_loads
from sim.transforms.parts import history_of, rebuilt
from sim.workload.columns import job_n_tasks
from sim.workload.history import NAMES
from sim.workload.paths import critical_path_s
from sim.workload.tables import take_rows, values, with_column
from sim.workload.workload import Workload

SHARED = ("application", "job_name", "user", "requested")
"""Features that make jobs alike here; the hour and the day would make nearly all of them."""


@checked
def history_and_trace(
    workload: Workload,
    jobs: Count = 1250,
    seed: int = 0,
    slots: Count = 150,
    load: Positive = 1.0,
    widest: Count = 150,
    wide: Literal["drop", "compress"] = "drop",
    of_slots: Positive | None = None,
) -> Workload:
    """Cut a trace into a history and a workload of a size and load (NSDI 2022, §4.3).

    The trace is cut in two halves of the same length in time. Jobs wider than `widest` tasks are
    dropped, or all jobs are compressed. `jobs` of the second half are drawn, each as likely as
    any other. The history is of those jobs of the first half that have a feature in common with
    one of them. Arrivals are stretched to the load.

    The first of the drawn jobs comes at 0. The history keeps its own time, counted from when that
    job came in the trace, unstretched: a record of it that ended after the cut ends after 0. When
    a job ended is taken from ``recorded_finish_s`` of ``jobs``; where there is no such column, it
    is when the job would have if it never waited.

    Parameters
    ----------
    workload : Workload
        A trace whose jobs have features (`sim.workload.schema.FEATURES`) or users.
    jobs : int
        How many to draw.
    seed : int
        Seed of which, and of which tasks a compressed job keeps.
    slots : int
        How many tasks can run at once in the cluster to be.
    load : float
        Wanted mean load of it.
    widest : int
        The most tasks a job has.
    wide : {"drop", "compress"}
        What happens to wider jobs. ``compress``: each stage of every job keeps one task for
        ``of_slots / slots`` of them, rounded up and chosen at random, and `widest` at most.
    of_slots : float, optional
        Size of the cluster that the trace is of; needed to compress.

    Returns
    -------
    Workload
        ``meta["transforms"]`` notes sizes, and load in windows (`sim.describe.slearn`).

    Raises
    ------
    InputError
        On a number out of range; if the workload has a history, earlier runs or failures already,
        or jobs that depend on each other; if the second half has too few jobs.
    """
    if workload.history.num_rows:
        raise InputError("the workload has a history already; give a trace without one")
    if workload.training.num_rows or workload.failures.num_rows:
        raise InputError("a trace with earlier runs or failures of tasks can't be cut")
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError("a trace of jobs that depend on each other can't be cut")
    finish_s = _finish_s(workload)
    if wide == "compress":
        if of_slots is None:
            raise InputError("wide=compress needs of_slots, the size of the trace's cluster")
        narrow = _compressed(workload, of_slots / slots, widest, seed)
        fits = np.ones(workload.n_jobs, dtype=bool)
    else:
        narrow, fits = workload, job_n_tasks(workload) <= widest
    submit_s = values(narrow.jobs, "submit_s")
    cluster = Cluster.slots(slots)
    cut_s = (submit_s[0] + submit_s[-1]) / 2
    late = np.flatnonzero(fits & (submit_s >= cut_s))
    if len(late) < jobs:
        raise InputError(
            f"the second half of the trace has {len(late)} jobs of at most {widest} tasks, fewer "
            f"than the {jobs} to draw; give jobs={len(late)} or less"
        )
    chosen = np.sort(stream(seed, "history_and_trace").permutation(late)[:jobs])
    first_s = float(submit_s[chosen[0]])
    drawn = narrow.take(chosen).slice_time(first_s, np.inf)
    past = np.flatnonzero(fits & (submit_s < cut_s) & _alike(narrow, chosen))
    if jobs > 1:
        drawn = drawn.scale_load(load, cluster)
    columns = drawn.columns
    got = load_statistics(window_loads(columns.job_submit, columns.job_work, slots))
    transform = {
        "history_and_trace": int(seed),
        "jobs": [jobs, drawn.n_jobs],
        "history": len(past),
        "wide": wide,
        "too wide": int((~fits).sum()),
        "load": [float(load), max(drawn.mean_load(cluster).values())],
        **got,
    }
    ended_s = np.maximum(finish_s, submit_s)[past]
    history = history_of(narrow, past, ended_s, first_s, SHARED)
    return rebuilt(drawn, transform, jobs=_without_end(drawn.jobs), history=history)


def _finish_s(workload: Workload) -> F8:
    if "recorded_finish_s" in workload.jobs.column_names:
        return values(workload.jobs, "recorded_finish_s")
    return values(workload.jobs, "submit_s") + critical_path_s(workload.columns)


def _alike(workload: Workload, chosen: I8) -> Mask:
    """Tell which jobs have a known feature in common with one of the chosen."""
    now, _ = workload.columns.features.codes
    job = values(workload.stages, "job")
    is_chosen = np.isin(job, chosen)
    alike = np.zeros(workload.n_jobs, dtype=bool)
    for name in SHARED:
        code = now[:, NAMES.index(name)]
        known = np.unique(code[is_chosen & (code >= 0)])
        alike[job[np.isin(code, known)]] = True
    return alike


def _without_end(jobs: pa.Table) -> pa.Table:
    """Drop what was recorded of the end of jobs that are yet to run."""
    known = "recorded_finish_s" in jobs.column_names
    return jobs.drop_columns(["recorded_finish_s"]) if known else jobs


def _compressed(workload: Workload, ratio: float, widest: int, seed: int) -> Workload:
    """Keep one task of each stage for `ratio` of them, and `widest` of a job at most."""
    n_tasks = values(workload.stages, "n_tasks").astype(np.int64)
    n_stages = np.bincount(values(workload.stages, "job"))[values(workload.stages, "job")]
    most = np.maximum(widest // n_stages, 1)
    kept = np.clip(np.ceil(n_tasks / max(ratio, 1.0)).astype(np.int64), 1, most)
    stages = with_column(workload.stages, "n_tasks", kept.astype(np.int32))
    tasks = None
    if workload.stage_duration_s is None:
        task0 = workload.stage_task0
        lot = stream(seed, "history_and_trace", "tasks").random(int(task0[-1]))
        order = np.lexsort((lot, np.repeat(np.arange(len(n_tasks)), n_tasks)))
        rows = np.sort(order[ranges(task0[:-1], task0[:-1] + kept)])
        tasks = take_rows(workload.tasks, rows)
    return rebuilt(workload, None, stages=stages, tasks=tasks)
