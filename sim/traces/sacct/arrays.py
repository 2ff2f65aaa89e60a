"""Arrays of a log: their elements, and how many of these might run at once (``--array=1-16%4``).

A limit on running elements, a *throttle*, is in the command of submission, or in the id of elements
that still waited (``17_[5-16%4]``). Where neither tells it, one is inferred: elements of an array
have their begin time and dependencies in common, so if some became eligible later than others, or
Slurm's reason says so, a throttle held them, and it was as many as ever ran at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import count_rule
from sim.traces.sacct.columns import Log, codes, mask, number_rows, numbers, take_rows
from sim.traces.sacct.selection import Selection
from sim.workload.delays import THROTTLE_REASONS

INFERRED = "array whose limit on running elements (%) is inferred: the most that ran at once"
LATE_S = 2.0
"""An element is later than the first of its array if it became eligible by more than this later."""
_PENDING = r"^(?P<base>\d+)_\[.*%(?P<value>\d+)\]$"
_ELEMENTWISE = "aftercorr"
"""Kind of dependency for which the elements of an array wait each by itself."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """A arrays with E elements among the K records of jobs.

    Attributes
    ----------
    rows : (E,) int64
        Records that are elements.
    key : (E,) int64
        Array of each.
    throttle : (A,) int64
        Most elements that run at once; 0 if all of them may.
    free_s : (A,) float64
        When the first element became eligible, s: its begin time or the end of a hold.
    """

    rows: I8
    key: I8
    throttle: I8
    free_s: F8

    @property
    def is_throttled(self) -> Mask:
        """Mark the elements of arrays with a throttle, (E,)."""
        throttled: Mask = self.throttle[self.key] > 0
        return throttled


def find_arrays(chosen: Selection, eligible_s: F8, noticed: dict[str, int]) -> Arrays:
    """Find the arrays of the K head records; count those whose throttle is inferred.

    Parameters
    ----------
    eligible_s : (K,) float64
        When each became eligible, s; NaN if unknown.
    """
    log = chosen.head_log
    rows = np.flatnonzero(matches(log["JobID"], "_", r"^\d+_\d+$"))
    key = keys(log, rows, chosen.is_shared, chosen.first_run.submit_s)
    n = int(key.max(initial=-1)) + 1
    stated = _stated(chosen, rows, key, n)
    free_s = np.full(n, np.inf)
    np.fmin.at(free_s, key, np.where(np.isnan(eligible_s[rows]), np.inf, eligible_s[rows]))
    with np.errstate(invalid="ignore"):
        is_held = eligible_s[rows] > free_s[key] + LATE_S
    if "Dependency" in log:
        by_element = mask(pc.match_substring(take_rows(log["Dependency"], rows), _ELEMENTWISE))
        is_held &= ~by_element
    if "Reason" in log:
        reasons = pa.array(THROTTLE_REASONS)
        is_held |= mask(pc.is_in(take_rows(log["Reason"], rows), value_set=reasons))
    is_inferred = (np.bincount(key, is_held, minlength=n) > 0) & (stated == 0)
    first = np.where(is_inferred[key])[0]
    ran = _most_at_once(
        chosen.times.start_s[chosen.heads][rows[first]], chosen.finish_s[rows[first]], key[first], n
    )
    count_rule(noticed, INFERRED, is_inferred)
    throttle = np.where(is_inferred, ran, stated)
    throttle = np.where(throttle < np.bincount(key, minlength=n), throttle, 0)
    return Arrays(rows, key, throttle, free_s)


def array_columns(arrays: Arrays, log: Log, head: I8, is_array: Mask) -> dict[str, pa.Array | I8]:
    """Return the columns ``array`` and ``throttle`` of jobs that are elements; none without any.

    Parameters
    ----------
    log : dict
        The K head records.
    head : (J,) int64
        Record of each job.
    is_array : (J,) bool
        All elements of an array are this one job.
    """
    key = np.full(len(log["JobID"]), -1)
    key[arrays.rows] = arrays.key
    job_key = np.where(is_array, -1, key[head])
    used = np.unique(job_key[job_key >= 0])
    if not len(used):
        return {}
    first = np.full(len(arrays.throttle), 0)
    first[arrays.key[::-1]] = arrays.rows[::-1]
    names = base_ids(take_rows(log["JobID"], first[used])).to_pylist()
    seen: dict[str, int] = {}
    for i, name in enumerate(names):  # an id that was given again
        seen[name] = seen.get(name, 0) + 1
        names[i] = name if seen[name] == 1 else f"{name}#{seen[name]}"
    code = np.zeros(len(arrays.throttle) + 1, np.int32)
    code[used] = np.arange(1, len(used) + 1)
    column = pa.DictionaryArray.from_arrays(pa.array(code[job_key]), ["", *names])
    throttle = np.append(arrays.throttle, 0)[job_key]
    return {"array": column, "throttle": throttle}


def _stated(chosen: Selection, rows: I8, key: I8, n: int) -> I8:
    """Return the throttle of each array that the log states, (A,); 0 without one."""
    throttle = np.zeros(n, np.int64)
    log = chosen.head_log
    stated = np.nan_to_num(numbers(log, "Throttle"))[rows] if "Throttle" in log else None
    if stated is not None:
        np.maximum.at(throttle, key, stated.astype(np.int64))
    if not len(rows):
        return throttle
    waiting = pc.extract_regex(chosen.log["JobID"], _PENDING)
    pending = np.flatnonzero(mask(pc.is_valid(waiting)))
    if not len(pending):
        return throttle
    waiting = waiting.take(pa.array(pending))
    heads = take_rows(log["JobID"], rows)
    both = {"JobID": pa.concat_arrays([_plain(base_ids(heads)), pc.struct_field(waiting, "base")])}
    if "Cluster" in log:
        both["Cluster"] = pa.concat_arrays(
            [
                _plain(take_rows(log["Cluster"], rows)),
                _plain(take_rows(chosen.log["Cluster"], pending)),
            ]
        )
    code = codes(both, "JobID", "Cluster")
    number = np.zeros(int(code.max(initial=0)) + 1, np.int64)
    number[code[len(rows) :]] = pc.struct_field(waiting, "value").cast(pa.int64()).to_numpy()
    pending_throttle = number[code[: len(rows)]]
    np.maximum.at(throttle, key, np.where(throttle[key] > 0, 0, pending_throttle))
    return throttle


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _most_at_once(start_s: F8, finish_s: F8, key: I8, n: int) -> I8:
    """Return the most elements of each array that ran at once; an end makes room at once."""
    both = np.concatenate((key, key))
    change = np.repeat([-1, 1], len(key))
    order = np.lexsort((np.concatenate((finish_s, start_s)), both))  # stable: ends first
    # what runs of an array begins and ends at 0, so one sum goes through all of them
    running = np.cumsum(change[order])
    peak = np.ones(n, np.int64)
    np.maximum.at(peak, both[order], running)
    return peak


def matches(ids: pa.Array, sign: str, form: str) -> Mask:
    """Mark the ids of a form that has a sign which few ids have."""
    has_sign = mask(pc.match_substring(ids, sign))
    rows = np.flatnonzero(has_sign)
    has_sign[rows] = mask(pc.match_substring_regex(take_rows(ids, rows), form))
    return has_sign


def keys(log: Log, rows: I8, is_shared: Mask, submit_s: F8) -> I8:
    """Return a number for each array, or heterogeneous job, of some records.

    Where an id was given again, submissions tell the jobs apart.
    """
    names = ("Cluster", "User")
    part = {name: take_rows(log[name], rows) for name in ("JobID", *names) if name in log}
    part["JobID"] = base_ids(part["JobID"])
    key = codes(part, "JobID", *names)
    if not is_shared[rows].any():
        return key
    has_shared = np.bincount(key, is_shared[rows]) > 0
    return number_rows(key, np.where(has_shared[key], submit_s[rows], 0.0))[0]


def base_ids(ids: pa.Array) -> pa.Array:
    """Return ids without element or part: ``17`` of ``17_3`` and ``17+1``."""
    return pc.replace_substring_regex(ids, r"[_+].*", "")
