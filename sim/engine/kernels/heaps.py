"""The heaps of the event loop: task ends, ready tasks, waiting stages, jobs by time.

- Running tasks are a binary heap by (finish time, task).
- The ready tasks of a stage with one-to-one parents are a binary heap by their turn in the
  order of the stage (their index, or their position in ``p_task_order``), in the stage's range
  of ``state_task_heap``; ``state_stage_waiting`` is its size.
- Jobs that wait for a known time to be submitted, or eligible, are a binary heap by (due time,
  row), jobs with a limit of run time another by (end of the limit, row).
- Waiting stages in queue order are one pairing heap a queue, its nodes the stages themselves: by
  rank of the job, then key and row of the stage. A node is a stage with a ready task, so a job that
  changes queue, limit or key moves its nodes and leaves no stale entry.
"""

import numpy as np

from sim.base.jit import inlined, part
from sim.engine.kernels.features import TIERS
from sim.engine.kernels.state import N_DUE, N_FIN

ONE = np.uint64(1)  # positions are unsigned: numba checks a signed index for negative values


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
    """Put (`time`, `slot`) at the root of a heap of `n` and let it sink to its position."""
    times, slots, tasks = st.state_fin_time, st.state_fin_slot, st.state_slot_task
    task = tasks[slot]
    i, child, last = np.uint64(0), ONE, np.uint64(n) - ONE
    while child < last:
        left, right = times[child], times[child + ONE]
        if left == right:
            child += np.uint64(tasks[slots[child + ONE]] < tasks[slots[child]])
        else:
            child += np.uint64(right < left)  # no branch: it would be unpredictable
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


@part
def turn_push(st, g, turn):
    """Add `turn` to the heap of stage `g`."""
    n = st.state_stage_waiting[g]
    st.state_stage_waiting[g] = n + 1
    binary_push(st.state_task_heap, st.w_stage_task0[g], n, turn)


@inlined
def turn_pop(st, g):
    """Remove the least turn from the heap of stage `g`, which must not be empty, and return it."""
    n = st.state_stage_waiting[g]
    st.state_stage_waiting[g] = n - 1
    return binary_pop(st.state_task_heap, st.w_stage_task0[g], n)


@part
def binary_push(heap, base, n, turn):
    """Add `turn` to the binary heap of the `n` turns from `base` on."""
    i = n
    while i > 0:
        up = (i - 1) >> 1
        if heap[base + up] < turn:
            break
        heap[base + i] = heap[base + up]
        i = up
    heap[base + i] = turn


@part
def binary_pop(heap, base, n):
    """Remove the least from the binary heap of the `n` turns from `base` on, and return it."""
    top = heap[base]
    n -= 1
    last = heap[base + n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and heap[base + child + 1] < heap[base + child]:
            child += 1
        if last < heap[base + child]:
            break
        heap[base + i] = heap[base + child]
        i = child
    heap[base + i] = last
    return top


@part
def due_push(st, j):
    """Add job `j` to those that are due."""
    job_rise(st.state_due_heap, st.state_job_due, st.state_i[N_DUE], j)
    st.state_i[N_DUE] += 1


@part
def due_rise(st, j):
    """Restore order after job `j`, which is sought in the heap, comes due earlier."""
    i = 0
    while st.state_due_heap[i] != j:
        i += 1
    job_rise(st.state_due_heap, st.state_job_due, i, j)


@inlined
def due_pop(st):
    """Remove the job with the earliest due time."""
    st.state_i[N_DUE] -= 1
    job_pop(st.state_due_heap, st.state_job_due, st.state_i[N_DUE])


@part
def job_rise(heap, time, i, j):
    """Let job `j` rise from position `i` of the binary heap of jobs by (time, row)."""
    while i > 0:
        up = (i - 1) >> 1
        if _before(time, heap[up], j):
            break
        heap[i] = heap[up]
        i = up
    heap[i] = j


@part
def job_pop(heap, time, n):
    """Remove the first job of a binary heap by (time, row); `n` are left."""
    j = heap[n]
    i, child = 0, 1
    while child < n:
        if child + 1 < n and _before(time, heap[child + 1], heap[child]):
            child += 1
        if _before(time, j, heap[child]):
            break
        heap[i] = heap[child]
        i = child
        child = 2 * i + 1
    heap[i] = j


@part
def _before(time, a, b):
    return time[a] < time[b] or (time[a] == time[b] and a < b)


@part
def has_other_tier(st, a, b):
    """Tell whether the jobs of stages `a` and `b` are of partitions of different tiers."""
    return st.w_job_tier[st.w_stage_job[a]] != st.w_job_tier[st.w_stage_job[b]]


@part
def is_of_higher_tier(st, a, b):
    """Tell whether the job of stage `a` is of partitions of a higher tier than that of `b`."""
    return st.w_job_tier[st.w_stage_job[a]] < st.w_job_tier[st.w_stage_job[b]]


@part
def before(st, a, b):
    """Tell whether stage `a` goes before stage `b` in one queue."""
    if TIERS and has_other_tier(st, a, b):
        return is_of_higher_tier(st, a, b)
    rank_a = st.state_job_rank[st.w_stage_job[a]]
    rank_b = st.state_job_rank[st.w_stage_job[b]]
    if rank_a != rank_b:
        return rank_a < rank_b
    key_a, key_b = st.p_stage_key[a], st.p_stage_key[b]
    if key_a != key_b:
        return key_a < key_b
    return a < b


@inlined
def heap_insert(st, queue, g):
    """Insert stage `g` into the heap of `queue`."""
    st.state_stage_child[g] = -1
    st.state_stage_sibling[g] = -1
    st.state_stage_prev[g] = -1
    root = st.state_queue_root[queue]
    st.state_queue_root[queue] = g if root < 0 else _meld(st, root, g)


@inlined
def heap_remove(st, queue, g):
    """Remove stage `g`, at any position, from the heap of `queue`."""
    rest = _merge_pairs(st, st.state_stage_child[g])
    st.state_stage_child[g] = -1
    if st.state_queue_root[queue] == g:
        st.state_queue_root[queue] = rest
        return
    _cut(st, g)
    if rest >= 0:
        st.state_queue_root[queue] = _meld(st, st.state_queue_root[queue], rest)


@inlined
def heap_decrease(st, queue, g):
    """Restore order after the rank of stage `g` decreased."""
    root = st.state_queue_root[queue]
    if root != g:
        _cut(st, g)
        st.state_queue_root[queue] = _meld(st, root, g)


@part
def _meld(st, a, b):
    if before(st, b, a):
        a, b = b, a
    child = st.state_stage_child[a]
    st.state_stage_sibling[b] = child
    if child >= 0:
        st.state_stage_prev[child] = b
    st.state_stage_prev[b] = a
    st.state_stage_child[a] = b
    return a


@part
def _cut(st, g):
    prev = st.state_stage_prev[g]
    sibling = st.state_stage_sibling[g]
    if st.state_stage_child[prev] == g:
        st.state_stage_child[prev] = sibling
    else:
        st.state_stage_sibling[prev] = sibling
    if sibling >= 0:
        st.state_stage_prev[sibling] = prev
    st.state_stage_prev[g] = -1
    st.state_stage_sibling[g] = -1


@inlined
def _merge_pairs(st, first):
    """Meld a list of siblings, in pairs and then from the back; return the root or -1."""
    if first < 0:
        return first
    sibling, prev = st.state_stage_sibling, st.state_stage_prev
    pairs = -1  # melded pairs, linked backwards through sibling
    node = first
    while node >= 0:
        other = sibling[node]
        if other < 0:
            next_node = -1
            merged = node
        else:
            next_node = sibling[other]
            merged = _meld(st, node, other)
        sibling[merged] = pairs
        pairs = merged
        node = next_node
    root = pairs
    rest = sibling[root]
    sibling[root] = -1
    while rest >= 0:
        next_node = sibling[rest]
        sibling[rest] = -1
        root = _meld(st, root, rest)
        rest = next_node
    prev[root] = -1
    return root
