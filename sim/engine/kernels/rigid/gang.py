"""Gang scheduling: a job starts once its minimum parallelism fits, and then holds those slots."""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import gang_kind, list_bucket, regroup
from sim.engine.kernels.caps import count_whole
from sim.engine.kernels.components import (
    add_idle,
    component_of,
    end_component,
    first_component,
    idle_slots,
)
from sim.engine.kernels.domains import is_searched, note_crossing
from sim.engine.kernels.elastic import is_elastic
from sim.engine.kernels.faults.work import CANCEL
from sim.engine.kernels.features import (
    CAPS,
    COMPONENTS,
    DYNAMIC_ORDER,
    ELASTIC,
    FLAVORS,
    LIMITS,
    PREEMPTS,
    TOPOLOGY,
)
from sim.engine.kernels.flavors import NONE, open_next
from sim.engine.kernels.heaps import before
from sim.engine.kernels.held_slots import hold_slot, slots_on
from sim.engine.kernels.launch import draw_lag
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import note_running
from sim.engine.kernels.resources import within_cap
from sim.engine.kernels.rigid.resize import start_unit, take_places
from sim.engine.kernels.rigid.room import PRESENT, find_slots
from sim.engine.kernels.slot_counts import most_slots
from sim.engine.kernels.state import (
    EXCLUSIVES,
    IS_COUNTED,
    LAUNCH,
    N_BUCKETS,
    N_HOLDERS,
    N_PLACED,
    N_REFILL,
    NOW,
)
from sim.engine.kernels.waiting import goes_before, update_rank


@part
def gang_fits(st, j):
    """Tell whether all slots of gang job `j` fit the free room at once, cap aside.

    In one of its flavors whose quota allows them, which stays open.
    """
    if not FLAVORS:
        return _fits_open(st, j)
    i = open_next(st, j, st.w_job_tries[j], st.w_job_total, j, NONE, True)
    while i != NONE:
        if _fits_open(st, j):
            return True
        i = open_next(st, j, st.w_job_tries[j], st.w_job_total, j, i, True)
    return False


@part
def _fits_open(st, j):
    """Tell whether all slots of gang job `j` fit the free room of open machines."""
    if is_searched(st, j):
        return find_slots(st, j, PRESENT)
    if most_slots(st, j) < st.w_job_min_tasks[j]:
        return False
    n_slots = 0
    for machine in range(st.state_mach_free.shape[0]):
        n_slots += slots_on(st, j, first_component(st, j), machine)
        if n_slots >= st.w_job_min_tasks[j]:
            return True
    return False


@part
def gang_within_cap(st, j):
    """Tell whether all slots of gang job `j` stay within its organisation's cap."""
    if FLAVORS:
        return open_next(st, j, st.w_job_tries[j], st.w_job_total, j, NONE, True) != NONE
    return within_cap(st, j, st.w_job_total, j, 1)


@part
def admit_gang(st, j):
    """Take the slots of gang job `j`, which fit, and start what is ready in them."""
    if FLAVORS:
        gang_fits(st, j)  # others were tried since
    if ELASTIC and is_elastic(st, j):
        take_places(st, j)
        begin_gang(st, j)
        return
    find_slots(st, j, PRESENT)
    admit_found(st, j)


@part
def admit_found(st, j):
    """Take the slots of gang `j` on the machines that were found."""
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot_size[c] - 1, -1, -1):
            hold_slot(st, j, c, i, st.state_held_machine[st.w_slot0[c] + i])
    begin_gang(st, j)


@part
def admit_waiting(st, j):
    """Admit gang job `j`, and let what is left of its stages start single tasks."""
    admit_gang(st, j)
    regroup(st, j)


@part
def first_gang(st, before_stage):
    """Return the first stage in order of a gang that may start, before that stage; -1 for none.

    `before_stage` is -1 for no such limit.
    """
    best = before_stage
    for position in range(st.state_i[N_BUCKETS]):
        if st.state_bucket_kind[position] != gang_kind(st):
            continue
        for i in range(list_bucket(st, position)):
            g = st.state_stage_stack[i]
            j = st.w_stage_job[g]
            if best < 0 or goes_before(st, g, best):
                may_start = gang_within_cap(st, j) and gang_fits(st, j)
                best = g if may_start else best
    return -1 if best == before_stage else best


@part
def admit_gang_to(st, j, first, end):
    """Admit gang job `j` to the machines of the entries [first, end) of its claim."""
    c = first_component(st, j)
    n_left = st.w_slot_size[c]
    for entry in range(first, end):
        if n_left == 0:
            c += 1
            n_left = st.w_slot_size[c]
        for _ in range(st.state_entry_slots[entry]):
            n_left -= 1
            hold_slot(st, j, c, n_left, st.state_entry_place[entry])
    begin_gang(st, j)


@part
def begin_gang(st, j):
    """Launch gang job `j`, which has just taken its slots, and start what is ready in them."""
    is_unit = ELASTIC and is_elastic(st, j)
    st.state_job_idle_held[j] = st.state_job_places[j] if is_unit else st.w_job_min_tasks[j]
    if COMPONENTS:
        for c in range(first_component(st, j), end_component(st, j)):
            st.state_component_idle[c] = st.state_job_places[j] if is_unit else st.w_slot_size[c]
    st.state_i[IS_COUNTED] = 0
    if TOPOLOGY and not is_unit:
        first, last = st.w_slot0[first_component(st, j)], end_component(st, j) - 1
        end = st.w_slot0[last] + st.w_slot_size[last]
        note_crossing(st, j, st.state_held_machine[first], first, end)
    if PREEMPTS:
        st.state_job_admitted[j] = st.state_f[NOW]
        st.state_job_nth[j] = st.state_i[N_PLACED]
        st.state_i[N_PLACED] += 1
        if st.p_job_when_preempted[j] != CANCEL:
            st.state_job_leaves[j] = math.inf  # else the job itself has notice, not these slots
        _enter_holders(st, j)
    if st.state_i[EXCLUSIVES] and st.w_job_exclusive[j]:
        if CAPS and st.state_job_counted[j]:  # it ran before, and tasks of it are done
            count_whole(st, j, -1)
        _note_whole(st, j)
        if CAPS and st.state_job_counted[j]:
            count_whole(st, j, 1)
    if CAPS:
        note_running(st, j)
    if st.state_i[LAUNCH]:
        lag = draw_lag(st, st.w_stage_task0[st.w_job_stage0[j]])
        st.state_job_launched[j] = st.state_f[NOW] + lag
    if DYNAMIC_ORDER:
        update_rank(st, j)  # its share, even if its limit lets no task start
    if ELASTIC and is_unit:
        start_unit(st, j)
    else:
        fill_held(st, j)


@inlined
def _note_whole(st, j):
    """Note what the machines of exclusive gang `j` have beyond its slots, which it uses as well."""
    whole = st.state_job_whole
    whole[j] = 0
    is_unit = ELASTIC and is_elastic(st, j)
    for c in range(first_component(st, j), end_component(st, j)):
        size = st.state_job_places[j] if is_unit else st.w_slot_size[c]
        for i in range(st.w_slot0[c], st.w_slot0[c] + size):
            for r in range(whole.shape[1]):
                whole[j, r] += st.c_capacity[st.state_held_machine[i], r] - st.w_slot[c, r]


@inlined
def _enter_holders(st, j):
    """List gang job `j` among those that hold slots."""
    st.state_holder[st.state_i[N_HOLDERS]] = j
    st.state_job_holder[j] = st.state_i[N_HOLDERS]
    st.state_i[N_HOLDERS] += 1


@part
def fill_held(st, j):
    """Start ready tasks of job `j` in its idle held slots."""
    while st.state_job_idle_held[j] > 0:
        if LIMITS and (
            st.state_job_running[j] >= st.p_job_run_limit[j]
            or st.state_job_started[j] >= st.p_job_start_gate[j]
        ):
            return
        g = st.state_job_ready_head[j]
        if g < 0:
            return
        other = st.state_stage_ready_next[g]
        while other >= 0:
            if _goes_into_slot_before(st, j, other, g):
                g = other
            other = st.state_stage_ready_next[other]
        c = component_of(st, g)
        if COMPONENTS and idle_slots(st, j, c) == 0:
            return
        add_idle(st, j, c, -1)
        machine = st.state_held_machine[st.w_slot0[c] + idle_slots(st, j, c)]
        start_task(st, g, machine, True, 1)


@inlined
def _goes_into_slot_before(st, j, a, b):
    """Tell whether stage `a` of job `j` has an idle slot, and goes before `b`, or `b` has none."""
    if COMPONENTS:
        has_slot = idle_slots(st, j, component_of(st, a)) > 0
        if not has_slot or idle_slots(st, j, component_of(st, b)) == 0:
            return has_slot
    return before(st, a, b)


@inlined
def refill_gangs(st):
    """Let gang jobs use their own idle slots before anything else is placed."""
    for i in range(st.state_i[N_REFILL]):
        j = st.state_refill_list[i]
        st.state_refill_listed[j] = 0
        if st.state_job_idle_held[j] > 0:
            fill_held(st, j)
    st.state_i[N_REFILL] = 0
