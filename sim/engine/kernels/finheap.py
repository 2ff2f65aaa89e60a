"""The running tasks, as a binary heap by (finish time, task)."""

from sim.base.jit import inlined, part
from sim.engine.kernels.state import N_FIN


@part
def fin_push(st, time, slot):
    """Add the task in `slot`, which ends at `time`."""
    n = st.state_i[N_FIN]
    st.state_i[N_FIN] = n + 1
    _rise(st.state_fin_time, st.state_fin_slot, st.state_slot_task, n, time, slot)


@inlined
def fin_pop(st):
    """Remove the earliest end and return its slot; the heap must not be empty."""
    top = st.state_fin_slot[0]
    n = st.state_i[N_FIN] - 1
    st.state_i[N_FIN] = n
    if n > 0:
        time, slot = st.state_fin_time[n], st.state_fin_slot[n]
        fin_sink(st.state_fin_time, st.state_fin_slot, st.state_slot_task, n, time, slot)
    return top


@part
def fin_sink(times, slots, tasks, n, time, slot):
    """Put (`time`, `slot`) at the root of a heap of `n` and let it sink to its place."""
    task = tasks[slot]
    i = 0
    child = 1
    while child < n:
        right = child + 1
        if right < n and (
            times[right] < times[child]
            or (times[right] == times[child] and tasks[slots[right]] < tasks[slots[child]])
        ):
            child = right
        if time < times[child] or (time == times[child] and task < tasks[slots[child]]):
            break
        times[i] = times[child]
        slots[i] = slots[child]
        i = child
        child = 2 * i + 1
    times[i] = time
    slots[i] = slot


@inlined
def _rise(times, slots, tasks, i, time, slot):
    task = tasks[slot]
    while i > 0:
        up = (i - 1) >> 1
        if times[up] < time or (times[up] == time and tasks[slots[up]] < task):
            break
        times[i] = times[up]
        slots[i] = slots[up]
        i = up
    times[i] = time
    slots[i] = slot
