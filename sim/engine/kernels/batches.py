"""Batches: like tasks of a stage that start at one instant, and so end at one, in one slot.

The tasks of a batch are contiguous and of equal duration: ``state_slot_count`` of them from
``state_slot_task`` on. All tasks of another batch are before them or after them, so the order of
ends at one instant is still that of task rows. The last batch of a queue is *open*: it grows while
its stage stays the head of the queue. Then it is recorded, and its end enters the heap.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.heaps import fin_push
from sim.engine.kernels.state import N_BATCHES, N_SLOT_FREE, NOW, RECORD


@part
def like_tasks(st, g):
    """Count the tasks of stage `g` from its next one on that are of equal duration."""
    task = st.w_stage_task0[g] + st.state_stage_next[g]
    return st.w_run_task0[st.state_stage_run[g] + 1] - task


@part
def start_batch(st, q, g, n, machine):
    """Start the next `n` tasks of stage `g`, which are alike, from queue `q` on `machine`."""
    run, task = st.state_stage_run[g], st.w_stage_task0[g] + st.state_stage_next[g]
    slot = st.state_queue_batch[q]
    if slot >= 0 and _continues(st, slot, task, run, machine):
        st.state_slot_count[slot] += n
    else:
        close_batch(st, q)
        st.state_i[N_SLOT_FREE] -= 1
        slot = st.state_slot_free[st.state_i[N_SLOT_FREE]]
        st.state_slot_task[slot] = task
        st.state_slot_stage[slot] = g
        st.state_slot_count[slot] = n
        st.state_slot_duration[slot] = st.w_run_duration[run]
        st.state_slot_machine[slot] = machine
        st.state_slot_flag[slot] = 0
        st.state_queue_batch[q] = slot
    st.state_stage_next[g] += n
    st.state_stage_waiting[g] -= n
    if task + n == st.w_run_task0[run + 1]:
        st.state_stage_run[g] = run + 1


@part
def _continues(st, slot, task, run, machine):
    """Tell whether `task` of `run` is the next one after the batch in `slot`, on its machine."""
    first = st.state_slot_task[slot]
    if st.state_slot_machine[slot] != machine or first < st.w_run_task0[run]:
        return False
    return first + st.state_slot_count[slot] == task


@part
def close_batch(st, q):
    """Close the open batch of queue `q`, if there is one."""
    slot = st.state_queue_batch[q]
    if slot < 0:
        return
    st.state_queue_batch[q] = -1
    end = st.state_f[NOW] + st.state_slot_duration[slot]
    if st.state_i[RECORD]:
        record_batch(st, slot, end)
    fin_push(st, end, slot)


@part
def close_batches(st):
    """Close the open batches of all queues."""
    for q in range(len(st.state_queue_batch)):
        close_batch(st, q)


@part
def record_batch(st, slot, end):
    """Record the batch in `slot`, which starts now and ends at `end`."""
    n = st.state_i[N_BATCHES]
    st.out_batch_task[n] = st.state_slot_task[slot]
    st.out_batch_count[n] = st.state_slot_count[slot]
    st.out_batch_start[n] = st.state_f[NOW]
    st.out_batch_finish[n] = end
    st.out_batch_machine[n] = st.state_slot_machine[slot]
    st.state_i[N_BATCHES] = n + 1


@part
def records_full(st):
    """Tell whether the records of batches have no room for all that may start at one instant."""
    room = len(st.out_batch_task) - st.state_i[N_BATCHES]
    return st.state_i[RECORD] and room < len(st.state_slot_task)


@part
def less_each(value, amount, n):
    """Subtract `amount` from `value` `n` times, with the rounding of each time."""
    for _ in range(n):
        value -= amount
    return value
