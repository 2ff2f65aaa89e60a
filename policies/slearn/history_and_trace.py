"""Transform that cuts a trace into a history and a workload (Jajoo et al., NSDI 2022, §4.3)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from policies.slearn.task_variation import load_statistics, window_loads
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.errors import InputError
from sim.base.parameters import Count, Positive, checked
from sim.base.random import stream
from sim.cluster.cluster import Cluster
from sim.transforms.parts import history_table, rebuild
from sim.workload.columns import job_n_tasks
from sim.workload.history import NAMES
from sim.workload.paths import critical_path_s
from sim.workload.tables import column_or_nan, take_rows, values, with_column
from sim.workload.workload import Workload

SHARED = ("application", "job_name", "user", "requested")
"""Features that relate jobs to each other; hour and day would relate nearly all of them."""


@checked
def history_and_trace(
    workload: Workload,
    jobs: Count = 1250,
    seed: int = 0,
    slots: Count = 150,
    load: Positive = 1.0,
    widest: Count = 150,
    wide: Literal["drop", "compress"] = "drop",
    source_slots: Positive | None = None,
) -> Workload:
    """Split a trace into a history and a workload of a given size and load (NSDI 2022, §4.3).

    The trace is split into two halves of equal length in time. Jobs wider than `widest` tasks are
    dropped, or all jobs are compressed. `jobs` jobs of the second half are drawn, all equally
    likely. The history consists of the jobs of the first half that have a feature in common with
    one of them. Arrivals are stretched to the load.

    The first of the drawn jobs is submitted at 0. The times of the history are not stretched, and
    are counted from that job's submission in the trace: a past job that ended after the split ends
    after 0. The end of a job is its ``recorded_finish_s`` in ``jobs``; where that is unknown, it
    is the end that the job would have had without waiting.

    Parameters
    ----------
    workload : Workload
        A trace whose jobs have features (`sim.workload.schema.FEATURES`) or users.
    jobs : int
        Number of jobs to draw.
    seed : int
        Seed of the drawn jobs, and of the tasks that a compressed job keeps.
    slots : int
        Number of slots of the cluster to simulate.
    load : float
        Mean load of that cluster.
    widest : int
        Largest number of tasks per job.
    wide : {"drop", "compress"}
        Treatment of wider jobs: drop them, or compress all jobs. ``compress``: each stage of every
        job keeps one of ``source_slots / slots`` tasks, rounded up and drawn at random, and a job
        has at most `widest`.
    source_slots : float, optional
        Number of slots of the trace's own cluster; needed for ``compress``.

    Returns
    -------
    Workload
        ``meta["transforms"]`` notes sizes, and load in windows (`policies.slearn.task_variation`).

    Raises
    ------
    InputError
        If a number is out of range; the workload has a history, earlier runs or failures already,
        or jobs that depend on each other; or the second half has too few jobs.
    """
    if workload.history.num_rows:
        raise InputError("the workload has a history already; give a trace without one")
    if workload.training.num_rows or workload.failures.num_rows:
        raise InputError(
            "the transform history_and_trace can't split a trace with earlier runs (training) or "
            "task failures; give a trace without, and apply fail_tasks afterwards"
        )
    if workload.job_edges.num_rows or workload.downloads.num_rows:
        raise InputError(
            "the transform history_and_trace can't split a trace whose jobs depend on each other "
            "or have downloads"
        )
    finish_s = _finish_s(workload)
    if wide == "compress":
        if source_slots is None:
            raise InputError(
                "wide=compress needs source_slots, the number of slots of the trace's cluster"
            )
        narrow = _compressed(workload, source_slots / slots, widest, seed)
        fits = np.ones(workload.n_jobs, dtype=bool)
    else:
        narrow, fits = workload, job_n_tasks(workload) <= widest
    submit_s = values(narrow.jobs, "submit_s")
    cluster = Cluster.slots(slots)
    cut_s = (submit_s[0] + submit_s[-1]) / 2
    second_half = np.flatnonzero(fits & (submit_s >= cut_s))
    if len(second_half) < jobs:
        raise InputError(
            f"the second half of the trace has {len(second_half)} jobs of at most {widest} tasks, "
            f"fewer than the {jobs} to draw; give jobs={len(second_half)} or less"
        )
    selected = np.sort(stream(seed, "history_and_trace").permutation(second_half)[:jobs])
    first_s = float(submit_s[selected[0]])
    drawn = narrow.take(selected).slice_time(first_s, np.inf)
    past = np.flatnonzero(fits & (submit_s < cut_s) & _shares_feature(narrow, selected))
    if jobs > 1:
        drawn = drawn.scale_load(load, cluster)
    columns = drawn.columns
    transform = {
        "history_and_trace": int(seed),
        "jobs": [jobs, drawn.n_jobs],
        "history": len(past),
        "wide": wide,
        "too wide": int((~fits).sum()),
        "load": [float(load), max(drawn.mean_load(cluster).values())],
        **load_statistics(window_loads(columns.job_submit, columns.job_work, slots)),
    }
    ended_s = np.maximum(finish_s, submit_s)[past]
    history = history_table(narrow, past, ended_s, first_s, SHARED)
    return rebuild(drawn, transform, keep_recorded=False, history=history)


def _finish_s(workload: Workload) -> F8:
    alone_s: F8 = values(workload.jobs, "submit_s") + critical_path_s(workload.columns)
    if "recorded_finish_s" not in workload.jobs.column_names:
        return alone_s
    recorded_s = column_or_nan(workload.jobs, "recorded_finish_s")
    return np.where(np.isnan(recorded_s), alone_s, recorded_s)


def _shares_feature(workload: Workload, selected: I8) -> Mask:
    """Mark the jobs that have a known feature in common with one of the selected jobs."""
    codes, _ = workload.columns.features.codes
    job = values(workload.stages, "job")
    is_selected = np.isin(job, selected)
    is_similar = np.zeros(workload.n_jobs, dtype=bool)
    for name in SHARED:
        code = codes[:, NAMES.index(name)]
        known = np.unique(code[is_selected & (code >= 0)])
        is_similar[job[np.isin(code, known)]] = True
    return is_similar


def _compressed(workload: Workload, ratio: float, widest: int, seed: int) -> Workload:
    """Keep one of `ratio` tasks of each stage, and at most `widest` tasks of a job."""
    n_tasks = values(workload.stages, "n_tasks").astype(np.int64)
    n_stages = np.bincount(values(workload.stages, "job"))[values(workload.stages, "job")]
    max_tasks = np.maximum(widest // n_stages, 1)
    n_kept = np.clip(np.ceil(n_tasks / max(ratio, 1.0)).astype(np.int64), 1, max_tasks)
    stages = with_column(workload.stages, "n_tasks", n_kept.astype(np.int32))
    tasks = None
    if workload.stage_duration_s is None:
        task0 = workload.stage_task0
        uniform = stream(seed, "history_and_trace", "tasks").random(int(task0[-1]))
        order = np.lexsort((uniform, np.repeat(np.arange(len(n_tasks)), n_tasks)))
        rows = np.sort(order[ranges(task0[:-1], task0[:-1] + n_kept)])
        tasks = take_rows(workload.tasks, rows)
    return rebuild(workload, None, stages=stages, tasks=tasks)
