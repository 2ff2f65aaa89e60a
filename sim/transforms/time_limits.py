"""Transform of requested times: a shorter, or longer, limit of a partition or QOS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.base.parameters import Positive, checked
from sim.cluster.classes import SEPARATOR
from sim.transforms.parts import rebuild
from sim.workload.paths import stage_tail_s
from sim.workload.schema import REQUESTED
from sim.workload.tables import names, values, with_column
from sim.workload.workload import Workload


@checked
def limit_time(
    workload: Workload,
    by: Literal["partition", "qos"],
    changed: str,
    limits_s: Mapping[str, Positive | None],
    was_s: Positive | None = None,
    default: str = "",
) -> Workload:
    """Let jobs request no more time than a limit that has changed.

    A job of several partitions may request the longest of their limits. Jobs that request no time
    stay as they are: the cluster has the rule for them.

    Parameters
    ----------
    workload : Workload
        Any workload; without requested times it stays as it is.
    by : {"partition", "qos"}
        Column of the jobs.
    changed : str
        Partition or QOS whose limit has changed: the others' jobs stay as they are.
    limits_s : mapping of str to float or None
        Limits of partitions or QOS, s; None, or no entry: none.
    was_s : float, optional
        The limit before, s: jobs that request more than they might then stay as they are.
    default : str
        Partition of jobs that name none.

    Raises
    ------
    InputError
        If jobs have no such column, or none is of the changed partition or QOS.
    """
    jobs = workload.jobs
    if by not in jobs.column_names:
        raise InputError(f"the workload's jobs have no {by}", rule="unknown column")
    texts = [text or default for text in names(jobs, by)]
    limit_s, before_s = (
        np.array([_longest(text, limits) for text in texts])[values(jobs, by)]
        for limits in (limits_s, {**limits_s, changed: was_s})
    )
    is_of = np.array([changed in text.split(SEPARATOR) for text in texts])[values(jobs, by)]
    if not is_of.any():
        used = sorted({name for text in texts for name in text.split(SEPARATOR) if name})
        raise InputError(f"no job is of it: {unknown(by, changed, used)}", rule=f"unknown {by}")
    note: dict[str, Any] = {"limit_time": changed, "jobs": int(is_of.sum())}
    requested_s = workload.columns.job_requested
    is_more = is_of & (requested_s > limit_s) & (requested_s <= before_s)
    ran_longer = is_more & (_run_s(workload) > limit_s)
    note |= {"asked_for_more": int(is_more.sum()), "ran_longer": int(ran_longer.sum())}
    if is_more.any():
        jobs = with_column(jobs, REQUESTED.name, np.where(is_more, limit_s, requested_s))
    return rebuild(workload, note, jobs=jobs, failures=workload.failures)


def _longest(text: str, limits_s: Mapping[str, float | None]) -> float:
    """Return the longest limit of the partitions that a text names, s."""
    limits = [limits_s.get(name) for name in text.split(SEPARATOR)]
    return max(np.inf if limit is None else float(limit) for limit in limits)


def _run_s(workload: Workload) -> F8:
    """Return how long each job runs without waiting, (J,) s."""
    columns = workload.columns
    is_rigid = workload.n_stages == workload.n_jobs
    tails_s = columns.stage_max_s if is_rigid else stage_tail_s(columns)
    run_s: F8 = np.maximum.reduceat(tails_s, columns.job_stage0[:-1])
    return run_s
