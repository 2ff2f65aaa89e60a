"""Periodic planning: the table of reservations, of whole nodes from step to step of time."""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import WINDOWS
from sim.engine.kernels.rigid.replan_nodes import allow_usable, drop_closed
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    DEPTH,
    HORIZON,
    N_RECORDS,
    N_STEPS,
    RESOLUTION,
    WINDOW,
)
from sim.engine.kernels.windows import next_begin, next_end


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
