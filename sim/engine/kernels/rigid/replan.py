"""Periodic planning: a main loop and a planning thread, as Slurm has them.

Jobs start at two kinds of instants, not at events. The *main loop* polls each second; if a job came
or ended since its last pass, or a longer interval is over, it starts waiting jobs in order until
one does not fit. The *planning thread* plans all waiting jobs anew, in order: each takes nodes as
early as the expected ends of running jobs and the reservations of earlier jobs allow, starts if
that is now, and else reserves these nodes. If nothing has changed since its last plan, it polls
each second until something has. Options are those of `sim.engine.plan.replan.Replan`; what a cycle
leaves out is in `sim.engine.kernels.rigid.replan_counts`.

A plan is worked out up to the last job that may still start now, or, if it sleeps and goes on, of
each part all jobs.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.caps import PASSES, WITHIN, is_over_running
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import CAPS, FLAVORS, GANGS, PINS, PREEMPTS
from sim.engine.kernels.flavors import open_all
from sim.engine.kernels.held_slots import hold_slot
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import is_passed_over, over_to_start, waits_for_cap
from sim.engine.kernels.resources import clear_dirty
from sim.engine.kernels.rigid.gang import begin_gang
from sim.engine.kernels.rigid.replan_components import (
    has_any_room,
    note_found,
)
from sim.engine.kernels.rigid.replan_counts import (
    BY_MAIN,
    BY_PLAN,
    begin_counts,
    close_array,
    count_reserved,
    end_of_part,
    exceeds_depth,
    is_skipped,
    taken_s,
    time_left_s,
)
from sim.engine.kernels.rigid.replan_ends import (
    forget_preemptors,
    may_preempt_any,
    note_preemptor,
)
from sim.engine.kernels.rigid.replan_events import (
    clock,
    completed_s,
    end_pass,
    forget_passes,
    is_waiting,
    next_pass,
    note_events,
    note_update,
    poll_s,
)
from sim.engine.kernels.rigid.replan_job import (
    FITS,
    PASSED,
    WAITS,
    choose_now,
    choose_unplanned,
    may_start,
    plan_job,
)
from sim.engine.kernels.rigid.replan_nodes import (
    NEVER,
    allow_usable,
    choose_nodes,
    job_width,
    limit_s,
    list_free,
    list_room,
    take_chosen,
)
from sim.engine.kernels.rigid.replan_registers import (
    BEGUN,
    CLOCK,
    CONTINUES,
    DEPTH,
    END_COMPLETING,
    FIRST_COMPLETING,
    INTERVAL,
    IS_CHANGED,
    IS_FULL,
    IS_IDLE,
    LAST_PLAN,
    LAST_UPDATE,
    MAIN_DEPTH,
    MAIN_STARTS,
    N_DEPTHS,
    N_EXPECTED,
    N_LISTED,
    N_PLANS,
    N_STARTED,
    N_TRIED,
    PLANS,
    POSITION,
    PREEMPTORS_AT,
    RESERVED,
    RESERVED_FROM,
    SLEEP,
    STARTS,
    WAKE,
)
from sim.engine.kernels.rigid.replan_table import (
    begin_table,
    reserve_chosen,
)
from sim.engine.kernels.rigid.rigid import begin_merge, is_holding, next_merged
from sim.engine.kernels.state import N_SCAN, NOW, TRIES, UNIT
from sim.engine.kernels.windows import is_closed


@inlined
def next_wake(st):
    """Return the next time at which the main loop or the planning thread may do something, s."""
    registers, time = st.state_replan, math.inf
    if registers[FIRST_COMPLETING] < registers[END_COMPLETING]:
        time = completed_s(st, st.state_completing_jobs[registers[FIRST_COMPLETING]])
    if is_waiting(st):
        time = min(time, poll_s(st, next_pass(st)))
    if st.p_replan[PLANS] and not registers[IS_IDLE]:
        time = min(time, st.state_replan_s[WAKE])
    return time


@inlined
def dispatch_replanned(st):
    """Note what happened; run the main loop and the planning thread if it is their time."""
    now = st.state_f[NOW]
    tries = st.state_i[TRIES] if PINS else 0  # 1: a whole pass, whatever the time; 2: a plan
    if PREEMPTS and st.state_replan_s[PREEMPTORS_AT] != now:
        forget_preemptors(st)
        st.state_replan_s[PREEMPTORS_AT] = now
    if not tries:
        forget_passes(st)
    if FLAVORS:
        open_all(st)  # a search for jobs to stop leaves one open
    note_events(st)
    if tries == 1 or (not tries and is_waiting(st) and poll_s(st, next_pass(st)) <= now):
        is_full = end_pass(st, next_pass(st))
        _run_main(st, is_full or tries == 1)
        note_update(st)
    is_due = not st.state_replan[IS_IDLE] and st.state_replan_s[WAKE] <= now
    if tries == 2:
        st.p_replan_s[CLOCK] += 1.0  # a pass and a plan are not at one second: ends would be equal
        note_update(st)
    if st.p_replan[PLANS] and (tries == 2 or (not tries and is_due)):
        _wake(st)
    clear_dirty(st)


@inlined
def _wake(st):
    """Plan, or go on with a plan that sleeps, if something has changed; else poll."""
    registers = st.state_replan
    if registers[POSITION] > 0:
        if (registers[IS_CHANGED] and not st.p_replan[CONTINUES]) or time_left_s(st) <= 0.0:
            _end_plan(st, 0.0)
            return
    elif registers[LAST_UPDATE] < registers[LAST_PLAN]:
        registers[IS_IDLE] = 1
        st.state_replan_s[WAKE] = st.state_f[NOW] + 1.0
        return
    else:
        _begin_plan(st)
    first, n = registers[POSITION], registers[N_LISTED]
    end = end_of_part(st, first, n)
    registers[IS_CHANGED] = 0
    if n > 0 and _plan(st, first, end):
        registers[LAST_UPDATE] = max(registers[LAST_UPDATE], registers[LAST_PLAN])
    part_s = taken_s(st, first, end)
    if end == n or registers[IS_FULL] or time_left_s(st) <= part_s:
        _end_plan(st, part_s)
        return
    registers[POSITION] = end
    st.state_replan_s[WAKE] = st.state_f[NOW] + (part_s + st.p_replan_s[SLEEP])


@inlined
def _begin_plan(st):
    """List the jobs of a plan; nothing is reserved."""
    registers, now = st.state_replan, clock(st)
    registers[LAST_PLAN] = now
    st.state_replan_s[BEGUN] = st.state_f[NOW]
    registers[N_TRIED] = registers[N_STARTED] = registers[IS_FULL] = registers[N_LISTED] = 0
    if is_waiting(st):
        jobs = st.state_plan_jobs
        registers[N_LISTED] = _list_jobs(st, jobs, st.p_replan[N_DEPTHS] > 0)
        _unmark(st, jobs, registers[N_LISTED])
        begin_counts(st, BY_PLAN, jobs, registers[N_LISTED])
        begin_table(st, now)
        if CAPS:
            st.state_queue_blocked[:] = 0


@part
def _end_plan(st, part_s):
    """End a plan, whose last part takes so long."""
    st.state_replan_s[WAKE] = st.state_f[NOW] + (part_s + st.p_replan_s[INTERVAL])
    st.state_replan[POSITION] = 0
    st.state_replan[N_PLANS] += 1


@part
def _list_jobs(st, jobs, with_passed):
    """List the waiting jobs in order, and mark them; return their number.

    Those that were stopped a short time ago are not looked at.
    """
    n, merges = 0, len(st.state_queue_next) > 1
    if merges:
        begin_merge(st)
    for i in range(st.state_i[N_SCAN]):
        position = next_merged(st) if merges else i
        g = st.state_scan[position]
        if g < 0:
            continue
        j = st.w_stage_job[g]
        if st.state_job_back[j] > st.state_f[NOW]:
            continue
        if CAPS and not with_passed and is_passed_over(st, g):
            continue
        if not st.state_job_listed[j]:
            st.state_job_listed[j] = 1
            jobs[n] = j
            n += 1
    return n


@part
def _unmark(st, jobs, n):
    for i in range(n):
        st.state_job_listed[jobs[i]] = 0


@inlined
def _run_main(st, is_full):
    """Start waiting jobs in order, or until enough were tried.

    The nodes that one of them could use, and that do not suffice, are barred for those behind it;
    one over the cap of its organisation bars none, one of several flavors those of the flavors
    whose quotas allow it.
    """
    now, jobs, n_tried, n_started = clock(st), st.state_planned_jobs, 0, 0
    n = _list_jobs(st, jobs, True)
    _unmark(st, jobs, n)
    list_free(st)
    begin_counts(st, BY_MAIN, jobs, n)
    n_left, barred = len(st.state_node_barred), st.state_node_barred
    barred[:] = 0
    for i in range(n):
        j = jobs[i]
        if 0 < st.p_replan[MAIN_STARTS] <= n_started:
            return
        if is_skipped(st, BY_MAIN, j) or exceeds_depth(st, BY_MAIN, j):
            continue
        if not is_full and n_tried > st.p_replan[MAIN_DEPTH]:
            return
        n_tried += 1
        over = WITHIN
        if CAPS:
            over = over_to_start(st, st.state_job_ready_head[j])
        outcome = PASSED
        if over != PASSES:
            outcome = choose_now(st, now, j, over)
        if outcome == FITS:
            _start(st, j)
            n_started += 1
            continue
        close_array(st, BY_MAIN, j)
        if outcome == PASSED:
            continue
        if PREEMPTS and outcome == WAITS and _is_first_there(st):
            note_preemptor(st, j)
        for node in range(len(barred)):
            n_left -= st.state_node_usable[node] & (barred[node] == 0)
            barred[node] |= st.state_node_usable[node]
        if n_left == 0:
            return


@part
def _is_first_there(st):
    """Tell whether no job before it waits for one of the usable nodes."""
    for node in range(len(st.state_node_usable)):
        if st.state_node_usable[node] and st.state_node_barred[node]:
            return False
    return True


@inlined
def _plan(st, first, end):
    """Plan the listed jobs from position `first` to `end`, starting those that can start now.

    Tell whether that changes jobs or nodes: one starts, or the first that waits could run a task
    somewhere, so that nodes are marked as reserved for it.
    """
    registers, now, jobs = st.state_replan, clock(st), st.state_plan_jobs
    n_started, n = registers[N_STARTED], registers[N_LISTED]
    list_free(st)
    n_waiting = 0
    if first > 0:  # some may have started, or ended, since they were listed
        n_waiting = _list_jobs(st, st.state_planned_jobs, True)
    i, last = first, end - 1
    if end == n:
        last = _last_candidate(st, now, first - 1, last)
    while i <= last and not registers[IS_FULL]:
        j = jobs[i]
        i += 1
        if first > 0 and not st.state_job_listed[j]:
            continue
        if _is_enough(st):
            registers[IS_FULL] = 1
            break
        start = _try_job(st, now, j)
        if start == now:
            _start(st, j)
            registers[N_STARTED] += 1
        elif start != NEVER and reserve_chosen(st, start, start + limit_s(st, j)):
            count_reserved(st, j)
            if end == n:
                last = _last_candidate(st, now, i - 1, last)
        elif start != NEVER:
            registers[IS_FULL] = 1
    _unmark(st, st.state_planned_jobs, n_waiting)
    if first > 0:
        return registers[N_STARTED] > n_started
    return registers[N_STARTED] > n_started or _marks_nodes(st)


@part
def _is_enough(st):
    """Tell whether the plan has tried, or started, as many jobs as it may."""
    starts = st.p_replan[STARTS]
    has_started = 0 < starts <= st.state_replan[N_STARTED]
    return has_started or st.state_replan[N_TRIED] >= st.p_replan[DEPTH]


@part
def _try_job(st, now, j):
    """Choose nodes for job `j`; return its planned start, NEVER for none."""
    waits = False
    if CAPS:
        waits = waits_for_cap(st, j)
        if waits and (st.state_queue_blocked[st.w_job_org[j]] or is_over_running(st, j)):
            return NEVER
    if is_skipped(st, BY_PLAN, j):
        return NEVER
    start, was_tried = NEVER, False
    if not exceeds_depth(st, BY_PLAN, j) and not waits:
        n_reserved = st.state_reserved_in[st.p_reserved_in[j]]
        may_wait = st.p_replan[RESERVED] == 0 or n_reserved < st.p_replan[RESERVED]
        start, was_tried = plan_job(st, now, j, may_wait)
    if start == NEVER:
        close_array(st, BY_PLAN, j)
    st.state_replan[N_TRIED] += was_tried
    return start


@part
def _marks_nodes(st):
    """Tell whether the first listed job that waits, and is not passed over, finds any room."""
    for i in range(st.state_replan[N_LISTED]):
        j = st.state_plan_jobs[i]
        if is_holding(st, j) or (CAPS and is_passed_over(st, st.state_job_ready_head[j])):
            continue
        allow_usable(st, j, False)
        return has_any_room(st, j) if is_searched(st, j) else list_room(st, j) > 0
    return False


@part
def _last_candidate(st, now, first, last):
    """Return the last job after `first`, of those up to `last`, that may start now, or `first`.

    Nodes that are free now, and not reserved by jobs before it: there are only fewer of them later.
    A reservation that begins once it would have ended takes none of them.
    """
    while last > first:
        j = st.state_plan_jobs[last]
        if PREEMPTS and may_preempt_any(st, j):
            break
        if st.state_replan[RESERVED_FROM] > now + limit_s(st, j):
            break
        st.state_replan[RESERVED_FROM] = NEVER  # of the jobs before it nothing is known
        if may_start(st, now, j):
            break
        last -= 1
    return last


@part
def is_closed_to_start(st, j, machine):
    """Tell whether a window closes `machine` to job `j`, if it starts now."""
    begin = clock(st) - st.p_replan_s[CLOCK]
    return is_closed(st, j, machine, begin, begin + limit_s(st, j))


@part
def start_first(st, j):
    """Start job `j` now, whatever is planned for others; False if it does not fit."""
    note_events(st)
    list_free(st)
    if not choose_unplanned(st, clock(st), j):
        return False
    _start(st, j)
    note_update(st)
    return True


@part
def start_pinned(st, j):
    """Start pinned job `j`, which fits on its machines; on any slots of a pool."""
    note_events(st)
    list_free(st)
    if st.state_i[UNIT]:
        st.state_node_allowed[:] = 1
        list_room(st, j)
        choose_nodes(st, j, job_width(st, j))
    elif is_searched(st, j):
        note_found(st, j)
    else:
        tasks, first = st.state_node_tasks, st.w_stage_task0[st.w_job_stage0[j]]
        tasks[:] = 0
        for entry in range(first, first + job_width(st, j)):
            tasks[st.state_pin_machine[entry]] += 1
    _start(st, j)
    note_update(st)


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
    end = clock(st) + limit_s(st, j)
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
    entry = st.w_stage_task0[st.w_job_stage0[j]]
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot_size[c] - 1, -1, -1):
            machine = 0 if st.state_i[UNIT] else st.state_task_node[entry]
            hold_slot(st, j, c, i, machine)
            entry += 1
    begin_gang(st, j)
