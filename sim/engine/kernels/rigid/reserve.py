"""Reservations: room that is kept for the first jobs in order, by their expected run times.

For rigid jobs (`sim.engine.layout.rigid`). On machines and in hard shares the plan is a list of
claims (`sim.engine.kernels.rigid.places`). On a pool of slots it is an availability profile:
a list of steps (start, free slots). The first step is now, as it is. The second is now as well, and
without the jobs that should have ended: one that runs longer than expected may end at any moment.
So a job begins now only if it does so in the first step. Each job in order takes the earliest steps
between which it fits: at each instant that costs waiting jobs × jobs in the profile, at most.

Reserved room is taken from its begin on, even if the job is expected to take no time: nothing that
runs at that instant may need it. So it ends at the next float64 after its begin at the earliest.
Where a job begins now as it is, one that is expected to take no time has only the first step.

If starts lag behind placements, room is held from the placement on, and planned so: the lag that a
job will draw counts as a part of its expected run.

Only times of events need a dispatch: a reservation starts at the expected end of some job, or now.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.caps import WITHIN
from sim.engine.kernels.features import CAPS, GANGS, PLACES, WINDOWS
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import over_to_start, waits_for_cap
from sim.engine.kernels.resources import clear_dirty
from sim.engine.kernels.rigid.gang import admit_gang
from sim.engine.kernels.rigid.place_room import AS_IT_IS
from sim.engine.kernels.rigid.places import (
    claim_earliest,
    claim_now,
    claim_pinned,
    claim_running,
    count_free,
    drop_claim,
    keep_claim,
    may_start,
    start_claim,
)
from sim.engine.kernels.rigid.rigid import (
    begin_now,
    claimed_until,
    expected_end,
    is_holding,
    list_waiting,
    planned_end,
    sink,
    width,
)
from sim.engine.kernels.state import (
    BY_PLACE,
    ISOLATED,
    N_PROFILE,
    N_RUNNING_JOBS,
    N_SCAN,
    NOW,
    RELEASED,
    RESERVATIONS,
)
from sim.engine.kernels.windows import is_closed

ALL_JOBS = 2**31 - 1


@inlined
def dispatch_reserved(st):
    """Start all jobs that may start now without delaying those for which room is reserved."""
    reserves_all = st.state_i[RESERVATIONS] == ALL_JOBS
    n = 0
    is_there = (PLACES and st.state_i[BY_PLACE]) or not st.state_mach_lost[0]
    if is_there and st.state_i[N_SCAN] > 0 and (_has_room(st) or reserves_all):
        n = list_waiting(st)
    if n > 0 and (reserves_all or _may_start_any(st, n)):
        _build_profile(st)
        if reserves_all and not _restore_reservations(st, n):
            _build_profile(st)
        _backfill(st, _reserve(st, n, reserves_all), n)
    for i in range(n):
        st.state_job_position[st.state_waiting_jobs[i]] = 0
    st.state_i[RELEASED] = 0
    clear_dirty(st)


@inlined
def _has_room(st):
    if PLACES and st.state_i[BY_PLACE]:
        count_free(st)
        return True
    return st.state_mach_free[0, 0] > 0


@inlined
def _may_start_any(st, n):
    i = 0
    if PLACES and st.state_i[BY_PLACE]:
        while i < n and not may_start(st, st.state_waiting_jobs[i]):
            i += 1
    return i < n


@part
def _build_profile(st):
    """Build the availability profile of the running jobs, or list their claims."""
    running, n = st.state_running_jobs, 0
    for i in range(st.state_i[N_RUNNING_JOBS]):
        j = running[i]
        if not is_holding(st, j):
            continue
        end, k = expected_end(st, j), n
        while k > 0 and expected_end(st, running[k - 1]) > end:
            running[k] = running[k - 1]
            k -= 1
        running[k] = j
        n += 1
    st.state_i[N_RUNNING_JOBS] = n
    if PLACES and st.state_i[BY_PLACE]:
        claim_running(st, n)
        return
    now, free = st.state_f[NOW], st.state_mach_free[0, 0]
    last = 1
    st.state_profile_time[0] = st.state_profile_time[1] = now
    st.state_profile_free[0] = st.state_profile_free[1] = free
    for i in range(n):
        end = max(expected_end(st, running[i]), now)
        free += width(st, running[i])
        if end > st.state_profile_time[last]:
            last += 1
            st.state_profile_time[last] = end
        st.state_profile_free[last] = free
    st.state_i[N_PROFILE] = last + 1


@inlined
def _restore_reservations(st, n):
    """Put stored reservations into the profile; if one does not fit any more, drop them all."""
    for i in range(n):
        j = st.state_waiting_jobs[i]
        start = st.state_job_reserved[j]
        if math.isnan(start):
            continue
        if start < st.state_f[NOW] or not _restore(st, j, start):
            for k in range(n):
                st.state_job_reserved[st.state_waiting_jobs[k]] = math.nan
            return False
    return True


@inlined
def _restore(st, j, start):
    """Reserve room for job `j` from `start` on, as before; False if that does not fit."""
    if PLACES and st.state_i[BY_PLACE]:
        return keep_claim(st, j, AS_IT_IS if start == st.state_f[NOW] else start)
    first = _profile_step(st, start)
    if _first_conflict(st, first, j) >= 0:
        return False
    _occupy(st, first, j, 1)
    return True


@inlined
def _reserve(st, n, reserves_all):
    """Start the jobs or reserve their room, in order; return how many are served or left behind.

    Those left out come last. In queues of their own each has its number of reservations.
    """
    now, left = st.state_f[NOW], st.state_i[RESERVATIONS]
    i = n_left_out = 0
    if CAPS:
        st.state_queue_blocked[:] = 0
    while i < n and left > 0:
        j = st.state_waiting_jobs[i]
        i += 1
        if PLACES and st.state_i[BY_PLACE]:
            if st.state_queue_reserved[_counted_in(st, j)] == left:
                st.state_waiting_jobs[n_left_out] = j
                n_left_out += 1
                continue
            st.state_job_position[j] = 0
        start = st.state_job_reserved[j]
        if CAPS and waits_for_cap(st, j):
            if start >= now:
                _give_back(st, j, start)
            st.state_job_reserved[j] = math.nan
            continue
        if start > now and not st.state_i[RELEASED]:
            continue
        if start >= now:
            _give_back(st, j, start)
        start = _reserve_earliest(st, j)
        if start == AS_IT_IS:
            _start(st, j)
            continue
        if start == math.inf:
            st.state_job_reserved[j] = math.nan
            continue
        if WINDOWS and st.w_job_reservation[j] >= 0:
            pass  # nobody else may have its room
        elif PLACES and st.state_i[BY_PLACE]:
            st.state_queue_reserved[_counted_in(st, j)] += 1
        else:
            left -= 1
        if reserves_all:
            st.state_job_reserved[j] = start
    if PLACES and st.state_i[BY_PLACE]:
        for k in range(n_left_out - 1, -1, -1):
            st.state_waiting_jobs[n - n_left_out + k] = st.state_waiting_jobs[k]
        return n - n_left_out
    return i


@part
def _counted_in(st, j):
    """Return the queue whose reservations that of job `j` is one of: its own if it has a share."""
    return st.w_job_org[j] if st.state_i[ISOLATED] else 0


@inlined
def _give_back(st, j, start):
    if PLACES and st.state_i[BY_PLACE]:
        drop_claim(st, j)
    else:
        _occupy(st, _profile_step(st, start), j, -1)


@inlined
def _reserve_earliest(st, j):
    """Reserve the earliest room that is left for job `j`; return its start, AS_IT_IS for now."""
    if PLACES and st.state_i[BY_PLACE]:
        return claim_earliest(st, j)
    first = _first_start(st, j)
    _occupy(st, first, j, 1)
    return AS_IT_IS if first == 0 else st.state_profile_time[first]


@inlined
def _backfill(st, i, n):
    """Start jobs from position `i` on that fit now, by their ``fill_key``."""
    order, m = st.state_waiting_jobs, i
    for k in range(i, n):
        j = order[k]
        if _may_start(st, j):
            order[m] = j
            m += 1
        else:
            st.state_job_position[j] = 0
    for k in range((m - i) // 2 - 1, -1, -1):
        sink(st, i, m, k)
    left = m
    while left > i and _is_room_left(st):
        j = order[i]
        left -= 1
        order[i] = order[left]
        order[left] = j
        sink(st, i, left, 0)
        if CAPS and over_to_start(st, st.state_job_ready_head[j]) != WITHIN:
            continue
        if _reserve_now(st, j):
            _start(st, j)


@inlined
def _may_start(st, j):
    if PLACES and st.state_i[BY_PLACE]:
        return may_start(st, j)
    return width(st, j) <= st.state_profile_free[0]


@inlined
def _is_room_left(st):
    if PLACES and st.state_i[BY_PLACE]:
        return True
    return st.state_profile_free[0] > 0


@inlined
def _reserve_now(st, j):
    if PLACES and st.state_i[BY_PLACE]:
        return claim_now(st, j)
    if _first_conflict(st, 0, j) >= 0:
        return False
    _occupy(st, 0, j, 1)
    return True


@part
def is_closed_to_start(st, j, machine):
    """Tell whether a window closes `machine` to job `j`, if it starts now."""
    now = st.state_f[NOW]
    return is_closed(st, j, machine, now, max(planned_end(st, now, j), now))


@part
def start_first(st, j):
    """Start job `j` now, whatever is reserved for others; False if it does not fit."""
    if PLACES and st.state_i[BY_PLACE]:
        count_free(st)
    _build_profile(st)
    fits = _reserve_now(st, j)
    if fits:
        _start(st, j)
    return fits


@part
def _start(st, j):
    """Start the tasks of job `j`, which fits, and list it among the running jobs."""
    st.state_job_reserved[j] = math.nan
    begin_now(st, j)
    if PLACES and st.state_i[BY_PLACE]:
        start_claim(st, j)
    elif GANGS and is_waiting_gang(st, j):
        admit_gang(st, j)
    else:
        start_task(st, st.state_job_ready_head[j], 0, False, 1)
    _list_running(st, j)


@part
def begin_running(st, j):
    """Note that pinned job `j` begins to run now, whatever was reserved for it."""
    st.state_job_reserved[j] = math.nan
    begin_now(st, j)
    if PLACES and st.state_i[BY_PLACE]:
        claim_pinned(st, j)
    running, n = st.state_running_jobs, 0
    for i in range(st.state_i[N_RUNNING_JOBS]):
        running[n] = running[i]
        n += running[i] != j  # it was stopped, and is listed still
    st.state_i[N_RUNNING_JOBS] = n
    _list_running(st, j)


@inlined
def _list_running(st, j):
    """List job `j`, which has just begun, among the running jobs by expected end."""
    k = st.state_i[N_RUNNING_JOBS]
    st.state_i[N_RUNNING_JOBS] = k + 1
    end = expected_end(st, j)
    while k > 0 and expected_end(st, st.state_running_jobs[k - 1]) > end:
        st.state_running_jobs[k] = st.state_running_jobs[k - 1]
        k -= 1
    st.state_running_jobs[k] = j


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
    n_slots = width(st, j)
    end = planned_end(st, st.state_profile_time[first], j)
    k = first
    while k < st.state_i[N_PROFILE] and (k == first or st.state_profile_time[k] < end):
        if st.state_profile_free[k] < n_slots:
            return k
        k += 1
    return -1


@part
def _occupy(st, first, j, sign):
    """Take the room of job `j` from step `first` on to its expected end; -1 releases it."""
    n_slots = sign * width(st, j)
    begin = AS_IT_IS if first == 0 else st.state_profile_time[first]
    end = _profile_step(st, claimed_until(st, begin, j))
    for k in range(first, max(end, 1)):
        st.state_profile_free[k] -= n_slots


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
