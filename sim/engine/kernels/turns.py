"""Turns: the order in which the tasks of a stage start.

The turn of a task is its position in that order (`sim.engine.kernels.fields`).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.state import PREFERS, PRIORITY, TASK_ORDER


@part
def has_heap(st, g):
    """Tell whether the ready tasks of stage `g` are a heap: they need not start by turn."""
    return st.w_stage_o2o[g] & 1


@part
def next_task(st, g, machine):
    """Return the task of stage `g` that `machine` takes next; the stage must have a ready one."""
    task0 = st.w_stage_task0[g]
    return task0 + index_of(st, task0, next_turn(st, g, machine))


@inlined
def next_turn(st, g, machine):
    """Return the turn of the task of stage `g` that `machine` takes next.

    The first task that prefers the machine, if all are ready at once; else the first.
    """
    task0 = st.w_stage_task0[g]
    turn = st.state_task_heap[task0] if has_heap(st, g) else st.state_stage_next[g]
    if st.state_i[PREFERS] and not has_heap(st, g):
        turn = _preferring(st, g, machine, turn)
    return turn


@part
def _preferring(st, g, machine, first):
    """Return the first turn from `first` on whose task prefers `machine`; `first` if none does."""
    task0 = st.w_stage_task0[g]
    for turn in range(first, st.w_stage_task0[g + 1] - task0):
        if st.p_turn_prefers[task0 + turn] == machine:
            return turn
    return first


@part
def bring_forward(st, g, turn):
    """Move the task of that turn to the next turn of stage `g`."""
    task0 = st.w_stage_task0[g]
    first, last = task0 + st.state_stage_next[g], task0 + turn
    order, prefers = st.p_task_order, st.p_turn_prefers
    index, machine = order[last], prefers[last]
    for i in range(last, first, -1):
        order[i] = order[i - 1]
        prefers[i] = prefers[i - 1]
    order[first] = index
    prefers[first] = machine
    if st.state_i[PRIORITY]:
        priority = st.p_turn_priority
        moved_priority = priority[last]
        for i in range(last, first, -1):
            priority[i] = priority[i - 1]
        priority[first] = moved_priority


@part
def index_of(st, task0, turn):
    """Return the index within the stage of the task with that turn."""
    return st.p_task_order[task0 + turn] if st.state_i[TASK_ORDER] else turn


@part
def turn_of(st, task0, index):
    """Return the turn of the task with that index within its stage."""
    return st.p_task_turn[task0 + index] if st.state_i[TASK_ORDER] else index
