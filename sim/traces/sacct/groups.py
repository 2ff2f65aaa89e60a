"""Jobs of several records: arrays, whose elements start one by one, and heterogeneous jobs.

The parts of a heterogeneous job start together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import I8, Mask
from sim.base.reading import count_rule
from sim.traces.sacct.arrays import Arrays, base_ids, keys, matches
from sim.traces.sacct.columns import Log, codes, number_rows, take_rows
from sim.traces.sacct.options import Options
from sim.traces.sacct.selection import Selection

PART = "part of a heterogeneous job: a separate job"
JOINED = "part of a heterogeneous job: a stage of it"
PARALLEL = "parallel element of an array: a separate job"
ELEMENT = "element of an array: a separate job, as the log has parallel jobs"
BY_NODE = "element of an array: a separate job, as tasks are nodes"
THROTTLED = "element of an array with a limit on running ones (%): a separate job"


@dataclass(frozen=True, eq=False)
class Groups:
    """Jobs of N records, in the order of their first records.

    Attributes
    ----------
    job : (N,) int64
        Job of each record.
    first : (J,) int64
        First record of each job.
    names : pyarrow.Array
        Id of each job; may repeat.
    is_array : (N,) bool
        Element of an array that is one job: its tasks do not start together.
    """

    job: I8
    first: I8
    names: pa.Array
    is_array: Mask


def group(chosen: Selection, arrays: Arrays, options: Options, noticed: dict[str, int]) -> Groups:
    """Group the K head records into jobs, by their ids; count by rule those that stay apart.

    ``arrays="auto"`` makes a job of each element if the log has parallel jobs or tasks are nodes,
    as policies that reserve room take jobs whose tasks start together; and if few elements might
    run at once, as such a throttle counts jobs. Parts of a heterogeneous job in several partitions
    stay apart where tasks are nodes, as all tasks of a job are in one, and may demand different
    amounts.
    """
    log, is_shared = chosen.head_log, chosen.is_shared
    submit_s, start_s = chosen.first_run.submit_s, chosen.first_run.start_s
    resources = chosen.resources.take(chosen.heads)
    ids = log["JobID"]
    leader = np.arange(len(ids))
    apart = options.arrays == "jobs"
    rows, key = (arrays.rows[:0], arrays.key[:0]) if apart else (arrays.rows, arrays.key)
    is_element = np.zeros(len(ids), dtype=bool)
    is_element[arrays.rows] = True
    has_parallel = bool(((resources.cpus > 1) & ~is_element).any())
    is_element[arrays.rows] = not apart
    is_parallel = (resources.cpus if options.tasks == "cpus" else resources.nodes) > 1
    has_parallel |= bool(is_parallel.any())
    is_separate = (np.bincount(key, is_parallel[rows]) > 0)[key]
    count_rule(noticed, PARALLEL, is_separate & is_parallel[rows])
    if options.arrays == "auto":
        by_node = (options.tasks == "nodes") & (np.bincount(key) > 1)[key]
        is_apart = (has_parallel | by_node) & options.gang & ~is_separate
        count_rule(noticed, BY_NODE, is_apart & (not has_parallel))
        count_rule(noticed, ELEMENT, is_apart & has_parallel)
        is_separate |= is_apart
        count_rule(noticed, THROTTLED, ~is_separate & arrays.is_throttled)
        is_separate |= arrays.is_throttled
    is_element[rows[is_separate]] = False
    leader[rows] = np.where(is_separate, rows, _leaders(rows, key))

    parts = np.flatnonzero(matches(ids, "+", r"^\d+\+\d+$"))
    key, _ = number_rows(keys(log, parts, is_shared, submit_s), start_s[parts])
    is_joined = ((np.bincount(key) > 1) & _in_one_partition(key, log, parts, options))[key]
    leader[parts] = np.where(is_joined, _leaders(parts, key), parts)
    count_rule(noticed, JOINED, is_joined)
    count_rule(noticed, PART, ~is_joined)
    is_first = leader == np.arange(len(leader))
    first = np.flatnonzero(is_first)
    has_base = is_element.copy()
    has_base[parts[is_joined]] = True
    return Groups(
        (np.cumsum(is_first) - 1)[leader], first, _names(ids, first, has_base), is_element
    )


def _leaders(rows: I8, key: I8) -> I8:
    first = np.unique(key, return_index=True)[1]
    return rows[first][key] if len(rows) else rows


def _in_one_partition(key: I8, log: Log, parts: I8, options: Options) -> Mask:
    """Mark the heterogeneous jobs all of whose tasks may be in one partition."""
    n = int(key.max(initial=-1)) + 1
    if options.tasks == "cpus":
        return np.ones(n, dtype=bool)
    partition, first = codes(log, "Partition")[parts], np.full(n, np.iinfo(np.int64).max)
    np.minimum.at(first, key, partition)
    is_one: Mask = np.bincount(key, partition != first[key], n) == 0
    return is_one


def _names(ids: pa.Array, first: I8, has_base: Mask) -> pa.Array:
    heads = take_rows(ids, first)
    if not has_base[first].any():
        return heads
    return pc.if_else(pa.array(has_base[first]), base_ids(heads), heads)
