"""Batches: like tasks of a stage that start at one instant, and so end at one, in one slot.

The tasks of a batch are contiguous, of equal duration and on one machine: ``state_slot_count`` of
them from ``state_slot_task`` on. All tasks of another batch are before them or after them, so the
order of ends at one instant is still that of task rows. A batch may grow until the placement of its
instant is over: its end in the heap, and the row of its first task, stay as they are.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import count_within
from sim.engine.kernels.features import CAPS, DYNAMIC_ORDER, FLAVORS, LIMITS, POOL, QUOTAS
from sim.engine.kernels.flavors import is_one_try
from sim.engine.kernels.heaps import fin_push
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.service import accrue
from sim.engine.kernels.speeds import run_s
from sim.engine.kernels.state import (
    FIRST_BATCH,
    HARD_CAPS,
    LAUNCH,
    N_BATCHES,
    N_SLOT_FREE,
    N_TAKEN,
    RECORD,
    TASK_ORDER,
)
from sim.engine.kernels.turns import has_heap
from sim.engine.kernels.waiting import SHARE_ORDER, rank


@part
def begin_batches(st):
    """Begin a placement: the batches of earlier ones no longer grow."""
    st.state_i[FIRST_BATCH] = st.state_i[N_BATCHES]


@part
def like_tasks(st, g):
    """Count the tasks of stage `g` from its next one on that may start as one batch."""
    if not POOL and (_out_of_order(st, g) or st.state_i[LAUNCH]):
        return 1
    task = st.w_stage_task0[g] + st.state_stage_next[g]
    return st.w_run_task0[st.state_stage_run[g] + 1] - task


@inlined
def next_run(st, g, task, count):
    """Return the run of the next `count` tasks of stage `g`, from `task` on, which start."""
    if not POOL and _out_of_order(st, g):
        return _run_of(st, g, task)
    run = st.state_stage_run[g]
    if task + count == st.w_run_task0[run + 1]:
        st.state_stage_run[g] = run + 1
    return run


@part
def _out_of_order(st, g):
    """Tell whether tasks of stage `g` may start in another order than their rows."""
    return has_heap(st, g) or (st.state_i[TASK_ORDER] and not st.w_stage_uniform[g])


@part
def _run_of(st, g, task):
    """Return the run of `task`, which is one of stage `g`."""
    low, high = st.w_stage_run0[g], st.w_stage_run0[g + 1] - 1
    while low < high:
        middle = (low + high + 1) // 2
        if st.w_run_task0[middle] <= task:
            low = middle
        else:
            high = middle - 1
    return low


@part
def start_batch(st, g, task, run, count, machine, flag, start):
    """Start `count` tasks of stage `g` from `task` on: in the batch that ends there, or a new one.

    They start at `start`, later than now if starts lag. Return the slot.
    """
    slot = st.state_stage_batch[g]
    if slot >= 0 and _continues(st, slot, g, task, run, machine, flag):
        st.state_slot_count[slot] += count
        if st.state_i[RECORD]:
            st.out_batch_count[st.state_slot_batch[slot] - st.state_i[N_TAKEN]] += count
        return slot
    st.state_i[N_SLOT_FREE] -= 1
    slot = st.state_slot_free[st.state_i[N_SLOT_FREE]]
    st.state_stage_batch[g] = slot
    st.state_slot_task[slot] = task
    st.state_slot_stage[slot] = g
    st.state_slot_count[slot] = count
    duration = st.w_run_duration[run]
    st.state_slot_duration[slot] = duration
    st.state_slot_machine[slot] = machine
    st.state_slot_flag[slot] = flag
    record_batch(st, slot, start)
    fin_push(st, start + run_s(st, g, machine, duration), slot)
    return slot


@inlined
def _continues(st, slot, g, task, run, machine, flag):
    """Tell whether `task` is of the same run and next after the batch in `slot`, which may grow."""
    if st.state_slot_batch[slot] < st.state_i[FIRST_BATCH] or st.state_slot_stage[slot] != g:
        return False
    if (
        st.state_i[LAUNCH]
        or st.state_slot_machine[slot] != machine
        or st.state_slot_flag[slot] != flag
    ):
        return False
    first = st.state_slot_task[slot]
    return first + st.state_slot_count[slot] == task and first >= st.w_run_task0[run]


@part
def record_batch(st, slot, start):
    """Give the batch in `slot`, from `start` on, a number and a record."""
    n = st.state_i[N_BATCHES]
    st.state_i[N_BATCHES] = n + 1
    st.state_slot_batch[slot] = n
    if st.state_i[RECORD]:
        i = n - st.state_i[N_TAKEN]
        st.out_batch_task[i] = st.state_slot_task[slot]
        st.out_batch_count[i] = st.state_slot_count[slot]
        st.out_batch_start[i] = start
        st.out_batch_machine[i] = st.state_slot_machine[slot]


@part
def records_full(st):
    """Tell whether the records of batches have no room for all that may start at one instant."""
    n_records = st.state_i[N_BATCHES] - st.state_i[N_TAKEN]
    room = len(st.out_batch_task) - n_records
    return st.state_i[RECORD] and room < len(st.state_slot_task)


@part
def less_each(value, amount, count):
    """Subtract `amount` from `value` `count` times, with the rounding of each time."""
    for _ in range(count):
        value -= amount
    return value


@part
def keeps_rank(st, j, queue):
    """Tell whether a start now leaves the rank of job `j` in `queue` as it is.

    The use of its share moves with each start, attained service with the first of an instant.
    """
    accrue(st, j)
    order = st.p_queue_order[queue % len(st.p_queue_order)]
    return order != SHARE_ORDER and rank(st, j) == st.state_job_rank[j]


@part
def startable(st, g, machine):
    """Count the like tasks of stage `g` that start on `machine` before its job's turn is over.

    That is until its run limit or gate, the first k that it is asked for, the caps of its
    organisation and groups, or the room of the machine is reached; one if starts move its rank.
    """
    j = st.w_stage_job[g]
    count = like_tasks(st, g)
    if LIMITS:
        running, started = st.state_job_running[j], st.state_job_started[j]
        limit, gate = st.p_job_run_limit[j], st.p_job_start_gate[j]
        if running < limit and started < gate:  # else it waits where it is free of both
            count = min(count, limit - running, gate - started)
        first_k = st.p_job_notify_at[j] - st.state_job_first_started[j]
        if first_k > 0:
            count = min(count, first_k)
    if count > 1 and DYNAMIC_ORDER and not keeps_rank(st, j, st.state_job_wait_queue[j]):
        return 1
    if FLAVORS and not is_one_try(st, g):
        return 1
    return _fitting(st, g, machine, count) if count > 1 else 1


@inlined
def _fitting(st, g, machine, count):
    """Count the tasks of stage `g`, at most `count`, for which `machine` and cap have room."""
    row = demand_row(st, g)
    for r in range(st.c_alignment_scale.shape[1]):
        demand = st.w_stage_demand[row, r]
        if demand == 0:
            continue
        count = min(count, st.state_mach_free[machine, r] // demand)
        if st.state_i[HARD_CAPS]:
            org = st.w_job_org[st.w_stage_job[g]]
            count = min(count, (st.c_org_cap[org, r] - st.state_org_used[org, r]) // demand)
    if QUOTAS:
        count = _count_within_quota(st, g, row, count)
    return count_within(st, st.w_stage_job[g], row, count) if CAPS else count


@part
def _count_within_quota(st, g, row, count):
    """Count the tasks of stage `g`, at most `count`, that quotas allow: one does."""
    low, j = 1, st.w_stage_job[g]
    while low < count:
        middle = (low + count + 1) // 2
        if within_cap(st, j, st.w_stage_demand, row, middle):
            low = middle
        else:
            count = middle - 1
    return count
