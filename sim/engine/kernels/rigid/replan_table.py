"""Periodic planning: the table of reservations, of whole nodes from step to step of time.

Slurm's steps say when a node is reserved, and how full the table is. Beside them stand the
reservations themselves, by begin and by end: as a job is tried later and later, its time moves over
them, and the nodes that are free all through it change by a few.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import WINDOWS
from sim.engine.kernels.rigid.replan_nodes import allow_usable, drop_closed
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    DEPTH,
    FIRST_STEP,
    HAS_USABLE,
    HORIZON,
    N_BEGUN,
    N_OVER,
    N_RECORDS,
    N_RESERVED,
    N_STEPS,
    N_USABLE,
    RESERVED_FROM,
    RESOLUTION,
    ROOM_BY,
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
    st.state_replan[N_RESERVED] = 0


@part
def begin_search(st):
    """Begin to look for nodes for another job: no reservation is in its time."""
    registers = st.state_replan
    st.state_node_held[:] = 0
    registers[FIRST_STEP] = registers[N_BEGUN] = registers[N_OVER] = 0
    registers[HAS_USABLE] = 0


@part
def allow_unreserved(st, j, now, begin, end):
    """Allow the nodes that job `j` may use, if not reserved between two times.

    Of one search both times only get later. Return when that changes, s: the first end of a step,
    from `begin` on, after which others of them are free, or 1 s after that of a window, if one
    closes any node; 0 for none.
    """
    any_closed, is_new = False, WINDOWS or not st.state_replan[HAS_USABLE]
    if is_new:
        st.state_replan[HAS_USABLE] = 1
        allow_usable(st, j, begin > now)
        any_closed = drop_closed(st, j, begin, end) if WINDOWS else False
        st.state_node_usable[:] = st.state_node_allowed
    _move_search(st, begin, end)
    if is_new:
        _allow_free(st)
    later = _next_gain(st, begin, end)
    if WINDOWS and any_closed:
        opening = _look_again(st, j, begin)
        if opening < st.state_replan[HORIZON] and not 0 < later <= opening:
            later = int(opening)
    return later


@inlined
def _move_search(st, begin, end):
    """Take the reservations that begin by `end` into the search, and those over by `begin` out."""
    i, n = st.state_replan[N_BEGUN], st.state_replan[N_RESERVED]
    while i < n and st.state_reserved_from[st.state_begins[i]] <= end:
        _hold(st, st.state_begins[i])
        i += 1
    st.state_replan[N_BEGUN] = i
    i = st.state_replan[N_OVER]
    while i < n and st.state_reserved_until[st.state_ends[i]] <= begin:
        _give_back(st, st.state_ends[i])
        i += 1
    st.state_replan[N_OVER] = i


@part
def _hold(st, reservation):
    """Take a reservation into the search: its nodes are not allowed."""
    counts, allowed, by, lost = st.state_node_held, st.state_node_allowed, st.state_node_by, 0
    first = st.state_reserved_node0[reservation]
    for i in range(first, st.state_reserved_node0[reservation + 1]):
        node = st.state_reserved_node[i]
        counts[node] += 1
        lost += allowed[node] * by[node]
        allowed[node] = 0
    st.state_replan[ROOM_BY] -= lost


@part
def _give_back(st, reservation):
    """Take a reservation out of the search: usable nodes that no other holds are allowed."""
    counts, allowed, by, gained = st.state_node_held, st.state_node_allowed, st.state_node_by, 0
    first = st.state_reserved_node0[reservation]
    for i in range(first, st.state_reserved_node0[reservation + 1]):
        node = st.state_reserved_node[i]
        counts[node] -= 1
        if counts[node] == 0:
            allowed[node] = st.state_node_usable[node]
            gained += allowed[node] * by[node]
    st.state_replan[ROOM_BY] += gained


@inlined
def _allow_free(st):
    """Allow the usable nodes that no reservation of the search holds, and add up their room."""
    allowed, usable, counts = st.state_node_allowed, st.state_node_usable, st.state_node_held
    room = n_usable = 0
    for node in range(len(allowed)):
        allowed[node] = usable[node] & (counts[node] == 0)
        room += allowed[node] * st.state_node_by[node]
        n_usable += usable[node]
    st.state_replan[ROOM_BY], st.state_replan[N_USABLE] = room, n_usable


@inlined
def _next_gain(st, begin, end):
    """Return the first end of a step after `begin` at which a usable node gets free, 0 for none.

    Up to the first step that begins after `end`.
    """
    k, n_steps = st.state_replan[FIRST_STEP], st.state_replan[N_STEPS]
    while k < n_steps and step_end(st, k) <= begin:
        k += 1
    st.state_replan[FIRST_STEP] = k
    while k + 1 < n_steps:
        if st.state_step_frees[k + 1] and _frees_usable(st, k + 1):
            return step_end(st, k)
        if st.state_step_begin[k] > end:
            return 0
        k += 1
    return 0


@part
def _frees_usable(st, k):
    """Tell whether a usable node gets free as step `k` begins; some node does."""
    usable, freed = st.state_node_usable, 0
    if st.state_replan[N_USABLE] == len(usable):
        return True
    current, before = step_nodes(st, k), step_nodes(st, k - 1)
    for node in range(len(usable)):
        freed |= usable[node] & current[node] & ~before[node]
    return freed > 0


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
    _note_reservation(st, begin, min(end, st.state_replan[HORIZON]), n_chosen)
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


@inlined
def _note_reservation(st, begin, end, n_chosen):
    """Note a reservation of the chosen nodes, by its begin and by its end."""
    n, first = st.state_replan[N_RESERVED], st.state_reserved_node0
    st.state_reserved_from[n], st.state_reserved_until[n] = begin, end
    for i in range(n_chosen):
        st.state_reserved_node[first[n] + i] = st.state_chosen[i]
    first[n + 1] = first[n] + n_chosen
    _insert(st.state_begins, st.state_reserved_from, n)
    _insert(st.state_ends, st.state_reserved_until, n)
    st.state_replan[N_RESERVED] = n + 1


@part
def _insert(order, times, n):
    """Insert `n` into an order of the numbers below it, by their times."""
    k = n
    while k > 0 and times[order[k - 1]] > times[n]:
        order[k] = order[k - 1]
        k -= 1
    order[k] = n


@part
def _cut(st, time):
    """Return the step that begins at `time`; cut one in two if none does."""
    begin, row, n = st.state_step_begin, st.state_step_row, st.state_replan[N_STEPS]
    frees, k = st.state_step_frees, n
    while begin[k - 1] > time:
        k -= 1
    if begin[k - 1] == time:
        return k - 1
    unused = row[n]
    for i in range(n, k, -1):
        begin[i] = begin[i - 1]
        row[i] = row[i - 1]
        frees[i] = frees[i - 1]
    begin[k] = time
    row[k] = unused
    st.state_step_nodes[unused] = st.state_step_nodes[row[k - 1]]
    st.state_replan[N_STEPS] = n + 1
    st.state_replan[N_RECORDS] += 1
    return k


@part
def _join(st, k):
    """Join a step with the one before it, if the same nodes are reserved in both.

    If not, note whether a node gets free as it begins.
    """
    begin, row, n = st.state_step_begin, st.state_step_row, st.state_replan[N_STEPS]
    if not 0 < k < n:
        return
    changed, freed, current, before = 0, 0, step_nodes(st, k), step_nodes(st, k - 1)
    for node in range(len(current)):
        changed |= current[node] ^ before[node]
        freed |= current[node] & ~before[node]
    st.state_step_frees[k] = freed
    if changed:
        return
    unused = row[k]
    for i in range(k, n - 1):
        begin[i] = begin[i + 1]
        row[i] = row[i + 1]
        st.state_step_frees[i] = st.state_step_frees[i + 1]
    row[n - 1] = unused
    st.state_replan[N_STEPS] = n - 1
