"""Jobs in the order in which they could start, and their table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask, inverse
from sim.base.reading import count_rule
from sim.traces.sacct.clock import MIN_S
from sim.traces.sacct.columns import Log, by_text, limits_s, numbers, take_rows
from sim.traces.sacct.groups import Groups
from sim.traces.sacct.released import CAUSES, Releases
from sim.traces.sacct.selection import Selection
from sim.workload.delays import ROUNDING_S

OF_JOBS = (
    "JobID", "JobName", "User", "Priority", "Timelimit", "TimelimitRaw", "Account", "Partition",
    "QOS", "Reason",
)  # fmt: skip
"""Columns that are read of the first record of each job."""
RELEASED = "submitted when it became eligible (trace.release=submit: at its submission)"
SIMULATED = "submitted as it was, as a simulation has what it waited for (dependency, throttle)"
NEGATIVE_WAIT = "starts before its submission: its start is left out"


@dataclass(frozen=True, eq=False)
class Jobs:
    """J jobs of K records, sorted by the time at which they could start.

    Attributes
    ----------
    job : (K,) int64
        Job of each record.
    head : (J,) int64
        First record of each job.
    names : pyarrow.Array
        Unique id of each job.
    submit_s, logged_submit_s : (J,) float64
        When it could start, and when it was really submitted.
    eligible_s : (J,) float64
        When it first became eligible; NaN if unknown.
    cause : (J,) int64
        Why that was after its submission, an index of `sim.traces.sacct.released.CAUSES`.
    start_s, finish_s : (J,) float64
        When it first started, and last ended.
    is_array : (J,) bool
        Made of several elements of an array.
    """

    job: I8
    head: I8
    names: pa.Array
    submit_s: F8
    logged_submit_s: F8
    eligible_s: F8
    cause: I8
    start_s: F8
    finish_s: F8
    is_array: Mask


def sort_jobs(
    chosen: Selection, groups: Groups, released: Releases, release: str
) -> tuple[Jobs, I8]:
    """Sort the jobs of `groups`; return them, and the old row of each.

    ``release="eligible"`` lets a job start from its release on (`sim.traces.sacct.released`).
    """
    n_jobs, first_run = len(groups.first), chosen.first_run
    logged_s = first_of_jobs(first_run.submit_s, groups.job, n_jobs)
    submit_s = logged_s
    if release == "eligible":
        submit_s = first_of_jobs(released.release_s, groups.job, n_jobs)
    order = np.argsort(submit_s, kind="stable")
    head = groups.first[order]
    is_array = groups.is_array[groups.first] & (np.bincount(groups.job) > 1)
    names = groups.names.take(pa.array(order))
    jobs = Jobs(
        job=inverse(order)[groups.job],
        head=head,
        names=distinct_names(names, chosen.head_log, head, logged_s[order]),
        submit_s=submit_s[order],
        logged_submit_s=logged_s[order],
        eligible_s=first_run.eligible_s[head],
        cause=released.cause[head],
        start_s=first_of_jobs(first_run.start_s, groups.job, n_jobs)[order],
        finish_s=-first_of_jobs(-chosen.finish_s, groups.job, n_jobs)[order],
        is_array=is_array[order],
    )
    return jobs, order


def first_of_jobs(column: F8, job: I8, n_jobs: int) -> F8:
    """Return the smallest value of each job's records."""
    if len(job) == n_jobs:  # a record each, in the same order
        return column
    smallest = np.full(n_jobs, np.inf)
    np.minimum.at(smallest, job, column)
    return smallest


def distinct_names(names: pa.Array, log: Log, head: I8, submit_s: F8) -> pa.Array:
    """Return the ids with what tells apart those that several jobs have: ``301@south``.

    By the cluster, else by the date or the time of submission, else by a number.
    """
    coded = names.dictionary_encode()
    code = coded.indices.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.bincount(code)[code] > 1)
    if not len(rows):
        return names
    texts: list[str] = names.to_pylist()
    time = submit_s[rows].astype(np.int64).astype("datetime64[s]")
    suffixes = [np.char.add("@", np.datetime_as_string(time, unit)) for unit in ("D", "s")]
    if "Cluster" in log:
        clusters = take_rows(log["Cluster"], head[rows]).fill_null("").to_pylist()
        suffixes.insert(0, np.array([f"@{name}" for name in clusters]))
    taken = set(texts)
    groups: dict[str, list[int]] = {}
    for position, row in enumerate(rows.tolist()):
        groups.setdefault(texts[row], []).append(position)
    for name, positions in groups.items():
        options = [[f"{name}{column[i]}" for i in positions] for column in suffixes]
        numbered = [f"{name}#{i}" for i in range(1, len(positions) + 1)]
        chosen = next((o for o in options if len({*o}) == len(o) and not taken & {*o}), numbered)
        taken |= {*chosen}
        for position, new in zip(positions, chosen, strict=True):
            texts[int(rows[position])] = new
    return pa.array(texts, pa.string())


def jobs_table(
    jobs: Jobs, log: Log, queue: str, filled: dict[str, int], noticed: dict[str, int]
) -> dict[str, Any]:
    """Return the columns of the table of jobs; `log` has the head record of each of the J jobs."""
    zero_s = float(jobs.submit_s[0])
    is_negative = jobs.start_s - jobs.logged_submit_s <= -MIN_S
    count_rule(noticed, NEGATIVE_WAIT, is_negative)
    start_s = np.where(is_negative, np.nan, jobs.start_s - zero_s)
    columns = {
        "job_id": jobs.names,
        "submit_s": jobs.submit_s - zero_s,
        "template": _filled(log, "JobName", "", filled),
        "user": _filled(log, "User", "", filled),
        "queue": _filled(log, queue, "default", filled),
        "priority": np.nan_to_num(numbers(log, "Priority")),
        "requested_s": pa.array(limits_s(log), from_pandas=True),
        "recorded_start_s": pa.array(start_s, from_pandas=True),
        "recorded_finish_s": jobs.finish_s - zero_s,
    }
    columns |= {
        name.lower(): log[name].fill_null("").dictionary_encode()
        for name in ("Account", "Partition", "QOS")
        if name in log
    }
    reason = by_text(log["Reason"], short_reason) if "Reason" in log else None
    if reason is not None and any(reason.dictionary.to_pylist()):
        columns["reason"] = reason
    if not np.isnan(jobs.eligible_s).all():
        columns["recorded_eligible_s"] = jobs.eligible_s - zero_s
    if (jobs.cause[jobs.cause > 0] != CAUSES.index("other")).any():
        cause = pa.array(jobs.cause, pa.int32())
        columns["delayed_by"] = pa.DictionaryArray.from_arrays(cause, CAUSES)
    is_later = jobs.submit_s > jobs.logged_submit_s
    count_rule(noticed, RELEASED, is_later)
    is_simulated = np.isin(jobs.cause, [CAUSES.index(name) for name in ("throttle", "dependency")])
    by_s = jobs.submit_s - jobs.logged_submit_s
    count_rule(noticed, SIMULATED, is_simulated & (by_s <= ROUNDING_S))
    if is_later.any():
        columns["recorded_submit_s"] = jobs.logged_submit_s - zero_s
    return columns


def short_reason(text: str) -> str:
    """Return a reason without its details; empty for none.

    >>> [short_reason(x) for x in ("None", "ReqNodeNotAvail, UnavailableNodes:n3", "Priority")]
    ['', 'ReqNodeNotAvail', 'Priority']
    """
    name = text.partition(",")[0].partition("(")[0].strip()
    return "" if name.lower() in ("none", "unknown", "n/a") else name


def _filled(log: Log, name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    column = log.get(name)
    if column is None:
        return pa.array([unknown] * len(log["JobID"]), pa.string())
    missing = column.is_null().to_numpy(zero_copy_only=False)
    count_rule(filled, f"{name} unknown: {unknown!r}", missing)
    return column.fill_null(unknown)
