"""Periodic planning: when a job could start, as running jobs end one by one as expected.

What is free as each running job ends is the same for all jobs that are planned, until one starts. A
job is tried with several sets of allowed nodes, as reservations end. How many of its tasks fit each
node now, and how many more as each running job ends, does not depend on them. So both are worked
out once, as far as tries look ahead.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.components import first_component
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import CHOOSES, PREEMPTS
from sim.engine.kernels.rigid.replan_nodes import (
    NEVER,
    choose_nodes,
    forget_ends,
    job_demand,
    job_width,
    may_host,
    n_together,
    note_fit,
    room_on,
    set_wants,
)
from sim.engine.kernels.rigid.replan_registers import (
    BY_PREEMPTING,
    FIRST_WINDOW,
    KILL_WAIT,
    LIKE,
    LINEAR,
    N_EXPECTED,
    N_GONE,
    N_KNOWN,
    N_OPEN,
    N_PASSED,
    N_PREEMPTORS,
    ROOM_BY,
)
from sim.engine.kernels.state import CONSTRAINED, UNIT

may_preempt = late("sim.engine.kernels.preemption.units.may_preempt", PREEMPTS)


@inlined
def ending_jobs(st):
    """Return the running jobs in the order in which they count as ended."""
    return st.state_ending_jobs if PREEMPTS else st.state_expected_jobs


@part
def list_gone(st, j):
    """List the running jobs that job `j` may preempt, then the others, by expected end."""
    jobs, order, k, is_other_order = st.state_expected_jobs, st.state_ending_jobs, 0, False
    for is_kept in range(2):
        for i in range(st.state_replan[N_EXPECTED]):
            if may_preempt(st, j, jobs[i]) != (is_kept == 1):
                is_other_order |= order[k] != jobs[i]
                order[k] = jobs[i]
                k += 1
        if is_kept == 0:
            st.state_replan[N_GONE] = k
    if is_other_order:
        forget_ends(st)


@part
def may_preempt_any(st, j):
    """Tell whether job `j` may preempt a running job."""
    for i in range(st.state_replan[N_EXPECTED]):
        if may_preempt(st, j, st.state_expected_jobs[i]):
            return True
    return False


@part
def note_preemptor(st, j):
    """Note job `j`, which could start if those that it may preempt were gone."""
    if not st.state_job_is_preemptor[j]:
        st.state_job_is_preemptor[j] = 1
        st.state_preemptor[st.state_replan[N_PREEMPTORS]] = j
        st.state_replan[N_PREEMPTORS] += 1


@inlined
def forget_preemptors(st):
    """Forget the jobs for which others were to stop."""
    for i in range(st.state_replan[N_PREEMPTORS]):
        st.state_job_is_preemptor[st.state_preemptor[i]] = 0
    st.state_replan[N_PREEMPTORS] = 0


@inlined
def begin_ends(st, j):
    """Set the number of tasks of job `j` that fit each node now, before any running job ends."""
    kinds, row = st.state_like, st.w_job_like[j] % len(st.state_like)
    set_wants(st, j)
    if kinds[row] != st.w_job_like[j]:
        kinds[row] = st.w_job_like[j]
        _count_first(st, j, row)
    st.state_node_by[:] = st.state_node_first[row]
    st.state_replan[LIKE], st.state_replan[N_PASSED] = row, 0


@inlined
def _count_first(st, j, row):
    """Count the tasks like those of job `j` that fit each node now."""
    first, now = st.state_node_first[row], st.state_node_now
    first[:] = 0
    for i in range(st.state_replan[N_OPEN]):
        node = st.state_open[i]
        if not may_host(st, j, node):
            continue
        first[node] = room_on(st, j, now, node)
        is_single = CHOOSES and st.state_i[CONSTRAINED] and not is_searched(st, j)
        if is_single and first[node] > 0:  # of each device, as now
            first[node] = min(first[node], n_by_devices(st, st.w_job_slot, j, node))
    st.state_node_later[row] = first
    st.state_like_ended[row] = 0


@part
def may_start_by(st, j, time):
    """Tell whether job `j` fits the allowed nodes once the running jobs that end by `time` have.

    Of several components the first one is looked at, here and below. If not, `expected_start` is
    later. Of one job the time only gets later.
    """
    i, by, allowed = st.state_replan[N_PASSED], st.state_node_by, st.state_node_allowed
    row, running, n = st.state_replan[LIKE], ending_jobs(st), st.state_replan[N_EXPECTED]
    n_gone = st.state_replan[N_GONE] if PREEMPTS else 0
    while i < n and (i < n_gone or st.state_job_expected_end[running[i]] <= time):
        if i == st.state_like_ended[row]:
            _end_next(st, j)
        for k in range(first_vacated(st, i), st.state_vacated_end[i]):
            node = st.state_vacated_node[k]
            by[node] += st.state_gain[row, k]
            st.state_replan[ROOM_BY] += allowed[node] * st.state_gain[row, k]
        i += 1
    st.state_replan[N_PASSED] = i
    return st.state_replan[ROOM_BY] >= n_together(st, j)


@part
def expected_start(st, now, j, may_wait):
    """Return when job `j` could start on the allowed nodes, s, and how many running jobs end first.

    Now, or at the expected end of a running job; -1 if it can't. Reservations are not looked at.
    Ends are taken together in windows, the first from the first running job on that has an allowed
    node: a window ends with one that has, if the next one ends later. Jobs that it may preempt
    count as gone, as in Slurm: where that suffices, it is planned at once.
    """
    if st.state_replan[ROOM_BY] >= job_width(st, j) and fits_now(st, j):
        return now, 0
    if not may_wait:
        return NEVER, 0
    n_gone = st.state_replan[N_GONE] if PREEMPTS else 0
    if n_gone > 0 and _fits_after(st, j, n_gone):
        st.state_replan[BY_PREEMPTING] = 1
        return now + 1, n_gone
    n_least, n = least_ended(st, j), st.state_replan[N_EXPECTED]
    if n_least < 0:
        return NEVER, 0
    first, i = st.p_replan[FIRST_WINDOW], _next_allowed(st, n_gone)
    aligned = _end_of(st, i)
    aligned += first - aligned % first
    window = first
    while True:
        i = _next_allowed(st, _last_by(st, i, aligned + window)) + 1
        if i >= n_least:
            last = _end_of(st, _last_allowed(st, min(i, n) - 1))
            return last if last > now else max(last + st.p_replan[KILL_WAIT], now + 1), min(i, n)
        while True:
            window += st.p_replan[LINEAR] if st.p_replan[LINEAR] > 0 else window
            if _end_of(st, i) <= aligned + window:
                break


@part
def fits_now(st, j):
    """Tell whether job `j` fits the allowed nodes before any running job ends."""
    return _fits_after(st, j, 0)


@part
def _fits_after(st, j, n_ended):
    """Tell whether job `j` fits the allowed nodes after the first running jobs have ended."""
    room, row = 0, st.state_replan[LIKE]
    for k in range(st.state_replan[N_OPEN]):
        node = st.state_open[k]
        room += st.state_node_allowed[node] * st.state_node_first[row, node]
    for i in range(n_ended):
        room += _gained(st, j, i)
    return room >= n_together(st, j)


@part
def least_ended(st, j):
    """Return the least number of running jobs that end before job `j` fits, -1 if it never does.

    Their room by the time at which it is tried is known.
    """
    width, room, i = n_together(st, j), st.state_replan[ROOM_BY], st.state_replan[N_PASSED]
    while room < width:
        if i == st.state_replan[N_EXPECTED]:
            return -1
        room += _gained(st, j, i)
        i += 1
    while True:
        gained = _gained(st, j, i - 1)
        if room - gained < width:
            return i
        room -= gained
        i -= 1


@part
def _next_allowed(st, i):
    """Return the first running job from the `i`-th on that has an allowed node; or their number."""
    while i < st.state_replan[N_EXPECTED] and not has_allowed(st, i):
        i += 1
    return i


@inlined
def _last_allowed(st, i):
    """Return the last running job up to the `i`-th that has an allowed node; there is one."""
    while not has_allowed(st, i):
        i -= 1
    return i


@inlined
def _last_by(st, i, time):
    """Return the last running job that ends by `time`, or the `i`-th."""
    end = st.state_replan[N_EXPECTED]
    while i + 1 < end:
        middle = (i + end) // 2
        if _end_of(st, middle) <= time:
            i = middle
        else:
            end = middle
    return i


@part
def _end_of(st, i):
    """Return the expected end of the `i`-th running job, s."""
    return st.state_job_expected_end[ending_jobs(st)[i]]


@part
def choose_after(st, j, n_ended):
    """Choose nodes for job `j` among the allowed ones, after the first running jobs have ended."""
    room, allowed, row = st.state_node_room, st.state_node_allowed, st.state_replan[LIKE]
    for node in range(len(room)):
        room[node] = allowed[node] * st.state_node_first[row, node]
        note_fit(st, j, node, st.state_node_now, node)
    while st.state_like_ended[row] < n_ended:
        _end_next(st, j)
    for i in range(first_vacated(st, n_ended)):
        node = st.state_vacated_node[i]
        room[node] += allowed[node] * st.state_gain[row, i]
        note_fit(st, j, node, st.state_vacated_free, i)
    choose_nodes(st, j, job_width(st, j))


@part
def _gained(st, j, i):
    """Return how many more tasks of job `j` fit the allowed nodes of running job `i` as it ends."""
    gained, row = 0, st.state_replan[LIKE]
    while st.state_like_ended[row] <= i:
        _end_next(st, j)
    for k in range(first_vacated(st, i), st.state_vacated_end[i]):
        gained += st.state_node_allowed[st.state_vacated_node[k]] * st.state_gain[row, k]
    return gained


@part
def has_allowed(st, i):
    """Tell whether running job `i` has an allowed node."""
    while st.state_replan[N_KNOWN] <= i:
        _list_next(st)
    for k in range(first_vacated(st, i), st.state_vacated_end[i]):
        if st.state_node_allowed[st.state_vacated_node[k]]:
            return True
    return False


@part
def first_vacated(st, i):
    """Return the first entry of running job `i`: it has one for each of its nodes."""
    return st.state_vacated_end[i - 1] if i > 0 else 0


@part
def _end_next(st, j):
    """Let the next running job end: note how many more tasks of job `j` fit each of its nodes."""
    row = st.state_replan[LIKE]
    i, later = st.state_like_ended[row], st.state_node_later[row]
    if i == st.state_replan[N_KNOWN]:
        _list_next(st)
    for k in range(first_vacated(st, i), st.state_vacated_end[i]):
        node, more = st.state_vacated_node[k], 0
        if st.state_i[UNIT]:
            more = 1
        elif may_host(st, j, node) and _fits_more(st, later[node] + 1, k):
            more = room_on(st, j, st.state_vacated_free, k) - later[node]
        later[node] += more
        st.state_gain[row, k] = more
    st.state_like_ended[row] = i + 1


@part
def _fits_more(st, n_tasks, k):
    """Tell whether so many tasks fit a node once the running job has ended that vacates it, `k`."""
    for r in range(len(st.state_wants)):
        if n_tasks * st.state_wants[r] > st.state_vacated_free[k, r]:
            return False
    return True


@part
def _list_next(st):
    """List the nodes of the next running job, with what is free on each once it has ended."""
    i, nodes, future = st.state_replan[N_KNOWN], st.state_task_node, st.state_node_future
    other, k = ending_jobs(st)[i], first_vacated(st, i)
    first = st.w_stage_task0[st.w_job_stage0[other]]
    end, c, n_left = first + job_width(st, other), first_component(st, other), 0
    several = is_searched(st, other)
    if several:
        n_left = st.w_slot_size[c]
    for task in range(first, end):
        node = nodes[task]
        if several:
            if n_left == 0:
                c += 1
                n_left = st.w_slot_size[c]
            n_left -= 1
        if not st.state_i[UNIT]:
            for r in range(len(st.state_wants)):
                wants = st.w_slot[c, r] if several else job_demand(st, other, r)
                future[node, r] += wants
            if task + 1 < end and nodes[task + 1] == node:
                continue
            for r in range(len(st.state_wants)):
                st.state_vacated_free[k, r] = future[node, r]
        st.state_vacated_node[k] = node
        k += 1
    st.state_vacated_end[i] = k
    st.state_replan[N_KNOWN] = i + 1
