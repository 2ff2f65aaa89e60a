"""Periodic planning: the table of reservations, of whole nodes from step to step of time."""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import WINDOWS
from sim.engine.kernels.rigid.replan_nodes import NEVER, allow_usable, drop_closed
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    DEPTH,
    END_STEP,
    FIRST_STEP,
    HORIZON,
    N_RECORDS,
    N_STEPS,
    RESERVED_FROM,
    RESOLUTION,
    USABLE_WHEN,
    WINDOW,
)
from sim.engine.kernels.windows import next_begin, next_end


@inlined
def begin_table(st, now):
    """Begin a table of reservations: one step, in which all nodes are free of them."""
    resolution = st.p_replan[RESOLUTION]
    st.state_step_begin[0] = now // resolution * resolution
    st.state_replan[HORIZON] = (now + st.p_replan[WINDOW]) // resolution * resolution
    for k in range(len(st.state_step_row)):
        st.state_step_row[k] = k
    st.state_step_nodes[0, :] = 1
    st.state_replan[N_STEPS] = 1
    st.state_replan[N_RECORDS] = 1


@part
def begin_search(st):
    """Begin to look for nodes for another job: no step is in its time."""
    st.state_node_held[:] = 0
    st.state_replan[FIRST_STEP] = st.state_replan[END_STEP] = 0
    st.state_replan[USABLE_WHEN] = NEVER


@part
def allow_unreserved(st, j, now, begin, end):
    """Allow the nodes that job `j` may use, if not reserved between two times.

    Of one search both times only get later. Return when that changes, s: the first end of a step,
    from `begin` on, after which others of them are free, or 1 s after that of a window, if one
    closes any node; 0 for none.
    """
    allowed, usable, held = st.state_node_allowed, st.state_node_usable, st.state_node_held
    any_closed = False
    if WINDOWS or st.state_replan[USABLE_WHEN] != (begin > now):
        st.state_replan[USABLE_WHEN] = begin > now
        allow_usable(st, j, begin > now)
        any_closed = drop_closed(st, j, begin, end) if WINDOWS else False
        usable[:] = allowed
    _move_search(st, begin, end)
    later = _next_gain(st, end)
    for node in range(len(allowed)):
        allowed[node] = usable[node] & (held[node] == 0)
    if WINDOWS and any_closed:
        opening = _look_again(st, j, begin)
        if opening < st.state_replan[HORIZON] and not 0 < later <= opening:
            later = int(opening)
    return later


@inlined
def _move_search(st, begin, end):
    """Count the steps between two times in which each node is reserved."""
    first, last = st.state_replan[FIRST_STEP], st.state_replan[END_STEP]
    held, n_steps = st.state_node_held, st.state_replan[N_STEPS]
    while last < n_steps and st.state_step_begin[last] <= end:
        nodes = step_nodes(st, last)
        for node in range(len(held)):
            held[node] += nodes[node] == 0
        last += 1
    while first < last and step_end(st, first) <= begin:
        nodes = step_nodes(st, first)
        for node in range(len(held)):
            held[node] -= nodes[node] == 0
        first += 1
    st.state_replan[FIRST_STEP], st.state_replan[END_STEP] = first, last


@inlined
def _next_gain(st, end):
    """Return the first end of a step of the search after which other usable nodes are free, or 0.

    Up to the first step that begins after `end`.
    """
    usable, free = st.state_node_usable, st.state_node_free
    free[:] = 1
    for k in range(st.state_replan[FIRST_STEP], st.state_replan[N_STEPS] - 1):
        gained, current, after = 0, step_nodes(st, k), step_nodes(st, k + 1)
        for node in range(len(free)):
            free[node] &= current[node]
            gained |= usable[node] & after[node] & ~free[node]
        if gained:
            return step_end(st, k)
        if st.state_step_begin[k] > end:
            break
    return 0


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
def step_nodes(st, k):
    """Return the nodes of a step: 0 if they are reserved."""
    return st.state_step_nodes[st.state_step_row[k]]


@part
def is_reserved(st, begin, end):
    """Tell whether a chosen node is reserved at some time between two, rounded down."""
    resolution = st.p_replan[RESOLUTION]
    begin, end = begin // resolution * resolution, end // resolution * resolution
    n_chosen = _list_chosen(st)
    for k in range(st.state_replan[N_STEPS]):
        if step_end(st, k) > begin and st.state_step_begin[k] < end:
            nodes = step_nodes(st, k)
            for i in range(n_chosen):
                if nodes[st.state_chosen[i]] == 0:
                    return True
    return False


@part
def _list_chosen(st):
    """List the chosen nodes; return their number."""
    n, tasks = 0, st.state_node_tasks
    for node in range(len(tasks)):
        st.state_chosen[n] = node
        n += tasks[node] > 0
    return n


@part
def reserve_chosen(st, begin, end):
    """Reserve the chosen nodes between two times, rounded down; False if the table is full."""
    if st.state_replan[N_RECORDS] >= st.p_replan[DEPTH]:
        return False
    resolution = st.p_replan[RESOLUTION]
    begin = max(begin // resolution * resolution, st.state_step_begin[0])
    end = max(end // resolution * resolution, begin + resolution)
    st.state_replan[RESERVED_FROM] = begin
    if begin >= st.state_replan[HORIZON]:
        return True
    if begin == st.state_step_begin[0] and st.state_replan[N_RECORDS] == 1:
        st.state_replan[N_RECORDS] += 1  # Slurm cuts off an empty step
    first = _cut(st, begin)
    last = _cut(st, end) if end < st.state_replan[HORIZON] else st.state_replan[N_STEPS]
    n_chosen, was_reserved = _list_chosen(st), False
    for k in range(first, last):
        nodes = step_nodes(st, k)
        for i in range(n_chosen):
            was_reserved |= nodes[st.state_chosen[i]] == 0
            nodes[st.state_chosen[i]] = 0
    _join(st, last)
    if was_reserved:
        for k in range(last - 1, first, -1):
            _join(st, k)
    _join(st, first)
    return True


@part
def _cut(st, time):
    """Return the step that begins at `time`; cut one in two if none does."""
    begin, row, n = st.state_step_begin, st.state_step_row, st.state_replan[N_STEPS]
    k = n
    while begin[k - 1] > time:
        k -= 1
    if begin[k - 1] == time:
        return k - 1
    unused = row[n]
    for i in range(n, k, -1):
        begin[i] = begin[i - 1]
        row[i] = row[i - 1]
    begin[k] = time
    row[k] = unused
    st.state_step_nodes[unused] = st.state_step_nodes[row[k - 1]]
    st.state_replan[N_STEPS] = n + 1
    st.state_replan[N_RECORDS] += 1
    return k


@part
def _join(st, k):
    """Join a step with the one before it, if the same nodes are reserved in both."""
    begin, row, n = st.state_step_begin, st.state_step_row, st.state_replan[N_STEPS]
    if not 0 < k < n:
        return
    changed, current, before = 0, step_nodes(st, k), step_nodes(st, k - 1)
    for node in range(len(current)):
        changed |= current[node] ^ before[node]
    if changed:
        return
    unused = row[k]
    for i in range(k, n - 1):
        begin[i] = begin[i + 1]
        row[i] = row[i + 1]
    row[n - 1] = unused
    st.state_replan[N_STEPS] = n - 1
