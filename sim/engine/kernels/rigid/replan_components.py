"""Periodic planning of gangs of unequal slots: nodes for one component after the other.

Each by consecutive best fit; where that does not suffice, each on the first nodes with room. Single
devices are looked at as they are now. More nodes do not always mean that a job fits, as components
may take each other's, so each time is tried by itself.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.features import PREEMPTS
from sim.engine.kernels.held_slots import slots_in
from sim.engine.kernels.rigid.replan_ends import (
    ending_jobs,
    first_vacated,
    fits_now,
    has_allowed,
    least_ended,
)
from sim.engine.kernels.rigid.replan_nodes import NEVER, job_width, n_together
from sim.engine.kernels.rigid.replan_registers import (
    BY_PREEMPTING,
    FIRST_WINDOW,
    KILL_WAIT,
    LINEAR,
    N_EXPECTED,
    N_GONE,
    ROOM_BY,
)
from sim.engine.kernels.rigid.room import CONSECUTIVE, PLANNED, find_together


@part
def choose_together(st, j, free, is_now):
    """Choose allowed nodes for all components of job `j`, by what is free; False if it fits not.

    ``state_task_node`` gets the node of each task, and ``state_node_tasks`` the tasks of each.
    """
    st.state_node_left[:] = free
    if not find_together(st, j, st.state_node_left, PLANNED, CONSECUTIVE, is_now):
        return False
    note_found(st, j)
    first = st.w_stage_task0[st.w_job_stage0[j]]
    st.state_node_tasks[:] = 0
    for entry in range(first, first + job_width(st, j)):
        st.state_node_tasks[st.state_task_node[entry]] += 1
    return True


@part
def may_fit_alone(st, j):
    """Tell whether each component of job `j` fits the allowed nodes now, without the others."""
    for c in range(first_component(st, j), end_component(st, j)):
        total = 0
        for node in range(len(st.state_node_allowed)):
            if st.state_node_allowed[node]:
                total += slots_in(st, j, c, node, st.state_node_now, True)
        if total < st.w_slot_size[c]:
            return False
    return True


@part
def has_any_room(st, j):
    """Tell whether any slot of job `j` fits an allowed node now."""
    for node in range(len(st.state_node_allowed)):
        for c in range(first_component(st, j), end_component(st, j)):
            is_allowed = st.state_node_allowed[node]
            if is_allowed and slots_in(st, j, c, node, st.state_node_now, True) > 0:
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
