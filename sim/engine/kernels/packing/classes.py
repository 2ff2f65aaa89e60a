"""Placement in strict order, pool by pool: a stage that waits keeps the machines it can run on.

A *pool* is a set of machines on which the same stages can run. The first stage in order that does
not fit bars its pools for those behind it in its queue; they start in the others. Where the queues
have strategies of their own, some let all pass: a stage of theirs that does not fit bars nothing,
and is refused, with those that are like it, until something is released or stops. With preemption
each is refused by itself: jobs of like stages differ in whom they may stop.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.batches import startable
from sim.engine.kernels.buckets import gang_kind, is_waiting_gang, list_bucket, refuse
from sim.engine.kernels.caps import counts_running
from sim.engine.kernels.dispatch import machine_for, machine_in_flavors
from sim.engine.kernels.features import (
    BATCHES,
    CAPS,
    FLAVORS,
    GANGS,
    PREEMPTS,
    QUOTAS,
    RUNS_ON,
    STRATEGIES,
    WINDOWS,
)
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import is_passed_over
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.resources import clear_dirty, demand_row, within_cap
from sim.engine.kernels.rigid.gang import admit_waiting, gang_fits, gang_within_cap
from sim.engine.kernels.selected import is_kept_off
from sim.engine.kernels.state import BARRED, N_BUCKETS, N_REFUSED, N_ROUNDS
from sim.engine.kernels.waiting import goes_before

preempt_for = late("sim.engine.kernels.preemption.preempt.preempt_for", PREEMPTS)


@inlined
def dispatch_classes(st):
    """Start all tasks that may start now, in order, each in a pool that nobody before it keeps."""
    _unbar(st)
    hint_stage, hint_queue, hint = -1, -1, 0
    is_barred = may_retry = False
    while True:
        g = _first_unbarred(st)
        if CAPS and g < 0 and may_retry and counts_running(st):
            is_barred = may_retry = False
            _unbar(st)
            hint_stage = -1  # machines before the hint were barred, perhaps
            continue
        if g < 0:
            break
        j = st.w_stage_job[g]
        queue = st.state_job_wait_queue[j]
        barred = st.state_queue_barred[queue]
        st.state_i[BARRED] = barred
        if GANGS and is_waiting_gang(st, j):
            if gang_within_cap(st, j) and gang_fits(st, j):
                admit_waiting(st, j)
                may_retry |= is_barred
            elif PREEMPTS and preempt_for(st, g):
                _unbar(st)
                is_barred = may_retry = False
                hint_stage = -1
            elif STRATEGIES and lets_pass(st, j):
                st.state_stage_refused[g] = st.state_i[N_ROUNDS]
                is_barred = True
            else:
                st.state_queue_barred[queue] = barred | _open_pools(st, j, st.w_job_pools[j])
                is_barred = True
            continue
        row, machine = demand_row(st, g), -1
        if FLAVORS:
            machine = machine_in_flavors(st, g, row)
        elif within_cap(st, j, st.w_stage_demand, row, 1):
            is_same = g == hint_stage and queue == hint_queue  # the machines barred are those
            machine = machine_for(st, g, row, hint if is_same else 0, False)
        if PREEMPTS and machine < 0 and preempt_for(st, g):
            _unbar(st)
            is_barred = may_retry = False
            hint_stage = -1
            continue
        if machine < 0 and STRATEGIES and lets_pass(st, j):
            st.state_stage_refused[g] = st.state_i[N_ROUNDS]
            if not PREEMPTS:
                refuse(st, st.state_bucket_position[st.state_stage_bucket[g]])
            is_barred = True
            continue
        if machine < 0:
            st.state_queue_barred[queue] = barred | _open_pools(st, j, st.w_stage_pools[g])
            is_barred = True
            continue
        hint_stage, hint_queue, hint = g, queue, machine
        one_queue = len(st.state_queue_root) == 1
        start_task(st, g, machine, False, startable(st, g, machine) if BATCHES and one_queue else 1)
        may_retry |= is_barred  # others may pass the job that barred
    if STRATEGIES:
        st.state_i[N_REFUSED] = 0
    clear_dirty(st)


@part
def _unbar(st):
    """Let all waiting stages be tried: none is refused, or bars a pool."""
    st.state_queue_barred[:] = 0
    if STRATEGIES:
        st.state_i[N_REFUSED] = 0
        st.state_i[N_ROUNDS] += 1


@part
def lets_pass(st, j):
    """Tell whether job `j`, which can't start, lets those behind it in its queue pass."""
    return st.c_org_skips[st.w_job_org[j]] > 0


@part
def _first_unbarred(st):
    """Return the first stage in order with a pool that is not barred, -1 for none."""
    best = -1
    if QUOTAS:
        note_borrowing(st)
    for position in range(st.state_i[N_REFUSED] if STRATEGIES else 0, st.state_i[N_BUCKETS]):
        if GANGS and st.state_bucket_kind[position] == gang_kind(st):
            best = _first_gang(st, position, best)
            continue
        g = st.state_bucket_root[position]
        if STRATEGIES and PREEMPTS and st.state_stage_refused[g] == st.state_i[N_ROUNDS]:
            best = _first_like(st, position, best)
            continue
        barred = st.state_queue_barred[st.state_bucket_queue[position]]
        pools = _open_pools(st, st.w_stage_job[g], st.w_stage_pools[g])
        if pools & ~barred and (best < 0 or goes_before(st, g, best)):
            if CAPS and is_passed_over(st, g):
                continue  # and so is all of its bucket
            best = g
    return best


@part
def _first_like(st, position, best):
    """Return the first stage like the refused one at `position` that is not, or `best`."""
    for i in range(list_bucket(st, position)):
        g = st.state_stage_stack[i]
        is_refused = st.state_stage_refused[g] == st.state_i[N_ROUNDS]
        if is_refused or (best >= 0 and not goes_before(st, g, best)):
            continue
        if CAPS and is_passed_over(st, g):
            break  # and so is all of its bucket
        best = g
    return best


@part
def _open_pools(st, j, pools):
    """Return those of `pools` off which neither the policy nor a reservation keeps job `j` now."""
    if not (WINDOWS or RUNS_ON):
        return pools
    for k in range(len(st.c_pool_machine)):
        machine = st.c_pool_machine[k]
        if is_kept_off(st, j, machine):
            pools &= ~st.c_mach_pool[machine]
    return pools


@part
def _first_gang(st, position, best):
    """Return the first stage of a gang at `position` with a pool that is not barred, or `best`.

    Gangs of one bucket differ in their pools, and in what they ask of caps.
    """
    barred = st.state_queue_barred[st.state_bucket_queue[position]]
    for i in range(list_bucket(st, position)):
        g = st.state_stage_stack[i]
        j = st.w_stage_job[g]
        is_open = _open_pools(st, j, st.w_job_pools[j]) & ~barred != 0
        if STRATEGIES and st.state_stage_refused[g] == st.state_i[N_ROUNDS]:
            is_open = False
        if CAPS and is_open:
            is_open = not is_passed_over(st, g)
        if is_open and (best < 0 or goes_before(st, g, best)):
            best = g
    return best
