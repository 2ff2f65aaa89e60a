"""The ready tasks of a stage with one-to-one parents: a binary heap by their turn.

Each stage's stretch of ``state_task_heap`` holds its heap; ``state_stage_waiting`` is its size.
An entry is a task's turn in the stage's order (its index, or its place in ``p_task_order``).
"""

from sim.base.jit import inlined, part


@part
def turn_push(st, g, turn):
    """Add `turn` to the heap of stage `g`."""
    base = st.w_stage_task0[g]
    heap = st.state_task_heap
    i = st.state_stage_waiting[g]
    st.state_stage_waiting[g] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if heap[base + up] < turn:
            break
        heap[base + i] = heap[base + up]
        i = up
    heap[base + i] = turn


@inlined
def turn_pop(st, g):
    """Take the least turn out of the heap of stage `g`, which must not be empty."""
    base = st.w_stage_task0[g]
    heap = st.state_task_heap
    top = heap[base]
    n = st.state_stage_waiting[g] - 1
    st.state_stage_waiting[g] = n
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
