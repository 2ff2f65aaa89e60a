"""Transform of requested times: a shorter, or longer, limit of a partition or QOS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    by: Literal["partition", "qos", "queue"],
    changed: str,
    limits_s: Mapping[str, Positive | None] | None = None,
    was_s: Positive | None = None,
    default: str = "",
    factor: Positive | None = None,
) -> Workload:
    """Let jobs request no more time than a limit that has changed.

    A job of several partitions may request the longest of their limits. Jobs that request no time
    stay as they are: the cluster has the rule for them.

    Parameters
    ----------
    workload : Workload
        Any workload; without requested times it stays as it is.
    by : {"partition", "qos", "queue"}
        Column of the jobs.
    changed : str
        Partition, QOS or queue whose limit has changed: the others' jobs stay as they are.
    limits_s : mapping of str to float or None, optional
        Limits of partitions or QOS, s; None, or no entry: none.
    was_s : float, optional
        The limit before, s: jobs that request more than they might then stay as they are.
    default : str
        Partition of jobs that name none.
    factor : float, optional
        In place of limits, where only the log tells what they were: the changed limit is this times
        the longest time that any of its jobs requests.

    Raises
    ------
    InputError
        If jobs have no such column, none is of the changed value, none of those requests a time
        that a factor could be of, or both or neither of limits and factor are there.
    """
    if (limits_s is None) == (factor is None):
        raise InputError("give limits_s, or a factor", rule="wrong type")
    jobs = workload.jobs
    if by not in jobs.column_names:
        raise InputError(f"the workload's jobs have no {by}", rule="unknown column")
    texts = [text or default for text in names(jobs, by)]
    named = [[text] if by == "queue" else text.split(SEPARATOR) for text in texts]
    is_of = np.array([changed in several for several in named])[values(jobs, by)]
    if not is_of.any():
        used = sorted({name for several in named for name in several if name})
        raise InputError(f"no job is of it: {unknown(by, changed, used)}", rule=f"unknown {by}")
    requested_s = workload.columns.job_requested
    note: dict[str, Any] = {"limit_time": changed, "jobs": int(is_of.sum())}
    if limits_s is None:
        longest_s = float(np.max(requested_s[is_of], initial=0.0, where=requested_s[is_of] > 0))
        if not longest_s:
            message = f"no job of {by} {changed} requests a time, so there is no limit to change"
            raise InputError(message, rule=f"unknown {by}")
        limits_s = {changed: longest_s * float(factor or 1.0)}
        note["limit_s"] = limits_s[changed]
    limit_s, before_s = (
        np.array([_longest(several, limits) for several in named])[values(jobs, by)]
        for limits in (limits_s, {**limits_s, changed: was_s})
    )
    is_more = is_of & (requested_s > limit_s) & (requested_s <= before_s)
    ran_longer = is_more & (run_s(workload) > limit_s)
    note |= {"asked_for_more": int(is_more.sum()), "ran_longer": int(ran_longer.sum())}
    if is_more.any():
        jobs = with_column(jobs, REQUESTED.name, np.where(is_more, limit_s, requested_s))
    return rebuild(workload, note, jobs=jobs, failures=workload.failures)


def _longest(several: Sequence[str], limits_s: Mapping[str, float | None]) -> float:
    """Return the longest limit of some partitions, s."""
    limits = [limits_s.get(name) for name in several]
    return max(np.inf if limit is None else float(limit) for limit in limits)


def run_s(workload: Workload) -> F8:
    """Return how long each job runs without waiting, (J,) s."""
    columns = workload.columns
    is_rigid = workload.n_stages == workload.n_jobs
    tails_s = columns.stage_max_s if is_rigid else stage_tail_s(columns)
    longest_s: F8 = np.maximum.reduceat(tails_s, columns.job_stage0[:-1])
    return longest_s


def share_beyond_limits(workload: Workload) -> float:
    """Return the share of jobs that run longer than they request, even without waiting."""
    requested_s = workload.columns.job_requested
    if np.isnan(requested_s).all():
        return 0.0
    return float((run_s(workload) > requested_s).mean())
