"""Reservations: room that is kept for the first in order, by how long jobs are expected to run.

For rigid jobs on a pool of slots (`sim.engine.layout.rigid`). A plan is a list of steps: from when
on how many slots are free. The first step is now, as it is. The second is now as well, and without
the jobs that should have ended: one that runs longer than expected may end at any moment. So a job
begins now only if it does so in the first step. Each job in order takes the earliest steps between
which it fits: at each instant that costs jobs that wait × jobs there are, at most.

No time but those of events needs a look: where room is reserved, it is from when on some job should
have ended, or from now.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.gang import admit_gang, is_waiting_gang
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.resources import clear_dirty
from sim.engine.kernels.scanlist import scan_settled
from sim.engine.kernels.state import N_RUNS, N_SCAN, N_STEPS, NOW, RELEASED, RESERVATIONS

EVERY = 2**31 - 1


@inlined
def dispatch_reserved(st):
    """Start all that may start now without delaying those for which room is reserved."""
    every = st.state_i[RESERVATIONS] == EVERY
    if st.state_i[N_SCAN] > 0 and (every or st.state_mach_free[0, 0] > 0):
        _take_stock(st)
        n = _in_order(st)
        if every and not _keep(st, n):
            _take_stock(st)
        i = _reserve(st, n, every)
        _fill(st, i, n)
        for i in range(n):
            st.state_job_place[st.state_in_order[i]] = 0
    scan_settled(st)
    st.state_i[RELEASED] = 0
    clear_dirty(st)


@part
def _take_stock(st):
    """Lay out the steps of what runs."""
    runs, n = st.state_runs, 0
    for i in range(st.state_i[N_RUNS]):
        j = runs[i]
        if st.state_job_left[j] == 0:
            continue
        end, k = _expected_end(st, j), n
        while k > 0 and _expected_end(st, runs[k - 1]) > end:
            runs[k] = runs[k - 1]
            k -= 1
        runs[k] = j
        n += 1
    st.state_i[N_RUNS] = n
    now, free = st.state_f[NOW], st.state_mach_free[0, 0]
    last = 1
    st.state_step_time[0] = st.state_step_time[1] = now
    st.state_step_free[0] = st.state_step_free[1] = free
    for i in range(n):
        end = max(_expected_end(st, runs[i]), now)
        free += _width(st, runs[i])
        if end > st.state_step_time[last]:
            last += 1
            st.state_step_time[last] = end
        st.state_step_free[last] = free
    st.state_i[N_STEPS] = last + 1


@inlined
def _in_order(st):
    """List the jobs that wait in their order; return how many there are."""
    n = 0
    for at in range(st.state_i[N_SCAN]):
        g = st.state_scan[at]
        if g < 0:
            continue
        j = st.w_stage_job[g]
        runs = GANGS and st.w_job_min_tasks[j] > 0 and not is_waiting_gang(st, j)
        if st.state_job_place[j] == 0 and not runs:
            st.state_in_order[n] = j
            n += 1
            st.state_job_place[j] = n
    return n


@inlined
def _keep(st, n):
    """Give those that have a reservation the steps of it; if one can't have them, forget all."""
    for i in range(n):
        j = st.state_in_order[i]
        start = st.state_job_reserved[j]
        if math.isnan(start):
            continue
        first = _step_of(st, start)
        if start < st.state_f[NOW] or _end_of_fit(st, first, j) >= 0:
            for k in range(n):
                st.state_job_reserved[st.state_in_order[k]] = math.nan
            return False
        _occupy(st, first, j, 1)
    return True


@inlined
def _reserve(st, n, every):
    """Let the jobs start or reserve their room, in order; return where reservations ran out."""
    now, left = st.state_f[NOW], st.state_i[RESERVATIONS]
    i = 0
    while i < n and left > 0:
        j = st.state_in_order[i]
        i += 1
        start = st.state_job_reserved[j]
        if start > now and not st.state_i[RELEASED]:
            continue
        if start >= now:
            _occupy(st, _step_of(st, start), j, -1)
        first = _earliest(st, j)
        start = st.state_step_time[first]
        _occupy(st, first, j, 1)
        if first == 0:
            _start(st, j)
            continue
        left -= 1
        if every:
            st.state_job_reserved[j] = start
    return i


@inlined
def _fill(st, i, n):
    """Start those from place `i` on that fit now, by their ``fill_key``."""
    order, m = st.state_in_order, i
    for k in range(i, n):
        j = order[k]
        if _width(st, j) > st.state_step_free[0]:
            st.state_job_place[j] = 0
        else:
            order[m] = j
            m += 1
    for k in range((m - i) // 2 - 1, -1, -1):
        _sink(st, i, m, k)
    left = m
    while left > i and st.state_step_free[0] > 0:
        j = order[i]
        left -= 1
        order[i] = order[left]
        order[left] = j
        _sink(st, i, left, 0)
        if _end_of_fit(st, 0, j) < 0:
            _occupy(st, 0, j, 1)
            _start(st, j)


@part
def _sink(st, base, end, k):
    """Let the `k`-th of the heap in [base, end) of the list sink to its place."""
    order = st.state_in_order
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
    return key_a < key_b or (key_a == key_b and st.state_job_place[a] < st.state_job_place[b])


@part
def _start(st, j):
    """Start the tasks of job `j`, which fits."""
    st.state_job_reserved[j] = math.nan
    if GANGS and is_waiting_gang(st, j):
        admit_gang(st, j)
    else:
        start_task(st, st.state_job_ready[j], 0, False)
    k = st.state_i[N_RUNS]
    st.state_i[N_RUNS] = k + 1
    end = _expected_end(st, j)
    while k > 0 and _expected_end(st, st.state_runs[k - 1]) > end:
        st.state_runs[k] = st.state_runs[k - 1]
        k -= 1
    st.state_runs[k] = j


@part
def _width(st, j):
    first, end = st.w_job_stage0[j], st.w_job_stage0[j + 1]
    return st.w_stage_task0[end] - st.w_stage_task0[first]


@part
def _expected_end(st, j):
    return st.out_job_start[j] + st.p_job_expected_s[j]


@part
def _earliest(st, j):
    """Return the first step from which on job `j` fits until its expected end."""
    first = 0
    while True:
        at = _end_of_fit(st, first, j)
        if at < 0:
            return first
        first = at + 1


@part
def _end_of_fit(st, first, j):
    """Return the first step at which job `j` does not fit if it begins at `first`, -1 for none."""
    width = _width(st, j)
    end = st.state_step_time[first] + st.p_job_expected_s[j]
    k = first
    while k < st.state_i[N_STEPS] and (k == first or st.state_step_time[k] < end):
        if st.state_step_free[k] < width:
            return k
        k += 1
    return -1


@part
def _occupy(st, first, j, sign):
    """Take the room of job `j` from step `first` on until its expected end, or give it back."""
    width = sign * _width(st, j)
    end = _step_of(st, st.state_step_time[first] + st.p_job_expected_s[j])
    for k in range(first, max(end, 1)):
        st.state_step_free[k] -= width


@part
def _step_of(st, time):
    """Return the step that begins at `time`, which may have to be made."""
    n = st.state_i[N_STEPS]
    if time <= st.state_f[NOW]:
        return 0
    low, high = 2, n
    while low < high:
        mid = (low + high) >> 1
        if st.state_step_time[mid] < time:
            low = mid + 1
        else:
            high = mid
    if low == n or st.state_step_time[low] > time:
        for k in range(n, low, -1):
            st.state_step_time[k] = st.state_step_time[k - 1]
            st.state_step_free[k] = st.state_step_free[k - 1]
        st.state_step_time[low] = time
        st.state_step_free[low] = st.state_step_free[low - 1]
        st.state_i[N_STEPS] = n + 1
    return low
