"""Periodic planning: when a job could start, as running jobs end one by one as expected.

A job is tried with several sets of allowed nodes, as reservations end. How many of its tasks fit
each node now, and how many more as each running job ends, does not depend on them: that is worked
out once for all tries, as far as they look ahead.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.features import CHOOSES, PREEMPTS
from sim.engine.kernels.rigid.replan_nodes import (
    NEVER,
    choose_nodes,
    job_demand,
    job_width,
    room_on,
)
from sim.engine.kernels.rigid.replan_registers import (
    FIRST_WINDOW,
    KILL_WAIT,
    LINEAR,
    N_ENDED,
    N_EXPECTED,
    N_GONE,
)
from sim.engine.kernels.state import CONSTRAINED, UNIT

may_preempt = late("sim.engine.kernels.preemption.units.may_preempt", PREEMPTS)


@inlined
def begin_ends(st, j):
    """Set the number of tasks of job `j` that fit each node now, before any running job ends."""
    if PREEMPTS:
        _list_gone(st, j)
    first, now = st.state_node_first, st.state_node_now
    for node in range(len(first)):
        first[node] = room_on(st, j, now, node)
        if CHOOSES and st.state_i[CONSTRAINED] and first[node] > 0:  # of devices, as they are now
            first[node] = min(first[node], n_by_devices(st, st.w_job_slot, j, node))
    st.state_node_later[:] = first
    if not st.state_i[UNIT]:
        st.state_node_future[:] = now
    st.state_replan[N_ENDED] = 0


@part
def expected_start(st, now, j, may_wait):
    """Return when job `j` could start on the allowed nodes, s, and how many running jobs end first.

    Now, or at the expected end of a running job; -1 if it can't. Reservations are not looked at.
    Jobs that it may preempt count as gone, as in Slurm: where that suffices, it is planned at once.
    """
    width, room, allowed, fits_now = job_width(st, j), 0, st.state_node_allowed, st.state_node_first
    for node in range(len(allowed)):
        room += allowed[node] * fits_now[node]
    if room >= width:
        return now, 0
    if not may_wait:
        return NEVER, 0
    running = st.state_ending_jobs if PREEMPTS else st.state_expected_jobs
    first, aligned, n = st.p_replan[FIRST_WINDOW], 0, st.state_replan[N_EXPECTED]
    window, i = first, 0
    if PREEMPTS:
        while i < st.state_replan[N_GONE]:
            room += max(_gained(st, j, i), 0)
            i += 1
        if i > 0 and room >= width:
            return now + 1, i
    while i < n:
        last = NEVER
        while i < n:
            end = st.state_job_expected_end[running[i]]
            gained = _gained(st, j, i)
            i += 1
            if gained < 0:
                continue  # passed over, whatever its end
            last = end
            if aligned == 0:
                aligned = last + first - last % first
            room += gained
            if i < n and st.state_job_expected_end[running[i]] > aligned + window:
                break  # by the next running job, wherever it runs
        if last == NEVER:
            return NEVER, 0
        while True:
            window += st.p_replan[LINEAR] if st.p_replan[LINEAR] > 0 else window
            if i == n or st.state_job_expected_end[running[i]] <= aligned + window:
                break
        if room >= width:
            return last if last > now else max(last + st.p_replan[KILL_WAIT], now + 1), i
    return NEVER, 0


@part
def choose_after(st, j, n_ended):
    """Choose nodes for job `j` among the allowed ones, after the first running jobs have ended."""
    room, allowed, gains = st.state_node_room, st.state_node_allowed, st.state_gain
    for node in range(len(room)):
        room[node] = allowed[node] * st.state_node_first[node]
    if n_ended > 0:
        for i in range(st.state_gain_end[n_ended - 1]):
            node = st.state_gain_node[i]
            room[node] += allowed[node] * gains[i]
    choose_nodes(st, j)


@part
def _gained(st, j, i):
    """Return how many more tasks of job `j` fit the allowed nodes of running job `i` as it ends.

    -1 if none of them is allowed.
    """
    if i == st.state_replan[N_ENDED]:
        _end_next(st, j)
    gained = n_allowed = 0
    for k in range(st.state_gain_end[i - 1] if i > 0 else 0, st.state_gain_end[i]):
        is_allowed = st.state_node_allowed[st.state_gain_node[k]]
        n_allowed += is_allowed
        gained += is_allowed * st.state_gain[k]
    return gained if n_allowed > 0 else -1


@inlined
def _end_next(st, j):
    """Let the next running job end: note how many more tasks of job `j` fit each of its nodes."""
    i, later, future = st.state_replan[N_ENDED], st.state_node_later, st.state_node_future
    running = st.state_ending_jobs if PREEMPTS else st.state_expected_jobs
    other, nodes = running[i], st.state_task_node
    n = st.state_gain_end[i - 1] if i > 0 else 0
    first = st.w_stage_task0[st.w_job_stage0[other]]
    end = first + job_width(st, other)
    for entry in range(first, end):
        node = nodes[entry]
        more = 1
        if not st.state_i[UNIT]:
            for r in range(future.shape[1]):
                future[node, r] += job_demand(st, other, r)
            if entry + 1 < end and nodes[entry + 1] == node:
                continue
            more = room_on(st, j, future, node) - later[node]
        later[node] += more
        st.state_gain_node[n] = node
        st.state_gain[n] = more
        n += 1
    st.state_gain_end[i] = n
    st.state_replan[N_ENDED] = i + 1


@part
def _list_gone(st, j):
    """List the running jobs that job `j` may preempt, then the others, by expected end."""
    jobs, order, k = st.state_expected_jobs, st.state_ending_jobs, 0
    for is_other in range(2):
        for i in range(st.state_replan[N_EXPECTED]):
            if may_preempt(st, j, jobs[i]) != (is_other == 1):
                order[k] = jobs[i]
                k += 1
        if is_other == 0:
            st.state_replan[N_GONE] = k
