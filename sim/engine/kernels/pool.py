"""The hot loops of a pool of slots: a batch of tasks ends, and the next in order take its slots.

They read every field into a local once and handle only the common case. Rare events (an arrival, a
crossing, several ends at one instant, a stage that others wait for) they leave to the general loop
*before* they have changed anything; a test holds the two to the same bits.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from sim.base.jit import inlined, part
from sim.engine.kernels.batches import (
    begin_batches,
    keeps_rank,
    less_each,
    like_tasks,
    next_run,
    record_batch,
    records_full,
    start_batch,
)
from sim.engine.kernels.conserve import is_broken
from sim.engine.kernels.features import CHECKS, DYNAMIC_ORDER, SERVICE, USAGE
from sim.engine.kernels.heaps import ONE, fin_sink
from sim.engine.kernels.service import accrue, drop_crossing, schedule_crossing
from sim.engine.kernels.state import (
    JOBS_LEFT,
    N_FIN,
    N_SERVICE,
    N_SLOT_FREE,
    NEXT_JOB,
    NOW,
    RECORD,
    TIMER,
)
from sim.engine.kernels.waiting import stage_drained, update_rank


@inlined
def run_pool(st):
    """Run from end to end while nothing rare happens; stop before the first rare event."""
    fin_time, fin_slot, slot_task = st.state_fin_time, st.state_fin_slot, st.state_slot_task
    slot_stage, slot_count = st.state_slot_stage, st.state_slot_count
    slot_duration, stage_job = st.state_slot_duration, st.w_stage_job
    stage_left, stage_waiting = st.state_stage_left, st.state_stage_waiting
    stage_next, stage_weight, edge0 = st.state_stage_next, st.p_stage_weight, st.w_edge0
    stage_task0, stage_run, run_task0 = st.w_stage_task0, st.state_stage_run, st.w_run_task0
    duration, root, home = st.w_run_duration, st.state_queue_root, st.state_job_queue
    running, done, left = st.state_job_running, st.state_job_done, st.state_job_left
    attained, since, started = st.state_job_attained, st.state_job_since, st.state_job_started
    job_used, queue_used, remaining = (
        st.state_job_used,
        st.state_queue_used,
        st.state_job_remaining,
    )
    service_time, service_heap = st.state_service_time, st.state_service_heap
    job_start, job_finish, counters = st.out_job_start, st.out_job_finish, st.state_i
    record = counters[RECORD]
    job = counters[NEXT_JOB]
    horizon = st.w_job_submit[job] if job < len(st.w_job_submit) else math.inf
    horizon = min(horizon, st.state_f[TIMER])
    n = counters[N_FIN]
    now = st.state_f[NOW]
    while n > 2:
        if CHECKS and is_broken(st):
            break
        end = fin_time[0]
        if end >= horizon or fin_time[1] == end or fin_time[2] == end:
            break
        if SERVICE and counters[N_SERVICE] > 0 and service_time[service_heap[0]] <= end:
            break
        slot = np.uint64(fin_slot[0])
        g = np.uint64(slot_stage[slot])
        count = slot_count[slot]
        if stage_left[g] == count and edge0[g] < edge0[g + ONE]:
            break
        if record and records_full(st):
            break
        # the tasks in `slot` end
        now = end
        st.state_f[NOW] = now
        j = np.uint64(stage_job[g])
        if SERVICE or DYNAMIC_ORDER:
            attained[j] += running[j] * (now - since[j])
            since[j] = now
        if DYNAMIC_ORDER:
            weighted = slot_duration[slot] * stage_weight[g]
            remaining[j] -= weighted
            if count > 1:
                remaining[j] = less_each(remaining[j], weighted, count - 1)
        running[j] -= count
        done[j] += count
        left[j] -= count
        stage_left[g] -= count
        if USAGE:
            job_used[j, 0] -= count
            queue_used[home[j], 0] -= count
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
        q = _next_queue(st) if USAGE else 0
        head = root[q] if q >= 0 else -1
        if head < 0 or (count > 1 and _startable(st, q, head, count) < count):
            n -= 1  # slots stay free, or tasks of several stages take them
            fin_sink(st, n, fin_time[n], fin_slot[n])
            st.state_slot_free[counters[N_SLOT_FREE]] = slot
            counters[N_SLOT_FREE] += 1
            st.state_mach_free[0, 0] += count
            if head >= 0:
                counters[N_FIN] = n
                _fill(st)
                n = counters[N_FIN]
            continue
        # the next tasks of stage `head` take its place
        h = np.uint64(head)
        j = np.uint64(stage_job[h])
        run = np.uint64(stage_run[h])
        task = stage_task0[h] + stage_next[h]
        stage_next[h] += count
        stage_waiting[h] -= count
        if task + count == run_task0[run + ONE]:
            stage_run[h] += 1
        if SERVICE or DYNAMIC_ORDER:
            attained[j] += running[j] * (now - since[j])
            since[j] = now
        if started[j] == 0:
            job_start[j] = now
        started[j] += count
        running[j] += count
        slot_task[slot] = task
        slot_stage[slot] = h
        slot_duration[slot] = duration[run]
        if USAGE:
            job_used[j, 0] += count
            queue_used[home[j], 0] += count
        if record:
            record_batch(st, slot, now)
        fin_sink(st, n, now + duration[run], slot)
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
    if st.state_mach_free[0, 0] > 0:
        _fill(st)


@part
def _fill(st):
    """Fill the free slots with the heads of the queues, in batches."""
    free, now = st.state_mach_free, st.state_f[NOW]
    begin_batches(st)
    while free[0, 0] > 0:
        q = _next_queue(st) if USAGE else 0
        h = st.state_queue_root[q] if q >= 0 else -1
        if h < 0:
            break
        j = st.w_stage_job[h]
        count = _startable(st, q, h, free[0, 0])
        if SERVICE or DYNAMIC_ORDER:
            accrue(st, j)
        if st.state_job_started[j] == 0:
            st.out_job_start[j] = now
        task = st.w_stage_task0[h] + st.state_stage_next[h]
        start_batch(st, h, task, next_run(st, h, task, count), count, 0, 0, now)
        st.state_stage_next[h] += count
        st.state_stage_waiting[h] -= count
        free[0, 0] -= count
        st.state_job_started[j] += count
        st.state_job_running[j] += count
        if USAGE:
            st.state_job_used[j, 0] += count
            st.state_queue_used[st.state_job_queue[j], 0] += count
        if st.state_stage_waiting[h] == 0:
            stage_drained(st, h)
        if DYNAMIC_ORDER:
            update_rank(st, j)
        if SERVICE:
            schedule_crossing(st, j)


@inlined
def _startable(st, q, g, limit):
    """Count the like tasks of stage `g`, the head of queue `q`, that start before another head's.

    At most `limit`. A start moves the rank of its job if shares decide, or if service has accrued
    since: then it is one.
    """
    count = min(limit, like_tasks(st, g))
    if count == 1:
        return count
    if DYNAMIC_ORDER and not keeps_rank(st, st.w_stage_job[g], q):
        return 1
    if USAGE:
        return _before_other_queues(st, q, count)
    return count


@part
def _before_other_queues(st, q, limit):
    """Count the tasks, at most `limit`, that start from queue `q` before another queue is next."""
    root, tier, other, use = st.state_queue_root, st.p_queue_tier, -1, 0.0
    for p in range(len(root)):
        if p == q or root[p] < 0 or tier[p] != tier[q]:
            continue
        use_of_p = _use(st, p, 0)
        if other < 0 or use_of_p < use:
            other, use = p, use_of_p
    if other < 0:
        return limit
    low, high = 1, limit  # it is next for the first `low` of them, and maybe for `high`
    while low < high:
        middle = (low + high + 1) // 2
        use_then = _use(st, q, middle - 1)
        if use_then < use or (use_then == use and q < other):
            low = middle
        else:
            high = middle - 1
    return low


@part
def _next_queue(st):
    """Return the queue that is served next, -1 for none (`waiting.precedes`)."""
    root, tier, best, best_use = st.state_queue_root, st.p_queue_tier, -1, 0.0
    for q in range(len(root)):
        if root[q] < 0:
            continue
        use = _use(st, q, 0)
        if best < 0 or tier[q] < tier[best] or (tier[q] == tier[best] and use < best_use):
            best, best_use = q, use
    return best


@inlined
def _use(st, q, more):
    """Return the use of queue `q` over its weight, once it has `more` tasks than now."""
    return (st.state_queue_used[q, 0] + more) * st.c_scale[0] / st.p_queue_weight[q]
