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

SUBMIT, SCHEDULE = 0, 3
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
    submit_us, n_submits = _first(code, time_us, kind == SUBMIT, n)
    start_us, n_starts = _first(code, time_us, kind == SCHEDULE, n)
    run_us, end_us, n_runs, runs_on = _runs(code, time_us, kind, n)
    count_rule(noticed, FROM_BEFORE, start_us == 0)
    count_rule(noticed, WAITED_BEFORE, (submit_us == 0) & (start_us > 0))
    count_rule(noticed, "instances of several runs: run times added", n_runs > 1)
    count_rule(noticed, "instances without a submission", (n_submits == 0) & (n_starts > 0))
    submit_us = np.where(np.isnan(submit_us), start_us, submit_us)
    is_known = (n_runs > 0) & ~runs_on
    return Lives(
        collection=ids[0].take(pa.array(first)),
        index=ids[1].take(pa.array(first)),
        kind=_last(code, time_us, numbers["collection_type"], n),
        submit_us=submit_us,
        start_us=start_us,
        end_us=np.where(is_known & (n_runs == 1), end_us, np.nan),
        run_s=np.where(is_known & (n_runs > 1), run_us / 1e6, np.nan),
        cpus=_last(code, time_us, numbers["resource_request.cpus"], n),
        memory=_last(code, time_us, numbers["resource_request.memory"], n),
        priority=_last(code, time_us, numbers["priority"], n),
    )


def _first(code: I8, time_us: F8, rows: Mask, n: int) -> tuple[F8, I8]:
    """Return the first time of some events of each instance, and how many there are."""
    first = np.full(n, np.nan)
    np.fmin.at(first, code[rows], time_us[rows])
    return first, np.bincount(code[rows], minlength=n)


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


def _runs(code: I8, time_us: F8, kind: F8, n: int) -> tuple[F8, F8, I8, Mask]:
    """Return the time in all runs of each instance, µs, the last end, their number; who runs on.

    A run begins with SCHEDULE and ends with the next end; an end without a begin is none.
    """
    is_start, is_end = kind == SCHEDULE, np.isin(kind, ENDS)
    rows = np.flatnonzero((is_start | is_end) & ~np.isnan(time_us))
    # at one time an instance ends before it starts anew
    rows = rows[np.lexsort((rows, is_start[rows], time_us[rows], code[rows]))]
    own, at_us, starts = code[rows], time_us[rows], is_start[rows]
    follows = own[1:] == own[:-1]
    is_run = np.zeros(len(rows), dtype=bool)
    is_run[1:] = follows & starts[:-1] & ~starts[1:]
    spans = np.diff(at_us, prepend=0.0)
    is_last = np.ones(len(rows), dtype=bool)
    is_last[:-1] = ~follows
    run_us = np.bincount(own[is_run], spans[is_run], n).astype(np.float64)
    end_us = np.full(n, np.nan)
    np.fmax.at(end_us, own[is_run], at_us[is_run])
    runs_on = np.bincount(own[is_last & starts], minlength=n) > 0
    n_runs = np.bincount(own[is_run], minlength=n).astype(np.int64)
    return run_us, end_us, n_runs, runs_on
