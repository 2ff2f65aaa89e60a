"""The running tasks, as a binary heap by (finish time, task)."""

import numpy as np

from sim.base.jit import inlined, part
from sim.engine.kernels.state import N_FIN

ONE = np.uint64(1)  # places are unsigned: a signed one would be asked whether it is negative


@part
def fin_push(st, time, slot):
    """Add the task in `slot`, which ends at `time`."""
    n = st.state_i[N_FIN]
    st.state_i[N_FIN] = n + 1
    _rise(st, n, time, slot)


@inlined
def fin_pop(st):
    """Remove the earliest end and return its slot; the heap must not be empty."""
    top = st.state_fin_slot[0]
    n = st.state_i[N_FIN] - 1
    st.state_i[N_FIN] = n
    if n > 0:
        time, slot = st.state_fin_time[n], st.state_fin_slot[n]
        fin_sink(st, n, time, slot)
    return top


@part
def fin_sink(st, n, time, slot):
    """Put (`time`, `slot`) at the root of a heap of `n` and let it sink to its place."""
    times, slots, tasks = st.state_fin_time, st.state_fin_slot, st.state_slot_task
    task = tasks[slot]
    i, child, last = np.uint64(0), ONE, np.uint64(n) - ONE
    while child < last:
        left, right = times[child], times[child + ONE]
        if left == right:
            child += np.uint64(tasks[slots[child + ONE]] < tasks[slots[child]])
        else:
            child += np.uint64(right < left)  # no branch: nobody could guess which way it goes
        first = times[child]
        if time < first or (time == first and task < tasks[slots[child]]):
            break
        times[i] = first
        slots[i] = slots[child]
        i = child
        child = i + i + ONE
    if child == last:  # it has no right neighbour
        first = times[child]
        if first < time or (time == first and tasks[slots[child]] < task):
            times[i] = first
            slots[i] = slots[child]
            i = child
    times[i] = time
    slots[i] = slot


@inlined
def _rise(st, n, time, slot):
    times, slots, tasks = st.state_fin_time, st.state_fin_slot, st.state_slot_task
    task = tasks[slot]
    i = np.uint64(n)
    while i > 0:
        up = (i - ONE) >> ONE
        if times[up] < time or (times[up] == time and tasks[slots[up]] < task):
            break
        times[i] = times[up]
        slots[i] = slots[up]
        i = up
    times[i] = time
    slots[i] = slot
