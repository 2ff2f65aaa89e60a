"""Kernel of environments side by side: each acts, runs to its next instant, and is observed.

A step of an environment takes microseconds: a loop over all of them that returns to Python once
is what lets threads help, as each call from Python waits for the lock of all others.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import record
from sim.base.intrinsics import from_address
from sim.base.jit import JIT, jit
from sim.engine.kernels.run import FULL, NEEDS_POLICY, run
from sim.engine.kernels.state import N_EVENTS, NOW
from sim.env.kernels.observing import follow, free_shares, observe_jobs, set_keys

FIELDS = (
    ("w_rooms", "i8", 1),  # columns of free room that are resources
    ("w_total", "i8", 1),  # quanta of each
    ("state_jobs", "i4", 1),  # rows of the jobs in the system, by submission
    ("state_is_in", "i1", 1),
    ("state_constants", "f8", 2),
    ("state_numbers", "i8", 1),  # jobs in the system, and those that have ended
)
"""Arrays of `sim.env.observer.Observer`."""
Observed = namedtuple("Observed", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record.record("ObservedState", FIELDS, ("w_",)) if JIT else None


def _from_address(name: str) -> Any:
    """Return the function that makes a record of its address; without the JIT it is its own.

    `name` is that of the record's type in `sim.base.record`.
    """
    return from_address(getattr(record, name)(name)) if JIT else lambda record: record


state_at, observed_at = _from_address("KernelState"), _from_address("ObservedState")


def make(arrays: Iterable[NDArray[Any]]) -> Any:
    """Bind the arrays of `FIELDS` into the record that the kernel takes."""
    return _pack(arrays) if _pack else Observed(*arrays)


def listed(records: Sequence[Any]) -> Any:
    """Return records as the kernel takes them: their addresses."""
    return np.array([r.address for r in records]) if JIT else list(records)


@jit
def step_rows(rows, acts, states, observers, keys, out, changed):
    """Step the environments `rows`: set keys, run to the next instant with events, observe.

    `out` is filled: the loop's code, or -1 - i if key i is not from -1 to 1; jobs ended, jobs in
    the system, the time, features of jobs, free shares. Without `acts` the run goes on whose
    records were full.
    """
    codes, ended, n_jobs, time_s, shown, free = out
    for i in range(len(rows)):
        e = rows[i]
        st, ob = state_at(states[e]), observed_at(observers[e])
        n = -1
        if acts:
            jobs = ob.state_jobs[: min(ob.state_numbers[0], shown.shape[1])]
            n = set_keys(keys[e], jobs, st.p_job_key, changed)
            if n < 0:
                codes[e] = n
                continue
        codes[e] = run(st, changed, n)
        if codes[e] == FULL:
            continue
        if codes[e] == NEEDS_POLICY:
            time_s[e, 0] = st.state_f[NOW]
            n = st.state_i[N_EVENTS]
            events = (st.state_event_kind[:n], st.state_event_row[:n])
            follow(
                time_s[e, 0],
                events,
                ob.state_jobs,
                ob.state_is_in,
                ob.state_constants,
                ob.state_numbers,
            )
        n_jobs[e, 0], ended[e] = ob.state_numbers[0], ob.state_numbers[1]
        jobs = ob.state_jobs[: min(n_jobs[e, 0], shown.shape[1])]
        counts = (st.state_job_left, st.state_job_running, st.state_job_started)
        observe_jobs(
            time_s[e, 0], jobs, counts, st.state_job_done_work, ob.state_constants, shown[e]
        )
        free_shares(st.state_mach_free, ob.w_rooms, ob.w_total, free[e])
