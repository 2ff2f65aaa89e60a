"""Lives of instances: when each was submitted, started and ended, from its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.distinct import number_by_appearance
from sim.base.reading import count_rule
from sim.traces.google2019.events import Events

SUBMIT, QUEUE, ENABLE, SCHEDULE = range(4)
ENDS = (4, 5, 6, 7, 8)
"""EVICT, FAIL, FINISH, KILL and LOST."""
FROM_BEFORE = "instances that ran when the trace began: run time from then"
WAITED_BEFORE = "instances submitted before the trace began: waits from then"
_NEVER_US = 2.0**62
"""Times from which on an event is after the end of the trace."""


@dataclass(frozen=True, eq=False)
class Lives:
    """A row for each instance; NaN where unknown.

    Times are µs since the trace began. The end is known of those of a single run.
    """

    collection: pa.Array
    index: pa.Array
    kind: F8
    submit_us: F8
    start_us: F8
    end_us: F8
    run_s: F8
    cpus: F8
    memory: F8
    priority: F8


def lives_of(events: Events, noticed: dict[str, int]) -> Lives:
    """Join the events of each instance."""
    ids = events.texts["collection_id"], events.texts["instance_index"]
    number, first = number_by_appearance(pc.binary_join_element_wise(*ids, "/"))
    code = number.astype(np.int64)
    n, numbers = len(first), events.numbers
    time_us, kind = numbers["time"], numbers["type"]
    time_us = np.where(time_us >= _NEVER_US, np.nan, time_us)
    submit_us = _first(code, time_us, np.isin(kind, (SUBMIT, QUEUE, ENABLE)), n)
    runs = _runs(code, time_us, kind, n)
    first_us = _first(code, time_us, kind == SCHEDULE, n)
    start_us = np.where(runs.n > 0, runs.start_us, first_us)
    count_rule(noticed, FROM_BEFORE, start_us == 0)
    count_rule(noticed, WAITED_BEFORE, (submit_us == 0) & (start_us > 0))
    count_rule(noticed, "instances of several runs: run times added", runs.n > 1)
    count_rule(noticed, "runs without an end: until the next submission", runs.is_implied)
    no_submission = np.isnan(submit_us) & ~np.isnan(start_us)
    count_rule(noticed, "instances without a submission: when they started", no_submission)
    submit_us = np.where(no_submission, start_us, submit_us)
    is_known = (runs.n > 0) & ~runs.goes_on
    return Lives(
        collection=ids[0].take(pa.array(first)),
        index=ids[1].take(pa.array(first)),
        kind=_last(code, time_us, numbers["collection_type"], n),
        submit_us=submit_us,
        start_us=start_us,
        end_us=np.where(is_known & (runs.n == 1), runs.end_us, np.nan),
        run_s=np.where(is_known & (runs.n > 1), runs.run_us / 1e6, np.nan),
        cpus=_last(code, time_us, numbers["resource_request.cpus"], n),
        memory=_last(code, time_us, numbers["resource_request.memory"], n),
        priority=_last(code, time_us, numbers["priority"], n),
    )


def _first(code: I8, time_us: F8, rows: Mask, n: int) -> F8:
    """Return the first time of some events of each instance."""
    first = np.full(n, np.nan)
    np.fmin.at(first, code[rows], time_us[rows])
    return first


def _last(code: I8, time_us: F8, values: F8, n: int) -> F8:
    """Return the last known value of each instance."""
    rows = np.flatnonzero(~np.isnan(values))
    rows = rows[np.lexsort((np.nan_to_num(time_us[rows], nan=np.inf), code[rows]))]
    is_last = np.ones(len(rows), dtype=bool)
    is_last[:-1] = code[rows][1:] != code[rows][:-1]
    rows = rows[is_last]
    last = np.full(n, np.nan)
    last[code[rows]] = values[rows]
    return last


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs of each instance: first start, last end, time in all, their number.

    `goes_on` marks instances that run, or wait to run again, at last; `is_implied` the runs, in any
    order, that end with a submission.
    """

    start_us: F8
    end_us: F8
    run_us: F8
    n: I8
    goes_on: Mask
    is_implied: Mask


def _runs(code: I8, time_us: F8, kind: F8, n: int) -> _Runs:
    """Return the runs: from SCHEDULE to the next end, or submission. Other ends are none."""
    is_start, is_submit = kind == SCHEDULE, kind == SUBMIT
    rows = np.flatnonzero((is_start | is_submit | np.isin(kind, ENDS)) & ~np.isnan(time_us))
    # of one time, an instance ends before it starts anew
    rows = rows[np.lexsort((is_submit[rows], is_start[rows], time_us[rows], code[rows]))]
    own, now_us, starts = code[rows], time_us[rows], is_start[rows]
    follows = own[1:] == own[:-1]
    is_run = np.zeros(len(rows), dtype=bool)
    is_run[1:] = follows & starts[:-1] & ~starts[1:]
    spans = np.diff(now_us, prepend=0.0)
    is_last = np.ones(len(rows), dtype=bool)
    is_last[:-1] = ~follows
    n_runs = np.bincount(own[is_run], minlength=n).astype(np.int64)
    again = is_submit[rows] & (n_runs[own] > 0)
    start_us, end_us = np.full(n, np.nan), np.full(n, np.nan)
    np.fmin.at(start_us, own[is_run], (now_us - spans)[is_run])
    np.fmax.at(end_us, own[is_run], now_us[is_run])
    return _Runs(
        start_us=start_us,
        end_us=end_us,
        run_us=np.bincount(own[is_run], spans[is_run], n).astype(np.float64),
        n=n_runs,
        goes_on=np.bincount(own[is_last & (starts | again)], minlength=n) > 0,
        is_implied=is_run & is_submit[rows],
    )
