"""Attained service: the task seconds that a job has received, and its crossings of thresholds.

Service accrues at the rate of the job's running tasks. The next crossing of each job is one entry
of an indexed heap. A falling rate only makes it later, so the entry is left and recomputed when it
comes up; a rising rate moves it forward at once.
"""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import CLASS_SPEEDS, VARIABLE_ENDS
from sim.engine.kernels.state import LAUNCH, N_SERVICE, NOW


@part
def accrue(st, j):
    """Bring the attained service of job `j` up to now; call it before its running tasks change."""
    now = st.state_f[NOW]
    st.state_job_attained[j] += st.state_job_running[j] * (now - st.state_job_since[j])
    st.state_job_since[j] = now


@inlined
def threshold(st, j):
    """Return the next threshold of attained service of job `j`: demotion or a SERVICE event."""
    return min(st.p_queue_demote_at[st.p_job_queue[j]], st.p_job_service_at[j])


@part
def crossing(st, j):
    """Return the time at which job `j` crosses its threshold if nothing changes, inf for never."""
    running = st.state_job_running[j]
    limit = threshold(st, j)
    is_bounded = not VARIABLE_ENDS and not CLASS_SPEEDS and not st.state_i[LAUNCH]
    if is_bounded and limit > st.w_job_work[j] * (1 + 1e-9):
        return math.inf  # a job ends once it has had all its work, if nothing delays it
    if st.state_job_attained[j] >= limit:
        return st.state_job_since[j]
    if running == 0:
        return math.inf
    return st.state_job_since[j] + (limit - st.state_job_attained[j]) / running


@part
def schedule_crossing(st, j):
    """Make the entry of job `j` no later than its crossing."""
    time = crossing(st, j)
    pos = st.state_service_pos[j]
    if time == math.inf:
        return
    if pos < 0:
        pos = st.state_i[N_SERVICE]
        st.state_i[N_SERVICE] = pos + 1
    elif time >= st.state_service_time[j]:
        return
    st.state_service_time[j] = time
    _rise(st, pos, j)


@part
def drop_crossing(st, j):
    """Drop the entry of job `j`, if it has one."""
    pos = st.state_service_pos[j]
    if pos < 0:
        return
    st.state_service_pos[j] = -1
    n = st.state_i[N_SERVICE] - 1
    st.state_i[N_SERVICE] = n
    if pos < n:
        last = st.state_service_heap[n]
        _rise(st, pos, last)
        _sink(st, st.state_service_pos[last], last)


@part
def postpone_crossing(st, j):
    """Set the entry of job `j`, which came up too early, to its crossing."""
    time = crossing(st, j)
    if time == math.inf:
        drop_crossing(st, j)
    else:
        st.state_service_time[j] = time
        _sink(st, st.state_service_pos[j], j)


@part
def _less(st, a, b):
    time_a, time_b = st.state_service_time[a], st.state_service_time[b]
    return time_a < time_b or (time_a == time_b and a < b)


@part
def _rise(st, pos, j):
    heap = st.state_service_heap
    while pos > 0:
        up = (pos - 1) >> 1
        other = heap[up]
        if not _less(st, j, other):
            break
        heap[pos] = other
        st.state_service_pos[other] = pos
        pos = up
    heap[pos] = j
    st.state_service_pos[j] = pos


@part
def _sink(st, pos, j):
    heap = st.state_service_heap
    n = st.state_i[N_SERVICE]
    while True:
        child = 2 * pos + 1
        if child >= n:
            break
        if child + 1 < n and _less(st, heap[child + 1], heap[child]):
            child += 1
        other = heap[child]
        if not _less(st, other, j):
            break
        heap[pos] = other
        st.state_service_pos[other] = pos
        pos = child
    heap[pos] = j
    st.state_service_pos[j] = pos
