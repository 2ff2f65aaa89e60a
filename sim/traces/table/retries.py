"""Retries in a table: rows that are later attempts at what an earlier row attempted.

A retry follows the end of its earlier attempt. At the time of the log it would come too late where
a simulation runs the earlier one sooner, and too early where later; so it is submitted after that,
with the pause that the log shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask
from sim.traces.table.raw import Log
from sim.traces.table.states import COMPLETED, state_codes

Which = Literal["failed", "same_id", "none"]
"""Rows that are retries: of an id whose earlier row did not complete, of any id again, or none."""
RETRY = (
    "released when an earlier attempt has ended, after the log's pause (trace.retries=none: at the "
    "log's time)"
)
MAY_BE = (
    "job_id again, after the end of its earlier row: may be a retry (trace.retries=same_id "
    "releases it after that)"
)


@dataclass(frozen=True, eq=False)
class Retries:
    """Earlier attempt of each of J jobs.

    Attributes
    ----------
    earlier : (J,) int64
        The job that is its earlier attempt; -1 for none.
    first : (J,) int64
        The first attempt; the job itself if it has none before.
    start_s, end_s : (J,) float64
        Recorded start, s, NaN if unknown; end.
    may_be : (J,) bool
        Jobs with the id of an earlier one that had ended, and no retries by the rule.
    """

    earlier: I8
    first: I8
    start_s: F8
    end_s: F8
    may_be: Mask

    @property
    def exist(self) -> bool:
        """True if a job is a retry."""
        return bool((self.earlier >= 0).any())

    @cached_property
    def _attempts(self) -> dict[int, list[int]]:
        """Attempts by the first one, of jobs that have several."""
        attempts: dict[int, list[int]] = {}
        for job in np.flatnonzero(self.earlier >= 0).tolist():
            first = int(self.first[job])
            attempts.setdefault(first, [first]).append(job)
        return attempts

    def attempt_before(self, job: int, downstream: int) -> int:
        """Return the last attempt of a `job` that had ended when another one started."""
        attempts = self._attempts.get(int(self.first[job]))
        if attempts is None or downstream < 0:
            return job
        ended = [k for k in attempts if self.end_s[k] <= self.start_s[downstream]]
        return max(ended, key=lambda k: float(self.end_s[k]), default=job)


def find_retries(
    log: Log, times: tuple[F8, F8, F8], ids: pa.Array, rows: I8, rule: Which
) -> Retries:
    """Find the retries among the jobs of a log.

    A job is a retry of the one of its id (and of its job, in a table with parts) that started last
    before it, if that had ended by then; with ``failed``, and did not complete by its state. A
    column ``retry_of`` names the row that was attempted before, whatever its state.

    Parameters
    ----------
    times : three (N,) float64
        Submission, start and end of the log's rows, s; the earliest end where it is unknown.
    ids : (N,) Arrow array of strings
        Ids of the log's rows.
    rows : (J,) int64
        The rows that are jobs.
    rule : {"failed", "same_id", "none"}
        Which rows are retries.
    """
    submit_s, start_s, end_s = (time_s[rows] for time_s in times)
    begin_s = np.where(np.isnan(start_s), submit_s, start_s)
    earlier = np.full(len(rows), -1, np.int64)
    may_be = np.zeros(len(rows), bool)
    if rule != "none":
        before = _previous(_keys(log, ids, rows), begin_s)
        follows = (before >= 0) & (begin_s >= end_s[before])
        is_retry = follows & (_failed(log, rows)[before] if rule == "failed" else True)
        earlier[is_retry] = before[is_retry]
        may_be = follows & ~is_retry
        named = _named(log, ids, rows, begin_s)
        earlier[named >= 0] = named[named >= 0]
    return Retries(earlier, _first(earlier, begin_s), start_s, end_s, may_be & (earlier < 0))


def released_after(
    upstream: I4, downstream: I4, moved: Mask, release_s: F8, end_s: F8, start_s: F8
) -> tuple[F8, F8]:
    """Return when jobs are submitted at the earliest, and their pause after their inputs, (J,) s.

    `moved` jobs are submitted when what they wait for has ended and the log's pause is over: they
    take part from the submission of the last of these on. The others keep their release.
    """
    last_s = np.full(len(release_s), np.nan)
    np.fmax.at(last_s, downstream, end_s[upstream])
    pause_s = np.where(moved, np.nan_to_num(np.maximum(release_s - last_s, 0.0)), 0.0)
    submit_s = release_s.copy()
    begin_s = np.where(np.isnan(start_s), release_s, start_s)
    edges = np.flatnonzero(moved[downstream])
    edges = edges[np.argsort(begin_s[downstream[edges]], kind="stable")]
    earliest_s: dict[int, float] = {}
    for up, down in zip(upstream[edges].tolist(), downstream[edges].tolist(), strict=True):
        before_s = earliest_s.get(up, float(release_s[up]))
        earliest_s[down] = max(earliest_s.get(down, -np.inf), before_s)
    for job, time_s in earliest_s.items():
        submit_s[job] = min(time_s, submit_s[job])
    return submit_s, pause_s


def _keys(log: Log, ids: pa.Array, rows: I8) -> I8:
    """Return a number a job, the same for jobs of one id that are parts of one job."""
    names = [ids] + ([log.columns["part_of"]] if "part_of" in log.columns else [])
    codes = [name.take(pa.array(rows)).dictionary_encode().indices.fill_null(-1) for name in names]
    stacked = np.stack([np.asarray(code, np.int64) for code in codes], axis=1)
    keys: I8 = np.unique(stacked, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return keys


def _previous(key: I8, begin_s: F8) -> I8:
    """Return the job of the same key that began last before each, (J,); -1 for none."""
    order = np.lexsort((begin_s, key))
    previous = np.full(len(key), -1, np.int64)
    same = key[order[1:]] == key[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _failed(log: Log, rows: I8) -> Mask:
    """Mark the jobs with a state that is not that of a completed one."""
    if "state" not in log.columns:
        return np.zeros(len(rows), bool)
    states = log.columns["state"].take(pa.array(rows))
    failed: Mask = np.asarray(states.is_valid()) & (state_codes(states) != COMPLETED)
    return failed


def _named(log: Log, ids: pa.Array, rows: I8, begin_s: F8) -> I8:
    """Return the job that each one's ``retry_of`` names, the last that began before; -1: none."""
    named = np.full(len(rows), -1, np.int64)
    if "retry_of" not in log.columns:
        return named
    jobs_of: dict[str, list[int]] = {}
    names: list[Any] = ids.take(pa.array(rows)).to_pylist()
    order = np.argsort(begin_s, kind="stable").tolist()
    texts = log.columns["retry_of"].take(pa.array(rows)).to_pylist()
    for job in order:
        if texts[job] and jobs_of.get(texts[job]):
            named[job] = jobs_of[texts[job]][-1]
        jobs_of.setdefault(names[job], []).append(job)
    return named


def _first(earlier: I8, begin_s: F8) -> I8:
    """Return the first attempt of each job: the job itself if it is no retry."""
    first = np.arange(len(earlier))
    for job in np.argsort(begin_s, kind="stable").tolist():
        if earlier[job] >= 0:
            first[job] = first[earlier[job]]
    return first
