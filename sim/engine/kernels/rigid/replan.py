"""Periodic planning: a main loop and a planning thread, as Slurm has them.

Jobs start at two kinds of instants, not at events. The *main loop* polls each second; if a job came
or ended since its last pass, or a longer interval is over, it starts waiting jobs in order until
one does not fit. The *planning thread* plans all waiting jobs anew, in order: each takes nodes as
early as the expected ends of running jobs and the reservations of earlier jobs allow, starts if
that is now, and else reserves these nodes. If nothing has changed since its last plan, it polls
each second until something has. Options are those of `sim.engine.plan.replan.Replan`.

A plan is worked out up to the last job that may still start now.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.caps import PASSES, WITHIN
from sim.engine.kernels.features import CAPS, GANGS, WINDOWS
from sim.engine.kernels.held_slots import hold_slot
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import is_passed_over, over_to_start, waits_for_cap
from sim.engine.kernels.resources import clear_dirty
from sim.engine.kernels.rigid.gang import begin_gang
from sim.engine.kernels.rigid.replan_ends import begin_ends, choose_after, expected_start
from sim.engine.kernels.rigid.replan_nodes import (
    NEVER,
    allow_usable,
    avoid_completing,
    choose_nodes,
    drop_closed,
    is_completing,
    is_within_cap,
    job_width,
    limit_s,
    list_free,
    list_room,
    may_fit,
    take_chosen,
)
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    CYCLE,
    DEPTH,
    END_COMPLETING,
    FIRST_COMPLETING,
    INTERVAL,
    IS_IDLE,
    IS_REQUESTED,
    JOB_CYCLE,
    LAST_PLAN,
    LAST_POLL,
    LAST_UPDATE,
    MAIN_DELAY,
    MAIN_DEPTH,
    MAIN_INTERVAL,
    N_EXPECTED,
    N_PLANNED,
    N_PLANS,
    N_SUBMITTED,
    NEXT_FULL,
    PLANS,
    POLL_PHASE,
    REQUESTED,
    RESERVED,
    WAKE,
    WINDOW,
)
from sim.engine.kernels.rigid.replan_table import (
    allow_unreserved,
    begin_table,
    is_reserved,
    reserve_chosen,
)
from sim.engine.kernels.rigid.rigid import begin_merge, is_holding, next_merged
from sim.engine.kernels.state import HARD_CAPS, N_ARRIVED, N_HOLES, N_SCAN, NOW, UNIT
from sim.engine.kernels.windows import is_closed


@inlined
def next_wake(st):
    """Return the next time at which the main loop or the planning thread may do something, s."""
    registers, time = st.state_replan, math.inf
    if registers[FIRST_COMPLETING] < registers[END_COMPLETING]:
        time = _completed_s(st, st.state_completing_jobs[registers[FIRST_COMPLETING]])
    if _is_waiting(st):
        time = min(time, _poll_s(st, _next_pass(st)))
    if st.p_replan[PLANS] and not registers[IS_IDLE]:
        time = min(time, st.state_replan_s[WAKE])
    return time


@inlined
def dispatch_replanned(st):
    """Note what happened; run the main loop and the planning thread if it is their time."""
    now = st.state_f[NOW]
    _forget_passes(st)
    _note_events(st)
    if _is_waiting(st) and _poll_s(st, _next_pass(st)) <= now:
        is_full = _end_pass(st, _next_pass(st))
        _run_main(st, is_full)
        _note_update(st)
    if st.p_replan[PLANS] and not st.state_replan[IS_IDLE] and st.state_replan_s[WAKE] <= now:
        _wake(st)
    clear_dirty(st)


@part
def _is_waiting(st):
    return st.state_i[N_SCAN] > st.state_i[N_HOLES]


@part
def _clock(st):
    """Return the scheduler's clock now, whole s."""
    return math.floor(st.p_replan_s[CLOCK] + st.state_f[NOW])


@part
def _poll_s(st, poll):
    return st.p_replan_s[POLL_PHASE] + poll


@part
def _next_pass(st):
    """Return the poll of the next pass of the main loop, if somebody waits then."""
    registers = st.state_replan
    if not registers[IS_REQUESTED]:
        return registers[NEXT_FULL]
    since = st.state_replan_s[REQUESTED]
    poll = max(math.ceil(since - st.p_replan_s[POLL_PHASE]), 0)
    if _poll_s(st, poll) < since:
        poll += 1
    return min(max(poll, registers[LAST_POLL] + st.p_replan[MAIN_DELAY]), registers[NEXT_FULL])


@part
def _end_pass(st, poll):
    """Note a pass at that poll; tell whether it is one over all jobs."""
    registers = st.state_replan
    is_full = poll == registers[NEXT_FULL]
    if is_full:
        registers[NEXT_FULL] += st.p_replan[MAIN_INTERVAL]
    registers[LAST_POLL] = poll
    registers[IS_REQUESTED] = 0
    return is_full


@inlined
def _forget_passes(st):
    """Note the passes before now, in which nobody waited."""
    while _poll_s(st, _next_pass(st)) < st.state_f[NOW]:
        _end_pass(st, _next_pass(st))


@inlined
def _note_events(st):
    """Note jobs that came or ended, and nodes that have completed a job."""
    registers = st.state_replan
    happened = requested = st.state_i[N_ARRIVED] > registers[N_SUBMITTED]
    registers[N_SUBMITTED] = st.state_i[N_ARRIVED]
    n = 0
    for i in range(registers[N_EXPECTED]):
        j = st.state_expected_jobs[i]
        if is_holding(st, j):
            st.state_expected_jobs[n] = j
            n += 1
            continue
        happened = True
        _leave_nodes(st, j)
        if st.state_job_left[j] == 0:
            _complete(st, j)
        else:  # it was stopped, and waits again
            requested = True
    registers[N_EXPECTED] = n
    while registers[FIRST_COMPLETING] < registers[END_COMPLETING]:
        j = st.state_completing_jobs[registers[FIRST_COMPLETING]]
        if _completed_s(st, j) > st.state_f[NOW]:
            break
        registers[FIRST_COMPLETING] += 1
        _count_completing(st, j, -1)
        happened = requested = True
    if requested and not registers[IS_REQUESTED]:
        registers[IS_REQUESTED] = 1
        st.state_replan_s[REQUESTED] = st.state_f[NOW]
    if happened:
        _note_update(st)


@inlined
def _leave_nodes(st, j):
    """Let the slots of job `j`, which has ended or was stopped, be free."""
    first = st.w_stage_task0[st.w_job_stage0[j]]
    for entry in range(first, first + job_width(st, j)):
        st.state_node_busy[st.state_task_node[entry]] = 0


@inlined
def _complete(st, j):
    """List job `j`, which has ended, by the time at which its nodes have completed it."""
    jobs, first = st.state_completing_jobs, st.state_replan[FIRST_COMPLETING]
    k = st.state_replan[END_COMPLETING]
    while k > first and _completed_s(st, jobs[k - 1]) > _completed_s(st, j):
        jobs[k] = jobs[k - 1]
        k -= 1
    jobs[k] = j
    st.state_replan[END_COMPLETING] += 1
    _count_completing(st, j, 1)


@part
def _completed_s(st, j):
    return st.out_job_finish[j] + st.p_completing_s[j]


@part
def _count_completing(st, j, change):
    """Count job `j`, which has ended, at its nodes."""
    first = st.w_stage_task0[st.w_job_stage0[j]]
    for entry in range(first, first + job_width(st, j)):
        st.state_node_completing[st.state_task_node[entry]] += change


@part
def _note_update(st):
    """Note a change of jobs or nodes; a planning thread that polls plans at its next poll."""
    st.state_replan[LAST_UPDATE] = _clock(st)
    if st.state_replan[IS_IDLE]:
        st.state_replan[IS_IDLE] = 0
        base = st.state_replan_s[WAKE]
        wait = max(math.ceil(st.state_f[NOW] - base), 0.0)
        st.state_replan_s[WAKE] = base + wait


@inlined
def _wake(st):
    """Plan, if something has changed since the last plan; else poll."""
    registers = st.state_replan
    if registers[LAST_UPDATE] < registers[LAST_PLAN]:
        registers[IS_IDLE] = 1
        st.state_replan_s[WAKE] = st.state_f[NOW] + 1.0
        return
    registers[LAST_PLAN] = _clock(st)
    registers[N_PLANNED] = 0
    if _is_waiting(st) and _plan(st):
        registers[LAST_UPDATE] = registers[LAST_PLAN]
    cycle = st.p_replan_s[CYCLE] + st.p_replan_s[JOB_CYCLE] * registers[N_PLANNED]
    cycle *= st.p_cycle_factors[registers[N_PLANS] % len(st.p_cycle_factors)]
    st.state_replan_s[WAKE] = st.state_f[NOW] + (cycle + st.p_replan_s[INTERVAL])
    registers[N_PLANS] += 1


@part
def _begin_cycle(st):
    """List the waiting jobs in order, and what is free on each node; return their number."""
    list_free(st)
    n, merges = 0, len(st.state_queue_next) > 1
    if merges:
        begin_merge(st)
    for i in range(st.state_i[N_SCAN]):
        position = next_merged(st) if merges else i
        g = st.state_scan[position]
        if g < 0:
            continue
        j = st.w_stage_job[g]
        if CAPS and is_passed_over(st, g):
            continue
        if not st.state_job_listed[j]:
            st.state_job_listed[j] = 1
            st.state_planned_jobs[n] = j
            n += 1
    for i in range(n):
        st.state_job_listed[st.state_planned_jobs[i]] = 0
    return n


@inlined
def _run_main(st, is_full):
    """Start waiting jobs in order, or until enough were tried.

    The nodes that one of them could use, and that do not suffice, are barred for those behind it;
    one over the cap of its organisation bars none.
    """
    n, now = _begin_cycle(st), _clock(st)
    if not is_full:
        n = min(n, st.p_replan[MAIN_DEPTH] + 1)
    n_left, allowed, barred = (
        len(st.state_node_allowed),
        st.state_node_allowed,
        st.state_node_barred,
    )
    barred[:] = 0
    for i in range(n):
        j = st.state_planned_jobs[i]
        over = WITHIN
        if CAPS:
            over = over_to_start(st, st.state_job_ready_head[j])
            if over == PASSES:
                continue
        is_capped = over == WITHIN and st.state_i[HARD_CAPS] and not is_within_cap(st, j)
        if is_capped:
            continue
        allow_usable(st, j, False)
        if WINDOWS:
            drop_closed(st, j, now, now)
        st.state_node_usable[:] = allowed
        if WINDOWS:
            drop_closed(st, j, now, now + limit_s(st, j))
        for node in range(len(allowed)):
            allowed[node] &= (st.state_node_completing[node] == 0) & (barred[node] == 0)
        if over == WITHIN and may_fit(st, j) and list_room(st, j) >= job_width(st, j):
            choose_nodes(st, j)
            _start(st, j)
            continue
        for node in range(len(allowed)):
            n_left -= st.state_node_usable[node] & (barred[node] == 0)
            barred[node] |= st.state_node_usable[node]
        if n_left == 0:
            return


@inlined
def _plan(st):
    """Plan the waiting jobs in order, starting those that can start now.

    Tell whether that changes jobs or nodes: one starts, or one waits while the first of them could
    run a task somewhere, so that nodes are marked as reserved for it.
    """
    n, now = _begin_cycle(st), _clock(st)
    st.state_replan[N_PLANNED] = min(n, st.p_replan[DEPTH])
    begin_table(st, now)
    last = _last_candidate(st, now, -1, n - 1)
    n_tried = n_reserved = n_started = 0
    first_waiting = -1
    if CAPS:
        st.state_queue_blocked[:] = 0
    for i in range(n):
        j = st.state_planned_jobs[i]
        if CAPS and waits_for_cap(st, j):
            continue
        may_wait = st.p_replan[RESERVED] == 0 or n_reserved < st.p_replan[RESERVED]
        if i <= last and n_tried < st.p_replan[DEPTH]:
            start, was_tried = _plan_job(st, now, j, may_wait)
            n_tried += was_tried
            if start == now:
                avoid_completing(st, j)
                _start(st, j)
                n_started += 1
                continue
            if start != NEVER:
                if not reserve_chosen(st, start, start + limit_s(st, j)):
                    last = i
                n_reserved += 1
                last = _last_candidate(st, now, i, last)
        if first_waiting < 0:
            first_waiting = j
        if i >= last:
            break
    if CAPS:
        first_waiting = _first_within(st, n)
    if first_waiting >= 0:
        allow_usable(st, first_waiting, False)
        return n_started > 0 or list_room(st, first_waiting) > 0
    return n_started > 0


@part
def _first_within(st, n):
    """Return the first of the `n` listed jobs that waits and is not passed over, -1 for none."""
    for i in range(n):
        j = st.state_planned_jobs[i]
        g = st.state_job_ready_head[j]
        if not is_holding(st, j) and not is_passed_over(st, g):
            return j
    return -1


@part
def _last_candidate(st, now, first, last):
    """Return the last job after `first`, of those up to `last`, that may start now, or `first`.

    Nodes that are free now, and not reserved by jobs before it: there are only fewer of them later.
    """
    while last > first:
        j = st.state_planned_jobs[last]
        if may_fit(st, j):
            allow_unreserved(st, j, now, now, now + limit_s(st, j))
            if list_room(st, j) >= job_width(st, j):
                break
        last -= 1
    return last


@part
def _plan_job(st, now, j, may_wait):
    """Choose nodes for job `j`; return its planned start, -1 for none, and whether it was tried."""
    limit = limit_s(st, j)
    later, was_tried = now, False
    if st.state_i[HARD_CAPS] and not is_within_cap(st, j):
        return NEVER, was_tried
    begin_ends(st, j)
    while True:
        begin = later
        later = allow_unreserved(st, j, now, begin, max(begin, now) + limit)
        may_retry = later > 0 and may_wait
        if not st.state_node_allowed.any():
            if may_retry:
                continue
            return NEVER, was_tried
        was_tried = True
        start, n_ended = expected_start(st, now, j, may_wait)
        if start == NEVER:
            if may_retry:
                continue
            return NEVER, was_tried
        start = max(start, begin)
        if start == now:
            choose_after(st, j, n_ended)
            if not is_completing(st):
                return now, was_tried
            start = now + 1
            later = 0
        if not may_wait:
            return NEVER, was_tried
        if 0 < later < start:
            continue
        if start > now + st.p_replan[WINDOW]:
            return NEVER, was_tried
        choose_after(st, j, n_ended)
        if not is_reserved(st, start, start + limit):
            return start, was_tried
        later = start


@part
def is_closed_to_start(st, j, machine):
    """Tell whether a window closes `machine` to job `j`, if it starts now."""
    begin = _clock(st) - st.p_replan_s[CLOCK]
    return is_closed(st, j, machine, begin, begin + limit_s(st, j))


@part
def start_first(st, j):
    """Start job `j` now, whatever is planned for others; False if it does not fit."""
    _note_events(st)
    list_free(st)
    allow_usable(st, j, False)
    if WINDOWS:
        drop_closed(st, j, _clock(st), _clock(st) + limit_s(st, j))
    if not may_fit(st, j) or list_room(st, j) < job_width(st, j):
        return False
    choose_nodes(st, j)
    _start(st, j)
    _note_update(st)
    return True


@part
def _start(st, j):
    """Start job `j` on the chosen nodes, and list it among the running jobs by expected end."""
    take_chosen(st, j)
    first = st.w_stage_task0[st.w_job_stage0[j]]
    if st.state_i[UNIT]:
        for entry in range(first, first + job_width(st, j)):
            st.state_node_busy[st.state_task_node[entry]] = 1
    if GANGS and is_waiting_gang(st, j):
        _admit(st, j)
    else:
        machine = 0 if st.state_i[UNIT] else st.state_task_node[first]
        start_task(st, st.state_job_ready_head[j], machine, False, 1)
    end = _clock(st) + limit_s(st, j)
    st.state_job_expected_end[j] = end
    running, k = st.state_expected_jobs, st.state_replan[N_EXPECTED]
    while k > 0:
        other_end = st.state_job_expected_end[running[k - 1]]
        if other_end < end or (other_end == end and running[k - 1] < j):
            break
        running[k] = running[k - 1]
        k -= 1
    running[k] = j
    st.state_replan[N_EXPECTED] += 1


@inlined
def _admit(st, j):
    """Take the slots of gang job `j` on its nodes, and start what is ready in them."""
    first, n = st.w_stage_task0[st.w_job_stage0[j]], job_width(st, j)
    for i in range(n):
        machine = 0 if st.state_i[UNIT] else st.state_task_node[first + i]
        hold_slot(st, j, n - 1 - i, machine)
    begin_gang(st, j)
