"""Rigid jobs: all of their tasks start together; those that wait, in order.

In several queues, of shares of their own, the waiting jobs are merged by rank; of weighted queues
the one that is to be served next comes first, as they are now.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import CAPS, GANGS, PLACES, QUOTAS, TIERS
from sim.engine.kernels.heaps import has_other_tier, is_of_higher_tier
from sim.engine.kernels.launch import next_lag
from sim.engine.kernels.passing import is_passed_over
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.scanlist import stage_at
from sim.engine.kernels.state import BY_PLACE, BY_SHARE, ISOLATED, LAUNCH, N_SCAN, NOW
from sim.engine.kernels.waiting import precedes


@part
def width(st, j):
    """Return the number of tasks of job `j`, which start together."""
    first, end = st.w_job_stage0[j], st.w_job_stage0[j + 1]
    return st.w_stage_task0[end] - st.w_stage_task0[first]


@part
def planned_end(st, placed, j):
    """Return the expected end of waiting job `j`, if it is placed at that time."""
    start = max(placed, st.state_f[NOW])
    if st.state_i[LAUNCH]:
        start += next_lag(st, st.w_stage_task0[st.w_job_stage0[j]])
    return start + st.p_job_expected_s[j]


@part
def begin_now(st, j):
    """Note when job `j`, which is placed now, begins to run."""
    st.state_job_run_start[j] = st.state_f[NOW]
    if st.state_i[LAUNCH]:
        st.state_job_run_start[j] += next_lag(st, st.w_stage_task0[st.w_job_stage0[j]])


@part
def expected_end(st, j):
    """Return the expected end of running job `j`, s."""
    return st.state_job_run_start[j] + st.p_job_expected_s[j]


@part
def is_holding(st, j):
    """Tell whether job `j` runs, or holds its slots."""
    return st.state_job_running[j] > 0 or (GANGS and st.state_job_idle_held[j] >= 0)


@part
def claimed_until(st, begin, j):
    """Return the expected end of waiting job `j`, at the earliest the next float64 after `begin`.

    So room that is reserved for it is never empty.
    """
    return max(planned_end(st, begin, j), math.nextafter(begin, math.inf))


@inlined
def list_waiting(st):
    """List the waiting jobs in their order; return their number."""
    n = 0
    if PLACES and st.state_i[BY_PLACE]:
        begin_merge(st)
    for i in range(st.state_i[N_SCAN]):
        position = i
        if PLACES and st.state_i[BY_PLACE]:
            position = next_merged(st)
        g = st.state_scan[position]
        if g < 0:
            continue
        j = st.w_stage_job[g]
        if is_holding(st, j):
            continue
        if CAPS and is_passed_over(st, g):
            st.state_job_reserved[j] = math.nan
            continue
        if st.state_job_position[j] == 0:
            st.state_waiting_jobs[n] = j
            n += 1
            st.state_job_position[j] = n
    return n


@inlined
def begin_merge(st):
    """Set the range of the waiting stages of each queue; none of its jobs has a reservation."""
    if QUOTAS:
        note_borrowing(st)
    for q in range(len(st.state_queue_next)):
        st.state_queue_next[q] = st.state_queue_end[q] = st.state_queue_reserved[q] = 0
    for position in range(st.state_i[N_SCAN]):
        q = st.state_scan_queue[position]
        if st.state_queue_end[q] == 0:
            st.state_queue_next[q] = position
        st.state_queue_end[q] = position + 1


@inlined
def next_merged(st):
    """Return the next position of all queues, by tier, rank, key and row of the stage.

    Of weighted ones, or with quotas that lend, by tier and queue before that.
    """
    best = -1
    for q in range(len(st.state_queue_next)):
        position = st.state_queue_next[q]
        if position == st.state_queue_end[q]:
            continue
        if best < 0:
            best = position
        elif TIERS and has_other_tier(st, stage_at(st, position), stage_at(st, best)):
            is_higher = is_of_higher_tier(st, stage_at(st, position), stage_at(st, best))
            best = position if is_higher else best
        elif st.state_i[ISOLATED] or len(st.c_org_weight) == 1:
            best = position if _ranks_before(st, position, best) else best
        elif QUOTAS and not st.state_i[BY_SHARE]:
            best = position if _borrows_less(st, position, best) else best
        elif precedes(st, q, st.state_scan_queue[best]):
            best = position
    st.state_queue_next[st.state_scan_queue[best]] += 1
    return best


@inlined
def _borrows_less(st, a, b):
    """Tell whether the queue at position `a` borrows less far up than `b`, or ranks first."""
    height_a = st.state_queue_height[st.state_scan_queue[a]]
    height_b = st.state_queue_height[st.state_scan_queue[b]]
    return height_a < height_b if height_a != height_b else _ranks_before(st, a, b)


@inlined
def _ranks_before(st, a, b):
    if st.state_scan_rank[a] != st.state_scan_rank[b]:
        return st.state_scan_rank[a] < st.state_scan_rank[b]
    if st.state_scan_key[a] != st.state_scan_key[b]:
        return st.state_scan_key[a] < st.state_scan_key[b]
    return st.state_scan[a] < st.state_scan[b]


@part
def sink(st, base, end, k):
    """Let the `k`-th of the heap in [base, end) of the list sink to its position."""
    order = st.state_waiting_jobs
    while True:
        child = 2 * k + 1
        if base + child >= end:
            return
        if base + child + 1 < end and _goes_first(st, order[base + child + 1], order[base + child]):
            child += 1
        if not _goes_first(st, order[base + child], order[base + k]):
            return
        j = order[base + k]
        order[base + k] = order[base + child]
        order[base + child] = j
        k = child


@part
def _goes_first(st, a, b):
    if TIERS and st.w_job_tier[a] != st.w_job_tier[b]:
        return st.w_job_tier[a] < st.w_job_tier[b]
    key_a, key_b = st.p_job_fill_key[a], st.p_job_fill_key[b]
    return key_a < key_b or (key_a == key_b and st.state_job_position[a] < st.state_job_position[b])
