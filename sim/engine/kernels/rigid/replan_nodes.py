"""Periodic planning: room on nodes, choice of nodes, expected ends, and the table of reservations.

A node is a machine, or a slot of a pool. The facts are those of Slurm 22.05: nodes by consecutive
best fit, running jobs that end one by one as expected, in windows of time, and whole nodes that are
reserved.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.features import CHOOSES, GANGS, WINDOWS
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    DEPTH,
    HORIZON,
    N_FREE,
    N_RECORDS,
    N_STEPS,
    RESOLUTION,
    WINDOW,
)
from sim.engine.kernels.slot_counts import most_slots
from sim.engine.kernels.state import CONSTRAINED, HARD_CAPS, UNIT
from sim.engine.kernels.windows import UNFORESEEN, is_closed, next_begin, next_end

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


@part
def may_fit(st, j):
    """Tell whether job `j` may fit what is free, on whatever nodes, and its cap."""
    if st.state_i[HARD_CAPS] and not is_within_cap(st, j):
        return False
    if st.state_i[UNIT]:
        return job_width(st, j) <= st.state_replan[N_FREE]
    return not GANGS or most_slots(st, j) >= job_width(st, j)


@part
def is_within_cap(st, j):
    """Tell whether all tasks of job `j` stay within its organisation's cap."""
    if GANGS and st.w_job_min_tasks[j] > 0:
        return within_cap(st, j, st.w_job_slot, j, st.w_job_min_tasks[j])
    return within_cap(st, j, st.w_stage_demand, demand_row(st, st.w_job_stage0[j]), 1)


@part
def allow_usable(st, j, is_planned):
    """Allow the nodes that are there, and of a class on which job `j` may run.

    `is_planned`: also those that are known to be back.
    """
    allowed = st.state_node_allowed
    absent = UNFORESEEN if WINDOWS and is_planned else -1
    allowed[:] = 1
    if st.state_i[UNIT]:
        if st.state_mach_lost[0] & absent:
            allowed[:] = 0
        return
    for node in range(len(allowed)):
        if st.state_mach_lost[node] & absent:
            allowed[node] = 0
        elif CHOOSES and st.state_i[CONSTRAINED]:
            allowed[node] = st.w_job_allowed[j] & st.c_mach_class[node] != 0


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
    for node in range(len(room)):
        room[node] = 0
        if allowed[node]:
            room[node] = room_on(st, j, free, node)
            if CHOOSES and st.state_i[CONSTRAINED] and room[node] > 0:  # of devices, as now
                room[node] = min(room[node], n_by_devices(st, st.w_job_slot, j, node))
        total += room[node]
    return total


@part
def room_on(st, j, free, node):
    """Count the tasks of job `j` that fit what is free on a node."""
    if st.state_i[UNIT]:
        return free[node, 0]
    for r in range(st.c_alignment_scale.shape[1]):
        if 0 < job_demand(st, j, r) > free[node, r]:
            return 0
    room = UNLIMITED
    for r in range(st.c_alignment_scale.shape[1]):
        demand = job_demand(st, j, r)
        if demand > 0:
            room = min(room, free[node, r] // demand)
    if room == UNLIMITED:
        room = job_width(st, j)
    return min(room, 1) if st.w_job_one_per_node[j] else room


@part
def choose_nodes(st, j):
    """Choose nodes for job `j`, which fits, from their room, by consecutive best fit.

    Those of the least weight come first. Of one weight, from the shortest row of nodes that
    suffices, or the longest: the tightest single node that takes all that is left, or nodes from
    the row's begin. ``state_node_tasks`` gets the tasks.
    """
    left, level, n_rows = job_width(st, j), 0, _list_rows(st, 0)
    room, tasks = st.state_node_room, st.state_node_tasks
    tasks[:] = 0
    while left > 0:
        row = _best_row(st, n_rows, left)
        if CHOOSES and row < 0:  # all nodes of this weight are taken
            level += 1
            n_rows = _list_rows(st, level)
            continue
        first, end, best = st.state_row_bound[2 * row], st.state_row_bound[2 * row + 1], -1
        if not st.state_i[UNIT]:  # a slot takes one: those from the row's begin
            for node in range(first, end):
                if room[node] >= left and (best < 0 or room[node] < room[best]):
                    best = node
        if best >= 0:
            tasks[best] = left
            return
        for node in range(first, end):
            tasks[node] = min(room[node], left)
            left -= tasks[node]
        st.state_row_room[row] = 0


@inlined
def _list_rows(st, level):
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
        total = bound[2 * row + 1] - bound[2 * row]
        if not st.state_i[UNIT]:
            total = 0
            for node in range(bound[2 * row], bound[2 * row + 1]):
                total += room[node]
        rows[row] = total
    return n_rows


@inlined
def _best_row(st, n_rows, left):
    """Return the first of the rows that suit `left` tasks best."""
    rows, best, best_room = st.state_row_room, -1, 0
    for row in range(n_rows):
        room = rows[row]
        if room > best_room if best_room < left else left <= room < best_room:
            best, best_room = row, room
    return best


@part
def take_chosen(st, j):
    """Take the room of job `j` on the chosen nodes, and note them as its own."""
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
    st.state_replan[N_FREE] -= job_width(st, j)


@part
def is_completing(st):
    """Tell whether a chosen node completes a job."""
    for node in range(len(st.state_node_tasks)):
        if st.state_node_tasks[node] > 0 and st.state_node_completing[node] > 0:
            return True
    return False


@inlined
def begin_table(st, now):
    """Begin a table of reservations: one step, in which all nodes are free of them."""
    resolution = st.p_replan[RESOLUTION]
    st.state_step_begin[0] = now // resolution * resolution
    st.state_replan[HORIZON] = (now + st.p_replan[WINDOW]) // resolution * resolution
    st.state_step_nodes[0, :] = 1
    st.state_replan[N_STEPS] = 1
    st.state_replan[N_RECORDS] = 1


@part
def allow_unreserved(st, j, now, begin, end):
    """Allow the nodes that job `j` may use, if not reserved between two times.

    Return when that changes, s: the first end of a step, from `begin` on, after which others of
    them are free, or 1 s after that of a window, if one closes any node; 0 for none.
    """
    allowed, nodes, later = st.state_node_allowed, st.state_step_nodes, 0
    n, usable = len(allowed), st.state_node_usable
    allow_usable(st, j, begin > now)
    any_closed = drop_closed(st, j, begin, end) if WINDOWS else False
    usable[:] = allowed
    for k in range(st.state_replan[N_STEPS]):
        last = step_end(st, k)
        if last <= begin:
            continue
        if later == 0 and k + 1 < st.state_replan[N_STEPS]:
            gained, current, after = 0, nodes[k], nodes[k + 1]
            for node in range(n):
                gained |= usable[node] & after[node] & ~(allowed[node] & current[node])
            if gained:
                later = last
        if st.state_step_begin[k] > end:
            break
        current = nodes[k]
        for node in range(n):
            allowed[node] &= current[node]
    if WINDOWS and any_closed:
        opening = _look_again(st, j, begin)
        if opening < st.state_replan[HORIZON] and not 0 < later <= opening:
            later = int(opening)
    return later


@inlined
def _look_again(st, j, begin):
    """Return 1 s after the first end of a window from `begin` on, which is rounded up.

    For a job with a reservation: the next time at which that begins.
    """
    clock_s, resolution = st.p_replan_s[CLOCK], st.p_replan[RESOLUTION]
    if st.w_job_reservation[j] >= 0:
        opening = next_begin(st, j, begin - clock_s)
        return math.inf if opening == math.inf else max(math.ceil(clock_s + opening), begin + 1.0)
    opening = next_end(st, math.nextafter(begin - clock_s, -math.inf))
    if opening == math.inf:
        return math.inf
    return math.ceil((clock_s + opening) / resolution) * resolution + 1.0


@part
def step_end(st, k):
    """Return the end of a step, s."""
    if k + 1 < st.state_replan[N_STEPS]:
        return st.state_step_begin[k + 1]
    return st.state_replan[HORIZON]


@part
def is_reserved(st, begin, end):
    """Tell whether a chosen node is reserved at some time between two, rounded down."""
    resolution = st.p_replan[RESOLUTION]
    begin, end = begin // resolution * resolution, end // resolution * resolution
    tasks = st.state_node_tasks
    for k in range(st.state_replan[N_STEPS]):
        if step_end(st, k) > begin and st.state_step_begin[k] < end:
            nodes, n_reserved = st.state_step_nodes[k], 0
            for node in range(len(tasks)):
                n_reserved += (tasks[node] > 0) & (nodes[node] == 0)
            if n_reserved:
                return True
    return False


@part
def reserve_chosen(st, begin, end):
    """Reserve the chosen nodes between two times, rounded down; False if the table is full."""
    if st.state_replan[N_RECORDS] >= st.p_replan[DEPTH]:
        return False
    resolution = st.p_replan[RESOLUTION]
    begin = max(begin // resolution * resolution, st.state_step_begin[0])
    end = max(end // resolution * resolution, begin + resolution)
    if begin >= st.state_replan[HORIZON]:
        return True
    if begin == st.state_step_begin[0] and st.state_replan[N_RECORDS] == 1:
        st.state_replan[N_RECORDS] += 1  # Slurm cuts off an empty step
    first = _cut(st, begin)
    last = _cut(st, end) if end < st.state_replan[HORIZON] else st.state_replan[N_STEPS]
    tasks = st.state_node_tasks
    for k in range(first, last):
        nodes = st.state_step_nodes[k]
        for node in range(len(tasks)):
            nodes[node] &= tasks[node] == 0
    _join_equal(st)
    return True


@part
def _cut(st, time):
    """Return the step that begins at `time`; cut one in two if none does."""
    begin, nodes, n = st.state_step_begin, st.state_step_nodes, st.state_replan[N_STEPS]
    k = n
    while begin[k - 1] > time:
        k -= 1
    if begin[k - 1] == time:
        return k - 1
    for i in range(n, k, -1):
        begin[i] = begin[i - 1]
        nodes[i] = nodes[i - 1]
    begin[k] = time
    nodes[k] = nodes[k - 1]
    st.state_replan[N_STEPS] = n + 1
    st.state_replan[N_RECORDS] += 1
    return k


@inlined
def _join_equal(st):
    """Join steps in which the same nodes are reserved."""
    begin, nodes, n = st.state_step_begin, st.state_step_nodes, 1
    for k in range(1, st.state_replan[N_STEPS]):
        changed, current, before = 0, nodes[k], nodes[n - 1]
        for node in range(nodes.shape[1]):
            changed |= current[node] ^ before[node]
        if changed:
            if n < k:
                begin[n] = begin[k]
                nodes[n] = nodes[k]
            n += 1
    st.state_replan[N_STEPS] = n


@inlined
def avoid_completing(st, j):
    """Choose nodes for job `j`, which can start now, among those that complete no job."""
    for node in range(len(st.state_node_allowed)):
        if st.state_node_completing[node] > 0:
            st.state_node_allowed[node] = 0
    list_room(st, j)
    choose_nodes(st, j)
