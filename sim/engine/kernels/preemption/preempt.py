"""Preemption: running jobs are stopped for a waiting one that may take their room.

What stops as one is a *unit*: a gang with its slots, a job that would be cancelled, or else a
single task. Units are given back on trial, in the order of `sim.engine.plan.preemption.Victims`,
until the waiting job fits; then each is taken back, the last first, if it fits without. Those that
are left stop, and the job starts. So it starts wherever it may: on the machines, devices and shares
that are free then. Nothing changes where that does not suffice.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, late, part
from sim.engine.kernels.buckets import is_waiting_gang, list_bucket
from sim.engine.kernels.dispatch import machine_for, machine_in_flavors
from sim.engine.kernels.faults.rates import ENDED
from sim.engine.kernels.faults.restart import list_to_stop, stop_and_requeue, stop_gangs
from sim.engine.kernels.faults.work import CANCEL
from sim.engine.kernels.features import CAPS, FLAVORS, GANGS, PINS, QUOTAS, REPLANS, RESERVES
from sim.engine.kernels.flavors import NONE, open_for
from sim.engine.kernels.heaps import before
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import is_passed_over
from sim.engine.kernels.preemption.outside import BY_RUNS_ON
from sim.engine.kernels.preemption.trial import can_start, release_enough, room_on, spare
from sim.engine.kernels.preemption.units import (
    BY_LIMIT,
    BY_QUOTA,
    BY_SHARE,
    UNLISTED,
    below,
    job_of,
    list_units,
)
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.release import CANCELLED_JOB
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.rigid.gang import admit_waiting
from sim.engine.kernels.rigid.replan_registers import N_PREEMPTORS
from sim.engine.kernels.rigid.rigid import is_holding
from sim.engine.kernels.state import (
    BARRED,
    FIRST_LEAVING,
    ISOLATED,
    N_BUCKETS,
    N_CLAIMANTS,
    N_HOLDERS,
    N_LEAVING,
    N_SCAN,
    NOW,
    PREEMPTS_BY,
    RESERVATIONS,
    TRIES,
)
from sim.engine.kernels.stop_records import CANCELLED, EVICTED, PREEMPTED
from sim.engine.kernels.timeouts import end_job
from sim.engine.kernels.waiting import goes_before, is_listed

start_reserved = late("sim.engine.kernels.rigid.reserve.start_first", RESERVES)
start_replanned = late("sim.engine.kernels.rigid.replan.start_first", REPLANS)


@inlined
def preempt(st):
    """Preempt for the first waiting job, in order, for which that suffices; False for none.

    Under periodic planning only for jobs for which a pass or a plan says so; in a trial for none.
    """
    if REPLANS and PINS and st.state_i[TRIES]:
        return False
    if st.state_i[PREEMPTS_BY] == BY_RUNS_ON:
        return False
    st.state_i[BARRED] = 0
    if QUOTAS:
        note_borrowing(st)
    n = _list_contenders(st)
    while n > 0:
        best = 0
        for i in range(1, n):
            if _goes_first(st, st.state_contender[i], st.state_contender[best]):
                best = i
        g = st.state_contender[best]
        n -= 1
        st.state_contender[best] = st.state_contender[n]
        if preempt_for(st, g):
            return True
    return False


@part
def preempt_for(st, g):
    """Stop jobs so that the gang of stage `g`, or its next task, can start; start it.

    Tell whether it did: nothing changes otherwise, or if it could start without. With a grace time
    it starts later, when they have stopped.
    """
    if st.state_job_claims[st.w_stage_job[g]] > st.state_f[NOW]:
        return False
    if st.state_i[PREEMPTS_BY] == BY_RUNS_ON:
        return False
    n_victims = _list_in_flavors(st, g) if FLAVORS else _list_victims(st, g)
    if n_victims == 0:
        return False
    if st.p_grace[0] > 0.0:
        _give_notice(st, st.w_stage_job[g], n_victims)
        return False
    for i in range(n_victims):
        _stop(st, st.state_victim[i])
    if GANGS:
        stop_gangs(st, PREEMPTED)
    return _start(st, g)


@part
def _list_victims(st, g):
    """List in ``state_victim`` what has to stop so that stage `g` can start; return how many."""
    n_units = list_units(st, g)
    n_victims = release_enough(st, g, n_units)
    if n_victims > 0:
        n_victims = spare(st, g, n_victims)
    for i in range(n_units):
        st.state_job_evicted[job_of(st, st.state_unit[i])] = 0
        st.state_unit_first[st.state_unit[i]] = UNLISTED
    return n_victims


@part
def _list_in_flavors(st, g):
    """List what has to stop in the first flavor of stage `g` in which that suffices."""
    i = open_for(st, g, NONE, False)
    while i != NONE:
        n_victims = _list_victims(st, g)
        if n_victims > 0:
            return n_victims
        i = open_for(st, g, i, False)
    return 0


@inlined
def _list_contenders(st):
    """List the first stage of each waiting job that may preempt somebody; return their number."""
    n, lowest = 0, _lowest_level(st)
    if lowest == math.inf:
        return 0
    if REPLANS:
        for i in range(st.state_replan[N_PREEMPTORS]):
            j = st.state_preemptor[i]
            if st.state_job_ready_head[j] >= 0 and st.state_job_wait_queue[j] >= 0:
                n = _add_contender(st, n, _first_ready(st, j), lowest)
        return n
    if is_listed(st):
        for position in range(st.state_i[N_SCAN]):
            if st.state_scan[position] >= 0:
                n = _add_contender(st, n, st.state_scan[position], lowest)
        return n
    for position in range(st.state_i[N_BUCKETS]):
        for i in range(list_bucket(st, position)):
            n = _add_contender(st, n, st.state_stage_stack[i], lowest)
    return n


@part
def _add_contender(st, n, g, lowest):
    """Add waiting stage `g`, if it is the first of a job that may preempt; return their number."""
    j, by = st.w_stage_job[g], st.state_i[PREEMPTS_BY]
    if is_listed(st) and is_holding(st, j):
        return n
    if below(st, j) <= lowest and not by & (BY_SHARE | BY_LIMIT | BY_QUOTA):
        return n
    if g != _first_ready(st, j) or (CAPS and is_passed_over(st, g)):
        return n
    st.state_contender[n] = g
    return n + 1


@inlined
def _lowest_level(st):
    """Return the lowest level of a job that runs or holds slots, inf if none does."""
    lowest = math.inf
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            k = st.w_stage_job[st.state_slot_stage[slot]]
            lowest = min(lowest, st.p_job_preempt_level[k])
            slot = st.state_slot_next[slot]
    for i in range(st.state_i[N_HOLDERS]):
        lowest = min(lowest, st.p_job_preempt_level[st.state_holder[i]])
    return lowest


@part
def _first_ready(st, j):
    """Return the first ready stage of job `j` in its order."""
    g = st.state_job_ready_head[j]
    other = st.state_stage_ready_next[g]
    while other >= 0:
        if before(st, other, g):
            g = other
        other = st.state_stage_ready_next[other]
    return g


@part
def _goes_first(st, a, b):
    """Tell whether waiting stage `a` comes before `b`; jobs with hard shares are merged by rank."""
    if is_listed(st) and st.state_i[ISOLATED]:
        return before(st, a, b)
    return goes_before(st, a, b)


@inlined
def _give_notice(st, j, n_victims):
    """Let the first `n_victims` victims stop after the grace time, for job `j`."""
    time, n_slots = st.state_f[NOW] + st.p_grace[0], len(st.state_slot_task)
    if st.state_i[N_LEAVING] + n_victims > len(st.state_leaving):
        _drop_notices(st)
    st.state_job_claims[j] = time
    for i in range(n_victims):
        unit = st.state_victim[i]
        k = (st.state_i[FIRST_LEAVING] + st.state_i[N_LEAVING]) % len(st.state_leaving)
        st.state_leaving[k] = unit
        st.state_leaving_s[k] = time
        st.state_leaving_for[k] = j
        st.state_i[N_LEAVING] += 1
        if unit < n_slots:
            st.state_slot_leaves[unit] = time
        else:
            st.state_job_leaves[unit - n_slots] = time


@inlined
def _drop_notices(st):
    """Drop the notices of units that are gone, but for one of each job that waits for them.

    That leaves as many as there are slots and jobs, and one a job, at most.
    """
    size, first, n = len(st.state_leaving), st.state_i[FIRST_LEAVING], 0
    last_j, last_s = -1, -math.inf
    for i in range(st.state_i[N_LEAVING]):
        k, to = (first + i) % size, (first + n) % size
        time, unit, j = st.state_leaving_s[k], st.state_leaving[k], st.state_leaving_for[k]
        is_first = st.state_job_claims[j] == time and (j != last_j or time != last_s)
        if is_first or _still_leaves(st, unit, time):
            st.state_leaving_s[to] = last_s = time
            st.state_leaving[to] = unit
            st.state_leaving_for[to] = last_j = j
            n += 1
    st.state_i[N_LEAVING] = n


@inlined
def next_leaving(st, before):
    """Return when the next unit stops whose grace time ends, at most `before`."""
    if st.state_i[N_LEAVING] == 0:
        return before
    return min(before, st.state_leaving_s[st.state_i[FIRST_LEAVING]])


@inlined
def stop_leaving(st):
    """Stop the units whose grace time is over, and list the jobs that they stop for."""
    while st.state_i[N_LEAVING] > 0:
        k = st.state_i[FIRST_LEAVING]
        time, unit, j = st.state_leaving_s[k], st.state_leaving[k], st.state_leaving_for[k]
        if time > st.state_f[NOW]:
            break
        st.state_i[FIRST_LEAVING] = (k + 1) % len(st.state_leaving)
        st.state_i[N_LEAVING] -= 1
        if _still_leaves(st, unit, time):
            _stop(st, unit)
        if st.state_job_claims[j] == time:
            st.state_job_claims[j] = -math.inf
            st.state_claimant[st.state_i[N_CLAIMANTS]] = j
            st.state_i[N_CLAIMANTS] += 1
    if GANGS:
        stop_gangs(st, PREEMPTED)


@part
def _still_leaves(st, unit, time):
    """Tell whether `unit` still runs that was to stop at `time`."""
    k = unit - len(st.state_slot_task)
    if k < 0:
        return st.state_slot_leaves[unit] == time and st.state_slot_end[unit] != ENDED
    if st.p_job_when_preempted[k] == CANCEL:
        return st.state_job_leaves[k] == time and st.state_job_left[k] > 0
    return GANGS and st.state_job_leaves[k] == time and st.state_job_idle_held[k] >= 0


@inlined
def start_claimants(st):
    """Start the jobs whose victims have stopped, before all others, where there is room."""
    st.state_i[BARRED] = 0
    for i in range(st.state_i[N_CLAIMANTS]):
        j = st.state_claimant[i]
        if st.state_job_left[j] == 0 or st.state_job_wait_queue[j] < 0:
            continue
        if st.state_job_ready_head[j] < 0 or (is_listed(st) and is_holding(st, j)):
            continue
        g = _first_ready(st, j)
        i = open_for(st, g, NONE, True) if FLAVORS else 0
        while i != NONE:
            if _fits(st, g):
                _start(st, g)
                break
            i = open_for(st, g, i, True) if FLAVORS else NONE
    st.state_i[N_CLAIMANTS] = 0


@part
def _fits(st, g):
    """Tell whether the gang of stage `g`, or its next task, can start now."""
    total = 0
    for machine in range(len(st.state_mach_slot)):
        st.state_mach_room[machine] = room_on(st, g, machine)
        total += st.state_mach_room[machine]
    return can_start(st, g, total)


@inlined
def _stop(st, unit):
    n_slots = len(st.state_slot_task)
    if unit < n_slots:
        stop_and_requeue(st, unit, EVICTED if st.state_i[PREEMPTS_BY] == BY_LIMIT else PREEMPTED)
    elif st.p_job_when_preempted[unit - n_slots] == CANCEL:
        end_job(st, unit - n_slots, CANCELLED, CANCELLED_JOB)
    elif GANGS:
        list_to_stop(st, unit - n_slots)


@part
def _start(st, g):
    """Start the gang of stage `g`, or its next task; False if it can't after all."""
    j = st.w_stage_job[g]
    if REPLANS:
        return start_replanned(st, j)
    if RESERVES and st.state_i[RESERVATIONS] > 0:
        return start_reserved(st, j)
    if GANGS and is_waiting_gang(st, j):
        admit_waiting(st, j)
        return True
    if FLAVORS:
        start_task(st, g, machine_in_flavors(st, g, demand_row(st, g)), False, 1)
    else:
        start_task(st, g, machine_for(st, g, demand_row(st, g), 0, False), False, 1)
    return True
