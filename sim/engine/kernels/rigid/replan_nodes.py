"""Periodic planning: room on nodes, and the choice of nodes.

A node is a machine, or a slot of a pool. The facts are those of Slurm 22.05: nodes by consecutive
best fit, running jobs that end one by one as expected, in windows of time, and whole nodes that are
reserved.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import AMOUNT, BLOCKS, PASSES, WITHIN
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import CAPS, CHOOSES, FLAVORS, GANGS, WINDOWS
from sim.engine.kernels.resources import demand_row, is_other_flavor, within_cap
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    N_EXPECTED,
    N_FREE,
    N_KNOWN,
    N_OPEN,
    RESERVED_FROM,
)
from sim.engine.kernels.slot_counts import most_slots
from sim.engine.kernels.state import CONSTRAINED, EXCLUSIVES, HARD_CAPS, UNIT
from sim.engine.kernels.windows import UNFORESEEN, is_closed

UNLIMITED = 2**62
NEVER = -1


@part
def job_width(st, j):
    """Return the number of tasks of job `j`, which all start together."""
    return st.w_stage_task0[st.w_job_stage0[j + 1]] - st.w_stage_task0[st.w_job_stage0[j]]


@part
def job_demand(st, j, r):
    """Return what each task of job `j` takes of resource `r`, quanta."""
    if st.state_i[UNIT]:
        return 1
    if GANGS and st.w_job_min_tasks[j] > 0:
        return st.w_job_slot[j, r]
    return st.w_stage_demand[st.w_job_stage0[j], r]


@part
def n_together(st, j):
    """Return the number of tasks of job `j` that are alike: of several components, the first's."""
    return st.w_slot_size[first_component(st, j)] if is_searched(st, j) else job_width(st, j)


@part
def limit_s(st, j):
    """Return the limit of job `j`, whole s."""
    return math.ceil(st.p_job_expected_s[j])


@inlined
def list_free(st):
    """Set what is free on each node now, and the number of free slots of a pool."""
    now, n_free = st.state_node_now, 0
    if st.state_i[UNIT]:
        for node in range(len(st.state_node_busy)):
            now[node, 0] = 1 - st.state_node_busy[node]
            n_free += now[node, 0]
    else:
        now[:] = st.state_mach_free
    st.state_replan[N_FREE] = n_free
    st.state_replan[RESERVED_FROM] = NEVER
    n_open = 0
    for node in range(len(now)):
        st.state_open[n_open] = node
        n_open += _is_open(st, node)
    st.state_replan[N_OPEN] = n_open
    forget_ends(st)


@part
def forget_ends(st):
    """Forget what is free as running jobs end: it is worked out anew, from what is free now."""
    st.state_like[:] = -1
    st.state_node_future[:] = st.state_node_now
    st.state_replan[N_KNOWN] = 0


@inlined
def _is_open(st, node):
    """Tell whether the task that demands least of each resource fits a node now."""
    for r in range(st.c_alignment_scale.shape[1]):
        if st.w_least_demand[r] > st.state_node_now[node, r]:
            return False
    return True


@part
def may_fit(st, j):
    """Tell whether job `j` may fit what is free, on whatever nodes, and its cap."""
    if st.state_i[HARD_CAPS] and not is_within_cap(st, j):
        return False
    if st.state_i[UNIT]:
        return job_width(st, j) <= st.state_replan[N_FREE]
    return not GANGS or is_searched(st, j) or most_slots(st, j) >= job_width(st, j)


@part
def is_within_cap(st, j):
    """Tell whether all tasks of job `j` stay within its organisation's cap."""
    if GANGS and st.w_job_min_tasks[j] > 0:
        return within_cap(st, j, st.w_job_total, j, 1)
    return within_cap(st, j, st.w_stage_demand, demand_row(st, st.w_job_stage0[j]), 1)


@part
def allow_usable(st, j, is_planned):
    """Allow the nodes that are there, and of a class that counts for the start of job `j`.

    Of the flavors that are open. `is_planned`: also those that are known to be back.
    """
    allowed = st.state_node_allowed
    absent = UNFORESEEN if WINDOWS and is_planned else -1
    allowed[:] = 1
    if st.state_i[UNIT]:
        if st.state_mach_lost[0] & absent:
            allowed[:] = 0
        return
    for node in range(len(allowed)):
        if st.state_mach_lost[node] & absent or (FLAVORS and is_other_flavor(st, node)):
            allowed[node] = 0
        elif CHOOSES and st.state_i[CONSTRAINED]:
            allowed[node] = st.w_job_planned_on[j] & st.c_mach_class[node] != 0


@part
def may_host(st, j, node):
    """Tell whether a node is of a class for job `j`; of several components, for the first one."""
    if not (CHOOSES and st.state_i[CONSTRAINED]):
        return True
    if is_searched(st, j):
        return st.w_slot_allowed[first_component(st, j)] & st.c_mach_class[node] != 0
    return st.w_job_allowed[j] & st.c_mach_class[node] != 0


@part
def drop_closed(st, j, begin, end):
    """Drop the allowed nodes that are closed to job `j` between two times; tell whether any is.

    Those it could not use anyway count, as in Slurm.
    """
    clock_s, any_closed, allowed = st.p_replan_s[CLOCK], False, st.state_node_allowed
    for node in range(len(allowed)):
        machine = 0 if st.state_i[UNIT] else node
        if is_closed(st, j, machine, begin - clock_s, end - clock_s):
            any_closed = True
            allowed[node] = 0
    return any_closed


@part
def list_room(st, j):
    """Set the number of tasks of job `j` that fit each allowed node now; return their sum."""
    total, room, allowed, free = 0, st.state_node_room, st.state_node_allowed, st.state_node_now
    if st.state_i[UNIT]:
        for node in range(len(room)):
            room[node] = allowed[node] * free[node, 0]
            total += room[node]
        return total
    set_wants(st, j)
    room[:] = 0
    for i in range(st.state_replan[N_OPEN]):
        node = st.state_open[i]
        if allowed[node] and may_host(st, j, node):
            room[node] = room_on(st, j, free, node)
            if CHOOSES and st.state_i[CONSTRAINED] and room[node] > 0:  # of devices, as now
                room[node] = min(room[node], n_by_devices(st, st.w_job_slot, j, node))
            note_fit(st, j, node, free, node)
        total += room[node]
    return total


@part
def set_wants(st, j):
    """Set what each task of job `j` takes, for `room_on`; of several components, the first's."""
    for r in range(len(st.state_wants)):
        if is_searched(st, j):
            st.state_wants[r] = st.w_slot[first_component(st, j), r]
        else:
            st.state_wants[r] = job_demand(st, j, r)


@part
def room_on(st, j, free, row):
    """Count the tasks of job `j`, whose wants are set, that fit what is free in a row."""
    wants, room = st.state_wants, UNLIMITED
    if st.state_i[UNIT]:
        return free[row, 0]
    for r in range(len(wants)):
        if 0 < wants[r] > free[row, r]:
            return 0
    for r in range(len(wants)):
        if wants[r] > 0:
            room = min(room, free[row, r] // wants[r])
    if room == UNLIMITED:
        room = n_together(st, j)
    return min(room, 1) if st.w_job_one_per_node[j] else room


@part
def choose_nodes(st, j, left):
    """Choose nodes for so many tasks of job `j`, which fit, by consecutive best fit.

    Those of the least weight come first. Of one weight, from the row of nodes that suffices and has
    least, or from that with most: the tightest single node that takes all that is left, or nodes
    from the row's begin. Rows and nodes are compared by the tasks that fit, or by what is free of a
    resource. ``state_node_tasks`` gets the tasks.
    """
    room, tasks = st.state_node_room, st.state_node_tasks
    fit = st.state_node_fit if st.p_fits_by[j] >= 0 else room
    level, n_rows = 0, _list_rows(st, 0, fit)
    tasks[:] = 0
    while left > 0:
        row = _best_row(st, n_rows, left)
        if CHOOSES and row < 0:  # all nodes of this weight are taken
            level += 1
            n_rows = _list_rows(st, level, fit)
            continue
        first, end, best = st.state_row_bound[2 * row], st.state_row_bound[2 * row + 1], -1
        if not st.state_i[UNIT]:  # a slot takes one: those from the row's begin
            for node in range(first, end):
                if room[node] >= left and (best < 0 or fit[node] < fit[best]):
                    best = node
        if best >= 0:
            tasks[best] = left
            return
        for node in range(first, end):
            tasks[node] = min(room[node], left)
            left -= tasks[node]
        st.state_row_room[row] = 0


@inlined
def _list_rows(st, level, fit):
    """List the rows of consecutive nodes of a weight with room; return their number."""
    room, bound, rows = st.state_node_room, st.state_row_bound, st.state_row_room
    n_bounds, before = 0, 0
    for node in range(len(room)):  # no branches: they would often be mispredicted
        has_room = int(room[node] > 0)
        if CHOOSES and not st.state_i[UNIT]:
            has_room &= int(st.c_mach_level[node] == level)
        bound[n_bounds] = node
        n_bounds += has_room ^ before
        before = has_room
    bound[n_bounds] = len(room)
    n_rows = (n_bounds + before) // 2
    for row in range(n_rows):
        total = total_fit = bound[2 * row + 1] - bound[2 * row]
        if not st.state_i[UNIT]:
            total = total_fit = 0
            for node in range(bound[2 * row], bound[2 * row + 1]):
                total += room[node]
                total_fit += fit[node]
        rows[row] = total
        st.state_row_fit[row] = total_fit
    return n_rows


@inlined
def _best_row(st, n_rows, left):
    """Return the first of the rows that suit `left` tasks best, one after the other; -1 for none.

    As in Slurm, one that does not suffice and has more is better even than one that does.
    """
    best, best_fit, suffices = -1, 0, False
    for row in range(n_rows):
        room, fit = st.state_row_room[row], st.state_row_fit[row]
        if room > 0 and (
            best < 0
            or (room >= left and (not suffices or fit < best_fit))
            or (room < left and fit > best_fit)
        ):
            best, best_fit, suffices = row, fit, room >= left
    return best


@part
def note_fit(st, j, node, free, row):
    """Note what is free, in a row, of the resource by which the nodes of job `j` are compared."""
    if st.p_fits_by[j] >= 0:
        st.state_node_fit[node] = free[row, st.p_fits_by[j]]


@part
def over_with_nodes(st, j):
    """Tell whether exclusive gang `j` exceeds a cap with all that its chosen nodes have.

    It was within it with what it asks for. Nothing is exceeded while no job runs: it would choose
    the same nodes for ever.
    """
    over = WITHIN
    if not (CAPS and GANGS and st.state_i[EXCLUSIVES] and st.w_job_exclusive[j]):
        return over
    if st.w_job_min_tasks[j] == 0 or st.state_replan[N_EXPECTED] == 0:
        return over
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] != AMOUNT or st.w_job_group_spared[i]:
            continue
        amount = _amount_on_nodes(st, j, st.c_group_resource[n])
        if st.state_group_used[n] + amount > st.state_group_cap[n]:
            if not st.c_group_blocks[n]:
                return PASSES
            over = BLOCKS
    return over


@part
def _amount_on_nodes(st, j, r):
    """Return how much of resource `r` the chosen nodes of exclusive job `j` have, quanta."""
    amount = 0
    if is_searched(st, j):
        first = st.w_stage_task0[st.w_job_stage0[j]]
        for entry in range(first, first + job_width(st, j)):
            amount += st.c_capacity[st.state_task_node[entry], r]
        return amount
    for node in range(len(st.state_node_tasks)):
        if st.state_node_tasks[node] > 0:
            amount += st.c_capacity[node, r]
    return amount


@part
def take_chosen(st, j):
    """Take the room of job `j` on the chosen nodes, and note them as its own."""
    if is_searched(st, j):
        _take_components(st, j)
    else:
        _take_tasks(st, j)
    st.state_replan[N_FREE] -= job_width(st, j)
    st.state_replan[RESERVED_FROM] = NEVER
    forget_ends(st)


@inlined
def _take_tasks(st, j):
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    for node in range(len(st.state_node_tasks)):
        tasks = st.state_node_tasks[node]
        if tasks == 0:
            continue
        for r in range(st.state_node_now.shape[1]):
            st.state_node_now[node, r] -= tasks * job_demand(st, j, r)
        for _ in range(tasks):
            st.state_task_node[entry] = node
            entry += 1


@inlined
def _take_components(st, j):
    """Take the room of heterogeneous job `j` on the nodes of its tasks."""
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    for c in range(first_component(st, j), end_component(st, j)):
        for _ in range(st.w_slot_size[c]):
            for r in range(st.state_node_now.shape[1]):
                st.state_node_now[st.state_task_node[entry], r] -= st.w_slot[c, r]
            entry += 1


@part
def is_completing(st):
    """Tell whether a chosen node completes a job."""
    for node in range(len(st.state_node_tasks)):
        if st.state_node_tasks[node] > 0 and st.state_node_completing[node] > 0:
            return True
    return False


@inlined
def avoid_completing(st, j):
    """Choose nodes for job `j`, which can start now, among those that complete no job."""
    for node in range(len(st.state_node_allowed)):
        if st.state_node_completing[node] > 0:
            st.state_node_allowed[node] = 0
    list_room(st, j)
    choose_nodes(st, j, job_width(st, j))
