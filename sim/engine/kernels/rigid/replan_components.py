"""Periodic planning of gangs of unequal slots: nodes for one component after the other.

Each by consecutive best fit; where that does not suffice, each on the first nodes with room. Single
devices are looked at as they are now. More nodes do not always mean that a job fits, as components
may take each other's, so each time is tried by itself.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices
from sim.engine.kernels.choosing.devices import n_by_devices, release
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.features import CHOOSES, PREEMPTS
from sim.engine.kernels.rigid.replan_ends import (
    ending_jobs,
    first_vacated,
    fits_now,
    has_allowed,
    least_ended,
)
from sim.engine.kernels.rigid.replan_nodes import NEVER, choose_nodes, n_together
from sim.engine.kernels.rigid.replan_registers import (
    BY_PREEMPTING,
    FIRST_WINDOW,
    KILL_WAIT,
    LINEAR,
    N_EXPECTED,
    N_GONE,
    ROOM_BY,
)
from sim.engine.kernels.state import CONSTRAINED

UNLIMITED = 2**62


@part
def choose_together(st, j, free, as_now):
    """Choose allowed nodes for all components of job `j`, by what is free; False if it fits not.

    ``state_task_node`` gets the node of each task, and ``state_node_tasks`` the tasks of each.
    """
    return _choose(st, j, free, as_now, False) or _choose(st, j, free, as_now, True)


@part
def _choose(st, j, free, as_now, in_order):
    left, taken, tasks = st.state_node_left, st.state_node_given, st.state_node_tasks
    left[:] = free
    taken[:] = 0
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    c, end = first_component(st, j), end_component(st, j)
    while c < end and _list_room(st, j, c, as_now) >= st.w_slot_size[c]:
        if in_order:
            _choose_first(st, st.w_slot_size[c])
        else:
            choose_nodes(st, st.w_slot_size[c])
        i = 0
        for node in range(len(tasks)):
            taken[node] += tasks[node]
            for _ in range(tasks[node]):
                for r in range(left.shape[1]):
                    left[node, r] -= st.w_slot[c, r]
                if as_now and CHOOSES and st.state_i[CONSTRAINED]:
                    bits = acquire_devices(st, st.w_slot, c, node)
                    st.state_held_devices[st.w_slot0[c] + i] = bits
                st.state_task_node[entry] = node
                entry += 1
                i += 1
        c += 1
    if as_now and CHOOSES and st.state_i[CONSTRAINED]:
        _release_devices(st, j, c)
    tasks[:] = taken
    return c == end


@inlined
def _release_devices(st, j, end):
    """Release the devices that were taken on trial for the components of job `j` before `end`."""
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    for c in range(first_component(st, j), end):
        for i in range(st.w_slot0[c], st.w_slot0[c] + st.w_slot_size[c]):
            release(st, st.w_slot, c, st.state_task_node[entry], st.state_held_devices[i])
            entry += 1


@part
def _list_room(st, j, c, as_now):
    """Set the slots of component `c` that fit what each allowed node has left; return the sum."""
    room, total = st.state_node_room, 0
    for node in range(len(room)):
        room[node] = 0
        if st.state_node_allowed[node] and not (
            st.w_job_one_per_node[j] and st.state_node_given[node] > 0
        ):
            room[node] = _room_of(st, j, c, st.state_node_left, node, as_now)
        total += room[node]
    return total


@part
def _room_of(st, j, c, free, node, as_now):
    """Count the slots of component `c` of job `j` that fit what is free on a node."""
    room = UNLIMITED
    for r in range(len(st.state_wants)):
        if st.w_slot[c, r] > 0:
            room = min(room, max(free[node, r], 0) // st.w_slot[c, r])
    if room == UNLIMITED:
        room = st.w_slot_size[c]
    if CHOOSES and st.state_i[CONSTRAINED]:
        if not st.w_slot_allowed[c] & st.c_mach_class[node]:
            return 0
        if as_now and room > 0:
            room = min(room, n_by_devices(st, st.w_slot, c, node))
    return min(room, 1) if st.w_job_one_per_node[j] else room


@inlined
def _choose_first(st, n_left):
    """Choose the first nodes with room for so many tasks."""
    for node in range(len(st.state_node_room)):
        st.state_node_tasks[node] = min(st.state_node_room[node], n_left)
        n_left -= st.state_node_tasks[node]


@part
def may_fit_alone(st, j):
    """Tell whether each component of job `j` fits the allowed nodes now, without the others."""
    st.state_node_left[:] = st.state_node_now
    st.state_node_given[:] = 0
    for c in range(first_component(st, j), end_component(st, j)):
        if _list_room(st, j, c, True) < st.w_slot_size[c]:
            return False
    return True


@part
def has_any_room(st, j):
    """Tell whether any slot of job `j` fits an allowed node now."""
    for node in range(len(st.state_node_allowed)):
        for c in range(first_component(st, j), end_component(st, j)):
            is_allowed = st.state_node_allowed[node]
            if is_allowed and _room_of(st, j, c, st.state_node_now, node, True) > 0:
                return True
    return False


@part
def expected_together(st, now, j, may_wait):
    """Return when heterogeneous job `j` could start on the allowed nodes, which it chooses, s.

    As `sim.engine.kernels.rigid.replan_ends.expected_start`.
    """
    may_fit_now = st.state_replan[ROOM_BY] >= n_together(st, j) and fits_now(st, j)
    if may_fit_now and choose_together(st, j, st.state_node_now, True):
        return now
    if not may_wait:
        return NEVER
    n_least = 0 if may_fit_now else least_ended(st, j)  # before that the first does not fit
    if n_least < 0:
        return NEVER
    running, future = ending_jobs(st), st.state_node_ended
    first, n = st.p_replan[FIRST_WINDOW], st.state_replan[N_EXPECTED]
    window, aligned, i = first, 0, 0
    future[:] = st.state_node_now
    if PREEMPTS and st.state_replan[N_GONE] > 0:
        while i < st.state_replan[N_GONE]:
            i += 1
            if has_allowed(st, i - 1):
                _vacate(st, i - 1, future)
        if choose_together(st, j, future, False):
            st.state_replan[BY_PREEMPTING] = 1
            return now + 1
    while i < n:
        last = NEVER
        while i < n:
            end = st.state_job_expected_end[running[i]]
            i += 1
            if not has_allowed(st, i - 1):
                continue  # passed over, whatever its end
            if aligned == 0:
                aligned = end + first - end % first
            last = end
            _vacate(st, i - 1, future)
            if i < n and st.state_job_expected_end[running[i]] > aligned + window:
                break  # by the next running job, wherever it runs
        if last == NEVER:
            return NEVER
        while True:
            window += st.p_replan[LINEAR] if st.p_replan[LINEAR] > 0 else window
            if i == n or st.state_job_expected_end[running[i]] <= aligned + window:
                break
        if i >= n_least and choose_together(st, j, future, False):
            return last if last > now else max(last + st.p_replan[KILL_WAIT], now + 1)
    return NEVER


@part
def _vacate(st, i, future):
    """Set what is free on the nodes of running job `i` once it, and those before it, have ended."""
    for k in range(first_vacated(st, i), st.state_vacated_end[i]):
        for r in range(len(st.state_wants)):
            future[st.state_vacated_node[k], r] = st.state_vacated_free[k, r]


@part
def note_found(st, j):
    """Note the machines that were found for heterogeneous gang `j` as the nodes of its tasks."""
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot0[c] + st.w_slot_size[c] - 1, st.w_slot0[c] - 1, -1):
            st.state_task_node[entry] = st.state_held_machine[i]
            entry += 1
