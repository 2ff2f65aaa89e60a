"""PlaceTasks: greedy placement of a set of a DAG's tasks into a resource-time space.

`place` is PlaceTasksF of Grandl et al., *Do the hard stuff first* (§4.2, Fig. 7). Placing backward
is placing forward in the mirrored space with reversed edges.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from policies.dagps.kernels.space import BEGIN, END, earliest, hold, room_for
from sim.base.jit import inlined, jit, part
from sim.engine.kernels.heaps import binary_pop, binary_push
from sim.workload.kernels.pairs import count_pairs, partner


@jit
def place(dag, space, label, subset, limit):
    """Place the tasks whose `label` is `subset`; give up when the span reaches `limit`.

    A task is ready once its parents in the set are placed. The first ready task in the DAG's order
    goes next. It begins at the earliest time at which some machine has room for its whole duration
    (ties: the lowest row), but not before its placed parents end or the space begins. Equal tasks
    of a stage that become ready together form one run, and searches of machines for one of them
    hold for the next, because room only ever shrinks. As many of them as have room beside the first
    go with it to the same machine and time.
    """
    base = space.state_span[BEGIN]
    n_left = _count_waiting(dag, label, subset)
    n_ready = 0
    for g in range(len(dag.w_order)):
        if dag.state_left[g] > 0 and dag.state_waits[g] == 0:
            n_ready = _open_stage(dag, space, g, label, subset, base, n_ready)
    while n_ready > 0:
        turn = binary_pop(dag.state_heap, 0, n_ready)
        n_ready -= 1
        until = dag.state_until[turn]
        while turn < until:
            if n_ready > 0 and dag.state_heap[0] < turn:
                dag.state_until[turn] = until
                binary_push(dag.state_heap, 0, n_ready, turn)
                n_ready += 1
                break
            t = dag.w_task_at[turn]
            g = dag.w_task_stage[t]
            release = _earliest_begin(dag, space, t, g)
            machine, begin = _find_machine(dag, space, g, dag.w_duration[t], release, base, limit)
            if machine < 0:
                return False
            end = begin + dag.w_duration[t]
            n = 1
            if turn + 1 < until:
                n = room_for(space, machine, begin, end, dag.w_demand, g, until - turn)
                n = _count_like(dag, space, g, turn, n, release, label, subset)
            hold(space, machine, begin, end, dag.w_demand, g, n)
            for i in range(turn, turn + n):
                placed = dag.w_task_at[i]
                space.state_begin[placed] = begin
                space.state_end[placed] = end
                space.state_machine[placed] = machine
            space.state_first[g] = min(space.state_first[g], begin)
            space.state_last[g] = max(space.state_last[g], end)
            space.state_span[END] = max(space.state_span[END], end)
            n_left -= n
            n_ready = _release_children(dag, space, turn, n, g, label, subset, base, n_ready)
            turn += n
    return n_left == 0 and space.state_span[END] - base < limit


@inlined
def _count_waiting(dag, label, subset):
    """Count the parents that each task waits for; return the number of tasks to place."""
    for g in range(len(dag.w_order)):
        dag.state_left[g] = 0
        dag.state_waits[g] = 0
        dag.state_fit_for[g, 0] = np.inf
        dag.state_fit_for[g, 1] = np.inf
    n = 0
    for t in range(len(label)):
        dag.state_missing[t] = 0
        if label[t] == subset:
            dag.state_left[dag.w_task_stage[t]] += 1
            n += 1
    for g in range(len(dag.w_order)):
        if dag.state_left[g] == 0:
            continue
        for e in range(dag.w_child0[g], dag.w_child0[g + 1]):
            child = dag.w_child[e]
            if dag.w_child_kind[e] == 0:
                dag.state_waits[child] += 1
                continue
            t0, c0 = dag.w_task0[g], dag.w_task0[child]
            for k in range(count_pairs(dag.w_task0, g, child)):
                dag.state_missing[c0 + k] += label[t0 + k] == subset
    return n


@part
def _open_stage(dag, space, g, label, subset, base, n_ready):
    """Make ready, in runs, the tasks of stage `g` without unplaced one-to-one parents."""
    release = base
    for e in range(dag.w_parent0[g], dag.w_parent0[g + 1]):
        if dag.w_parent_kind[e] == 0:
            release = max(release, space.state_last[dag.w_parent[e]])
    dag.state_release[g] = release
    first, until = -1, -1
    for k in range(dag.w_task0[g], dag.w_task0[g + 1]):
        turn = dag.w_places[k]
        t = dag.w_task_at[turn]
        if label[t] != subset or dag.state_missing[t] > 0:
            continue
        n_ready = _push_run(dag, first, until, turn, n_ready)
        if turn != until:
            first = turn
        until = turn + 1
    n_ready = _push_run(dag, first, until, -1, n_ready)
    return n_ready


@inlined
def _count_like(dag, space, g, turn, n, release, label, subset):
    """Count the tasks of stage `g` that go with the first of the `n` from `turn` on.

    They are as long, and have the same `release`; no child of one of them goes before the next.
    """
    duration = dag.w_duration[dag.w_task_at[turn]]
    for i in range(1, n):
        t = dag.w_task_at[turn + i]
        if dag.w_duration[t] != duration or _earliest_begin(dag, space, t, g) != release:
            return i
        if _has_earlier_child(dag, g, dag.w_task_at[turn + i - 1], turn + i, label, subset):
            return i
    return n


@part
def _has_earlier_child(dag, g, t, turn, label, subset):
    """Tell whether a one-to-one child of task `t` may go before `turn`."""
    for e in range(dag.w_child0[g], dag.w_child0[g + 1]):
        if dag.w_child_kind[e] == 0:
            continue
        other = partner(dag.w_task0, g, t, dag.w_child[e])
        if other >= 0 and label[other] == subset and dag.w_place[other] < turn:
            return True
    return False


@part
def _earliest_begin(dag, space, t, g):
    """Return the latest end of task `t`'s placed parents, or the space's begin."""
    release = dag.state_release[g]
    for e in range(dag.w_parent0[g], dag.w_parent0[g + 1]):
        if dag.w_parent_kind[e] == 0:
            continue
        other = partner(dag.w_task0, g, t, dag.w_parent[e])
        if other >= 0 and space.state_machine[other] >= 0:
            release = max(release, space.state_end[other])
    return release


@part
def _find_machine(dag, space, g, duration, release, base, limit):
    """Find the machine with the earliest room for a task of stage `g`; -1 if it ends too late."""
    tree, room = dag.state_fit[g], dag.state_room[g]
    width = len(room)
    earlier = release < dag.state_fit_for[g, 1]
    if earlier:
        for machine in range(len(space.state_head)):
            room[machine] = -np.inf
    if earlier or duration != dag.state_fit_for[g, 0]:
        for machine in range(width):
            tree[width + machine] = room[machine]
        for node in range(width - 1, 0, -1):
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
    dag.state_fit_for[g, 0] = duration
    dag.state_fit_for[g, 1] = release
    while True:
        bound = max(release, tree[1])
        if bound + duration - base >= limit:
            return -1, bound
        node = 1
        while node < width:
            node *= 2
            if tree[node] > bound:
                node += 1
        machine = node - width
        begin, at_all = earliest(space, machine, bound, duration, dag.w_demand, g)
        if bound <= max(release, room[machine]):  # otherwise there may be room before the bound
            room[machine] = at_all
        if tree[node] < begin:
            tree[node] = begin
            while node > 1:
                node //= 2
                tree[node] = min(tree[2 * node], tree[2 * node + 1])
        if begin == bound:
            return machine, begin


@inlined
def _release_children(dag, space, turn, n, g, label, subset, base, n_ready):
    """Make ready the tasks that waited only for the `n` tasks from `turn` on."""
    dag.state_left[g] -= n
    for e in range(dag.w_child0[g], dag.w_child0[g + 1]):
        child = dag.w_child[e]
        if dag.w_child_kind[e] == 0:
            if dag.state_left[g] == 0:
                dag.state_waits[child] -= 1
                if dag.state_waits[child] == 0 and dag.state_left[child] > 0:
                    n_ready = _open_stage(dag, space, child, label, subset, base, n_ready)
            continue
        first, until = -1, -1
        for i in range(turn, turn + n):
            other = dag.w_task0[child] + dag.w_task_at[i] - dag.w_task0[g]
            if other >= dag.w_task0[child + 1]:
                continue
            dag.state_missing[other] -= 1
            if dag.state_missing[other] > 0 or dag.state_waits[child] > 0:
                continue
            if label[other] == subset:
                n_ready = _push_run(dag, first, until, dag.w_place[other], n_ready)
                if dag.w_place[other] != until:
                    first = dag.w_place[other]
                until = dag.w_place[other] + 1
        n_ready = _push_run(dag, first, until, -1, n_ready)
    return n_ready


@part
def _push_run(dag, first, until, turn, n_ready):
    """Make ready the run from `first` to `until`, if there is one and `turn` does not go on."""
    if first < 0 or turn == until:
        return n_ready
    dag.state_until[first] = until
    binary_push(dag.state_heap, 0, n_ready, first)
    return n_ready + 1
