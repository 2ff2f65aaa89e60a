"""Identity of records: which of those with one id are copies, runs or parts of one job.

An id is given again: on another cluster, after years, and to each run of a job that is requeued. So
records with one id (and cluster) are runs of one job only if user and name are the same, the
earlier run had ended, and its state is one after which Slurm lets a job wait again. A resized job
has a record for each size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim.base.arrays import I8, Mask
from sim.traces.sacct.clock import Times
from sim.traces.sacct.columns import Log, States, codes, n_records, number_rows, take
from sim.traces.sacct.ran import NOT_ENDED

COPY = "a repeated row"
OLDER = "an earlier state of a later row"
REQUEUED = "an earlier run of a requeued job"
PREEMPTED = "lost by preemption"
SHARED = "a job whose id another job has too"
_REQUEUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL")
"""States after which Slurm itself requeues a job."""
_MAY_BE_REQUEUED_S = 86400.0
"""Slurm forgets a job minutes after its end (MinJobAge), and can't requeue it any more."""


@dataclass(frozen=True, eq=False)
class Runs:
    """Jobs and runs that N records belong to.

    Attributes
    ----------
    origin : (N,) int64
        First record of the job: of its first run.
    first_part : (N,) int64
        First record of the run, which has several if the job was resized.
    is_lost : (N,) bool
        Of a run that a later one of the same job replaces.
    is_shared : (N,) bool
        First record of a job whose id another job has too.
    """

    origin: I8
    first_part: I8
    is_lost: Mask
    is_shared: Mask


def id_codes(log: Log) -> I8:
    """Return a number for each distinct id, with its cluster where the log has it, (N,)."""
    return codes(log, "JobID", "Cluster")


def copies(log: Log, times: Times, key: I8) -> dict[str, Mask]:
    """Mark the rows that repeat another, and those that another shows at a later time."""
    n = n_records(log)
    marks = {COPY: np.zeros(n, dtype=bool), OLDER: np.zeros(n, dtype=bool)}
    rows = np.flatnonzero(np.bincount(key)[key] > 1)
    if not len(rows):
        return marks
    texts = {name: _text(column) for name, column in take(log, rows).items()}
    content = codes(texts, *texts)
    is_first = np.zeros(len(rows), dtype=bool)
    is_first[np.unique(content, return_index=True)[1]] = True
    marks[COPY][rows[~is_first]] = True
    rows = rows[is_first]
    group, _ = number_rows(key[rows], times.submit_s[rows])
    not_ended = States(take(log, rows)).among(*NOT_ENDED)
    has_ended = np.bincount(group, ~not_ended) > 0
    last = np.zeros(len(has_ended), np.int64)
    np.maximum.at(last, group, np.arange(len(rows)))
    is_older = not_ended & (has_ended[group] | (last[group] > np.arange(len(rows))))
    marks[OLDER][rows[is_older]] = True
    return marks


def _text(column: pa.Array | np.ndarray) -> pa.Array:
    if isinstance(column, np.ndarray):
        return pa.array(column, from_pandas=True).cast(pa.string())
    return column


def find_runs(log: Log, times: Times, key: I8, ran: Mask) -> Runs:
    """Find the jobs and runs of the records that ran; any other record is a job of its own."""
    n = n_records(log)
    origin, first_part = np.arange(n), np.arange(n)
    is_lost, is_shared = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    rows = np.flatnonzero(ran)
    rows = rows[np.bincount(key[rows], minlength=n)[key[rows]] > 1]
    if not len(rows):
        return Runs(origin, first_part, is_lost, is_shared)
    rows = rows[np.lexsort((times.finish_s[rows], times.start_s[rows], key[rows]))]
    part = take(log, rows)
    same_id = key[rows][1:] == key[rows][:-1]
    is_resized, is_requeued = _links(part, times.take(rows))
    begins_job = np.append(True, ~(same_id & (is_resized | is_requeued)))
    begins_run = begins_job | np.append(True, ~(same_id & is_resized))
    job, run = np.cumsum(begins_job) - 1, np.cumsum(begins_run) - 1
    origin[rows] = rows[begins_job][job]
    first_part[rows] = rows[begins_run][run]
    last_run = np.append(run[np.flatnonzero(begins_job)[1:] - 1], run[-1])
    is_lost[rows] = run < last_run[job]
    n_jobs = np.bincount(key[rows][begins_job], minlength=n)
    is_shared[rows[begins_job]] = n_jobs[key[rows][begins_job]] > 1
    return Runs(origin, first_part, is_lost, is_shared)


def _links(log: Log, times: Times) -> tuple[Mask, Mask]:
    """Mark the pairs of records in a row whose second is the next size, or the next run, of a job.

    Both masks have a value for each record but the last.
    """
    states = States(log)
    person = codes(log, "User", "JobName")
    follows = (person[1:] == person[:-1]) & (times.finish_s[:-1] <= times.start_s[1:])
    is_resized = follows & states.among("RESIZING")[:-1]
    gap_s = times.submit_s[1:] - times.finish_s[:-1]
    by_slurm = states.among(*_REQUEUED)[:-1]
    by_user = ~states.among("COMPLETED")[:-1] & (gap_s >= 0)
    is_requeued = (by_slurm | by_user) & (gap_s <= _MAY_BE_REQUEUED_S)
    return is_resized, follows & ~is_resized & is_requeued
