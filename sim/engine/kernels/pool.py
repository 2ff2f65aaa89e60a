"""The hot loops of a pool of slots: a task ends, and the next in order takes its slot.

They read every field into a local once and handle only the common case. Rare events (an arrival, a
crossing, several ends at one instant, a stage that others wait for) they leave to the general loop
*before* they have changed anything; a test holds the two to the same bits.
"""

import math

import numpy as np

from sim.base.jit import inlined, part
from sim.engine.kernels.features import DYNAMIC_ORDER, SERVICE, USAGE
from sim.engine.kernels.heaps import ONE, fin_push, fin_sink
from sim.engine.kernels.service import drop_crossing, schedule_crossing
from sim.engine.kernels.state import (
    JOBS_LEFT,
    N_DIRTY,
    N_FIN,
    N_SERVICE,
    N_SLOT_FREE,
    NEXT_JOB,
    NOW,
    RECORD,
    RELEASED,
    TIMER,
)
from sim.engine.kernels.waiting import stage_drained, update_rank


@inlined
def run_pool(st):
    """Run from end to end while nothing rare happens; stop before the first rare event."""
    fin_time, fin_slot, slot_task = st.state_fin_time, st.state_fin_slot, st.state_slot_task
    slot_stage, stage_job, stage_task0 = st.state_slot_stage, st.w_stage_job, st.w_stage_task0
    stage_left, stage_waiting = st.state_stage_left, st.state_stage_waiting
    stage_next, stage_weight, edge0 = st.state_stage_next, st.p_stage_weight, st.w_edge0
    duration, root, home = st.w_task_duration, st.state_queue_root, st.state_job_queue
    running, done, left = st.state_job_running, st.state_job_done, st.state_job_left
    done_work, remaining = st.state_job_done_work, st.state_job_remaining
    attained, since, started = st.state_job_attained, st.state_job_since, st.state_job_started
    job_used, queue_used = st.state_job_used, st.state_queue_used
    service_time, service_heap = st.state_service_time, st.state_service_heap
    task_start, task_finish, task_machine = (
        st.out_task_start,
        st.out_task_finish,
        st.out_task_machine,
    )
    job_start, job_finish, counters = st.out_job_start, st.out_job_finish, st.state_i
    record = counters[RECORD]
    job = counters[NEXT_JOB]
    horizon = st.w_job_submit[job] if job < len(st.w_job_submit) else math.inf
    horizon = min(horizon, st.state_f[TIMER])
    n = counters[N_FIN]
    now = st.state_f[NOW]
    while n > 2:
        end = fin_time[0]
        if end >= horizon or fin_time[1] == end or fin_time[2] == end:
            break
        if SERVICE and counters[N_SERVICE] > 0 and service_time[service_heap[0]] <= end:
            break
        slot = np.uint64(fin_slot[0])
        g = np.uint64(slot_stage[slot])
        if stage_left[g] == 1 and edge0[g] < edge0[g + ONE]:
            break
        # the task in `slot` ends
        now = end
        st.state_f[NOW] = now
        j, task = np.uint64(stage_job[g]), np.uint64(slot_task[slot])
        if SERVICE or DYNAMIC_ORDER:
            attained[j] += running[j] * (now - since[j])
            since[j] = now
        length = duration[task]
        done_work[j] += length
        remaining[j] -= length * stage_weight[g]
        running[j] -= 1
        done[j] += 1
        left[j] -= 1
        stage_left[g] -= 1
        if record:
            task_finish[task] = now
        if USAGE:
            job_used[j, 0] -= 1
            queue_used[home[j], 0] -= 1
        if left[j] == 0:
            job_finish[j] = now
            counters[JOBS_LEFT] -= 1
            if SERVICE:
                drop_crossing(st, j)
        else:
            if DYNAMIC_ORDER:
                update_rank(st, j)
            if SERVICE:
                schedule_crossing(st, j)
        head = _head(st) if USAGE else root[0]
        if head < 0:  # nothing waits: the slot stays free
            n -= 1
            last = fin_slot[n]
            fin_sink(st, n, fin_time[n], last)
            st.state_slot_free[counters[N_SLOT_FREE]] = slot
            counters[N_SLOT_FREE] += 1
            st.state_mach_free[0, 0] += 1
            continue
        # the next task of stage `h` takes it
        h = np.uint64(head)
        j = np.uint64(stage_job[h])
        task = np.uint64(stage_task0[h] + stage_next[h])
        stage_next[h] += 1
        stage_waiting[h] -= 1
        if SERVICE or DYNAMIC_ORDER:
            attained[j] += running[j] * (now - since[j])
            since[j] = now
        if started[j] == 0:
            job_start[j] = now
        started[j] += 1
        running[j] += 1
        slot_task[slot] = task
        slot_stage[slot] = h
        if record:
            task_start[task] = now
            task_machine[task] = 0
        if USAGE:
            job_used[j, 0] += 1
            queue_used[home[j], 0] += 1
        fin_sink(st, n, now + duration[task], slot)
        if stage_waiting[h] == 0:
            stage_drained(st, h)
        if DYNAMIC_ORDER:
            update_rank(st, j)
        if SERVICE:
            schedule_crossing(st, j)
    counters[N_FIN] = n


@inlined
def dispatch_pool(st):
    """Fill the free slots with the heads of the queues."""
    free, counters = st.state_mach_free, st.state_i
    now = st.state_f[NOW]
    while free[0, 0] > 0:
        h = _head(st) if USAGE else st.state_queue_root[0]
        if h < 0:
            break
        j = st.w_stage_job[h]
        if SERVICE or DYNAMIC_ORDER:
            st.state_job_attained[j] += st.state_job_running[j] * (now - st.state_job_since[j])
            st.state_job_since[j] = now
        if st.state_job_started[j] == 0:
            st.out_job_start[j] = now
        # a head stays head while its start moves neither its rank nor the use of its queue
        batch = 1
        if not USAGE and not DYNAMIC_ORDER:
            batch = min(free[0, 0], st.state_stage_waiting[h])
        task = st.w_stage_task0[h] + st.state_stage_next[h]
        for _ in range(batch):
            counters[N_SLOT_FREE] -= 1
            slot = st.state_slot_free[counters[N_SLOT_FREE]]
            st.state_slot_task[slot] = task
            st.state_slot_stage[slot] = h
            st.state_slot_machine[slot] = 0
            st.state_slot_flag[slot] = 0
            if st.state_i[RECORD]:
                st.out_task_start[task] = now
                st.out_task_machine[task] = 0
            fin_push(st, now + st.w_task_duration[task], slot)
            task += 1
        free[0, 0] -= batch
        st.state_job_started[j] += batch
        st.state_job_running[j] += batch
        st.state_stage_next[h] += batch
        st.state_stage_waiting[h] -= batch
        if USAGE:
            st.state_job_used[j, 0] += 1
            st.state_queue_used[st.state_job_queue[j], 0] += 1
        if st.state_stage_waiting[h] == 0:
            stage_drained(st, h)
        if DYNAMIC_ORDER:
            update_rank(st, j)
        if SERVICE:
            schedule_crossing(st, j)
    counters[RELEASED] = 0
    counters[N_DIRTY] = 0
    st.state_mach_dirty[0] = 0


@part
def _head(st):
    """Return the head of the queue that is served next, -1 for none (`waiting.precedes`)."""
    root, best = st.state_queue_root, -1
    for q in range(len(root)):
        if root[q] >= 0 and (best < 0 or _precedes(st, q, best)):
            best = q
    return -1 if best < 0 else root[best]


@inlined
def _precedes(st, a, b):
    tier = st.p_queue_tier
    if tier[a] != tier[b]:
        return tier[a] < tier[b]
    return _use(st, a) < _use(st, b)


@inlined
def _use(st, q):
    return st.state_queue_used[q, 0] * st.c_scale[0] / st.p_queue_weight[q]
