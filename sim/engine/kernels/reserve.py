"""Reservations: room that is kept for the first jobs in order, by their expected run times.

For rigid jobs on a pool of slots (`sim.engine.layout.rigid`). The plan is an availability profile:
a list of steps (start, free slots). The first step is now, as it is. The second is now as well, and
without the jobs that should have ended: one that runs longer than expected may end at any moment.
So a job begins now only if it does so in the first step. Each job in order takes the earliest steps
between which it fits: at each instant that costs waiting jobs × jobs in the profile, at most.

If starts lag behind placements, room is held from the placement on, and planned so: the lag that a
job will draw counts as a part of its expected run.

Only times of events need a dispatch: a reservation starts at the expected end of some job, or now.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.gang import admit_gang, is_waiting_gang
from sim.engine.kernels.launch import next_lag
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.resources import clear_dirty
from sim.engine.kernels.scanlist import end_scan
from sim.engine.kernels.state import (
    LAUNCH,
    N_PROFILE,
    N_RUNNING_JOBS,
    N_SCAN,
    NOW,
    RELEASED,
    RESERVATIONS,
)

ALL_JOBS = 2**31 - 1


@inlined
def dispatch_reserved(st):
    """Start all jobs that may start now without delaying those for which room is reserved."""
    reserves_all = st.state_i[RESERVATIONS] == ALL_JOBS
    if st.state_i[N_SCAN] > 0 and (reserves_all or st.state_mach_free[0, 0] > 0):
        _build_profile(st)
        n = _list_waiting(st)
        if reserves_all and not _restore_reservations(st, n):
            _build_profile(st)
        i = _reserve(st, n, reserves_all)
        _backfill(st, i, n)
        for i in range(n):
            st.state_job_position[st.state_waiting_jobs[i]] = 0
    end_scan(st)
    st.state_i[RELEASED] = 0
    clear_dirty(st)


@part
def _build_profile(st):
    """Build the availability profile of the running jobs."""
    running, n = st.state_running_jobs, 0
    for i in range(st.state_i[N_RUNNING_JOBS]):
        j = running[i]
        if st.state_job_left[j] == 0:
            continue
        end, k = _expected_end(st, j), n
        while k > 0 and _expected_end(st, running[k - 1]) > end:
            running[k] = running[k - 1]
            k -= 1
        running[k] = j
        n += 1
    st.state_i[N_RUNNING_JOBS] = n
    now, free = st.state_f[NOW], st.state_mach_free[0, 0]
    last = 1
    st.state_profile_time[0] = st.state_profile_time[1] = now
    st.state_profile_free[0] = st.state_profile_free[1] = free
    for i in range(n):
        end = max(_expected_end(st, running[i]), now)
        free += _width(st, running[i])
        if end > st.state_profile_time[last]:
            last += 1
            st.state_profile_time[last] = end
        st.state_profile_free[last] = free
    st.state_i[N_PROFILE] = last + 1


@inlined
def _list_waiting(st):
    """List the waiting jobs in their order; return their number."""
    n = 0
    for position in range(st.state_i[N_SCAN]):
        g = st.state_scan[position]
        if g < 0:
            continue
        j = st.w_stage_job[g]
        is_running = GANGS and st.w_job_min_tasks[j] > 0 and not is_waiting_gang(st, j)
        if st.state_job_position[j] == 0 and not is_running:
            st.state_waiting_jobs[n] = j
            n += 1
            st.state_job_position[j] = n
    return n


@inlined
def _restore_reservations(st, n):
    """Put stored reservations into the profile; if one does not fit any more, drop them all."""
    for i in range(n):
        j = st.state_waiting_jobs[i]
        start = st.state_job_reserved[j]
        if math.isnan(start):
            continue
        first = _profile_step(st, start)
        if start < st.state_f[NOW] or _first_conflict(st, first, j) >= 0:
            for k in range(n):
                st.state_job_reserved[st.state_waiting_jobs[k]] = math.nan
            return False
        _occupy(st, first, j, 1)
    return True


@inlined
def _reserve(st, n, reserves_all):
    """Start the jobs or reserve their room, in order; return the position of the first left out."""
    now, left = st.state_f[NOW], st.state_i[RESERVATIONS]
    i = 0
    while i < n and left > 0:
        j = st.state_waiting_jobs[i]
        i += 1
        start = st.state_job_reserved[j]
        if start > now and not st.state_i[RELEASED]:
            continue
        if start >= now:
            _occupy(st, _profile_step(st, start), j, -1)
        first = _first_start(st, j)
        start = st.state_profile_time[first]
        _occupy(st, first, j, 1)
        if first == 0:
            _start(st, j)
            continue
        left -= 1
        if reserves_all:
            st.state_job_reserved[j] = start
    return i


@inlined
def _backfill(st, i, n):
    """Start jobs from position `i` on that fit now, by their ``fill_key``."""
    order, m = st.state_waiting_jobs, i
    for k in range(i, n):
        j = order[k]
        if _width(st, j) > st.state_profile_free[0]:
            st.state_job_position[j] = 0
        else:
            order[m] = j
            m += 1
    for k in range((m - i) // 2 - 1, -1, -1):
        _sink(st, i, m, k)
    left = m
    while left > i and st.state_profile_free[0] > 0:
        j = order[i]
        left -= 1
        order[i] = order[left]
        order[left] = j
        _sink(st, i, left, 0)
        if _first_conflict(st, 0, j) < 0:
            _occupy(st, 0, j, 1)
            _start(st, j)


@part
def _sink(st, base, end, k):
    """Let the `k`-th of the heap in [base, end) of the list sink to its position."""
    order = st.state_waiting_jobs
    while True:
        child = 2 * k + 1
        if base + child >= end:
            return
        if base + child + 1 < end and _first(st, order[base + child + 1], order[base + child]):
            child += 1
        if not _first(st, order[base + child], order[base + k]):
            return
        j = order[base + k]
        order[base + k] = order[base + child]
        order[base + child] = j
        k = child


@part
def _first(st, a, b):
    key_a, key_b = st.p_job_fill_key[a], st.p_job_fill_key[b]
    return key_a < key_b or (key_a == key_b and st.state_job_position[a] < st.state_job_position[b])


@part
def _start(st, j):
    """Start the tasks of job `j`, which fits, and list it among the running jobs."""
    st.state_job_reserved[j] = math.nan
    if GANGS and is_waiting_gang(st, j):
        admit_gang(st, j)
    else:
        start_task(st, st.state_job_ready_head[j], 0, False)
    k = st.state_i[N_RUNNING_JOBS]
    st.state_i[N_RUNNING_JOBS] = k + 1
    end = _expected_end(st, j)
    while k > 0 and _expected_end(st, st.state_running_jobs[k - 1]) > end:
        st.state_running_jobs[k] = st.state_running_jobs[k - 1]
        k -= 1
    st.state_running_jobs[k] = j


@part
def _width(st, j):
    first, end = st.w_job_stage0[j], st.w_job_stage0[j + 1]
    return st.w_stage_task0[end] - st.w_stage_task0[first]


@part
def _expected_end(st, j):
    return st.out_job_start[j] + st.p_job_expected_s[j]


@part
def _planned_end(st, placed, j):
    """Return the expected end of waiting job `j`, if it is placed at that time."""
    start = placed
    if st.state_i[LAUNCH]:
        start += next_lag(st, st.w_stage_task0[st.w_job_stage0[j]])
    return start + st.p_job_expected_s[j]


@part
def _first_start(st, j):
    """Return the first step from which on job `j` fits until its expected end."""
    first = 0
    while True:
        position = _first_conflict(st, first, j)
        if position < 0:
            return first
        first = position + 1


@part
def _first_conflict(st, first, j):
    """Return the first step at which job `j` does not fit if it begins at `first`, -1 for none."""
    width = _width(st, j)
    end = _planned_end(st, st.state_profile_time[first], j)
    k = first
    while k < st.state_i[N_PROFILE] and (k == first or st.state_profile_time[k] < end):
        if st.state_profile_free[k] < width:
            return k
        k += 1
    return -1


@part
def _occupy(st, first, j, sign):
    """Take the room of job `j` from step `first` on to its expected end; -1 releases it."""
    width = sign * _width(st, j)
    end = _profile_step(st, _planned_end(st, st.state_profile_time[first], j))
    for k in range(first, max(end, 1)):
        st.state_profile_free[k] -= width


@part
def _profile_step(st, time):
    """Return the step that begins at `time`; insert it if there is none."""
    n = st.state_i[N_PROFILE]
    if time <= st.state_f[NOW]:
        return 0
    low, high = 2, n
    while low < high:
        mid = (low + high) >> 1
        if st.state_profile_time[mid] < time:
            low = mid + 1
        else:
            high = mid
    if low == n or st.state_profile_time[low] > time:
        for k in range(n, low, -1):
            st.state_profile_time[k] = st.state_profile_time[k - 1]
            st.state_profile_free[k] = st.state_profile_free[k - 1]
        st.state_profile_time[low] = time
        st.state_profile_free[low] = st.state_profile_free[low - 1]
        st.state_i[N_PROFILE] = n + 1
    return low
