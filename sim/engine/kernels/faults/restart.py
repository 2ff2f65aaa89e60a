"""Restarts: failed attempts, lost machines and outputs, gangs that stop.

Before it succeeds a task may fail a number of times that is drawn beforehand, each time after a
number of seconds. An attempt may fail because it finds the output of a parent's task lost: then
that one runs again, and the reader waits for it. Nothing else does: other readers have read
already.

A gang that loses a task in a held slot, or a slot with its machine, stops as a whole, once all ends
of the instant are known; what it has done stays done.
"""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.batches import less_each
from sim.engine.kernels.buckets import follow_remaining, regroup
from sim.engine.kernels.choosing.choice import release_task_devices
from sim.engine.kernels.components import end_component, first_component, idle_slots
from sim.engine.kernels.elastic import is_elastic, stop_places, tasks_with
from sim.engine.kernels.faults.rates import clear_end, leave_machine
from sim.engine.kernels.faults.work import (
    SUSPEND,
    failing_task,
    keep_work,
    lose_work,
    next_attempt,
    suspend_work,
)
from sim.engine.kernels.features import (
    CAPS,
    CHECKPOINTS,
    CHOOSES,
    CLASS_SPEEDS,
    DYNAMIC_ORDER,
    ELASTIC,
    GANGS,
    PREEMPTS,
    SCORED,
    SERVICE,
    STRICT,
    WINDOWS,
)
from sim.engine.kernels.heaps import turn_push
from sim.engine.kernels.held_slots import leave_slots, release_slots
from sim.engine.kernels.jobs import (
    FIRST_K,
    HELD,
    emit,
    follow_limit,
    refresh_job,
    request_refill,
    weighted_s,
)
from sim.engine.kernels.launch import forget_start
from sim.engine.kernels.passing import note_running
from sim.engine.kernels.resources import freed, release_task
from sim.engine.kernels.service import accrue
from sim.engine.kernels.state import (
    CONSTRAINED,
    EXPECTED,
    LAUNCH,
    N_SLOT_FREE,
    N_STOPPING,
    N_STOPS,
    NEXT_OUTAGE,
    NOW,
    PENDING,
    STOPS,
)
from sim.engine.kernels.stop_records import (
    CANCELLED,
    FAILED,
    GANG_STOPPED,
    INPUT_LOST,
    MACHINE_LOST,
    OUTPUT_LOST,
    PREEMPTED,
    TIMEOUT,
    record_stop,
)
from sim.engine.kernels.turns import turn_of
from sim.engine.kernels.waiting import is_listed, stage_ready, update_rank


@part
def stop_task(st, slot, reason):
    """Undo the start of the task in `slot`; only the service that it received stays.

    It is not yet ready again: see `requeue_task`. The attempt is recorded, unless it is stopped
    before it ran.
    """
    g = st.state_slot_stage[slot]
    j = st.w_stage_job[g]
    start, now = st.state_slot_start[slot], st.state_f[NOW]
    kept_s = _follow_work(st, slot, reason) if CHECKPOINTS else 0.0
    if st.state_i[STOPS] and (start < now or reason < OUTPUT_LOST):
        task, machine = st.state_slot_task[slot], st.state_slot_machine[slot]
        record_stop(st, task, machine, start, now, reason, kept_s)
    st.state_slot_free[st.state_i[N_SLOT_FREE]] = slot
    st.state_i[N_SLOT_FREE] += 1
    leave_machine(st, slot)
    clear_end(st, slot)
    if SERVICE or DYNAMIC_ORDER:
        accrue(st, j)
    count = 1
    if ELASTIC and is_elastic(st, j):
        count = tasks_with(st, g)
        stop_places(st, j, slot, GANG_STOPPED if reason == FAILED else reason, kept_s)
        st.state_job_running[j] = 0
    else:
        st.state_job_running[j] -= 1
    if PREEMPTS:
        follow_limit(st, j)
    st.state_job_started[j] -= count
    if st.state_i[LAUNCH] and st.out_job_start[j] > now:
        forget_start(st, j)
    is_first = st.out_job_start[j] == now and st.state_job_started[j] == 0
    if is_first and start >= now and reason > INPUT_LOST:  # whichever of its tasks is the last
        st.out_job_start[j] = math.nan  # it never ran
    if st.state_i[PENDING]:
        weighted = weighted_s(st, g, st.w_task_duration[st.state_slot_task[slot]])
        st.state_job_remaining[j] = less_each(st.state_job_remaining[j], -weighted, count)
    if st.state_slot_flag[slot] & FIRST_K:
        st.state_job_first_started[j] -= count
    st.state_stage_next[g] -= count
    if GANGS and st.state_slot_flag[slot] & HELD:
        leave_slots(st, j, slot, 1)
        if reason != TIMEOUT and reason != CANCELLED:
            list_to_stop(st, j)
    else:
        if CHOOSES and st.state_i[CONSTRAINED]:
            release_task_devices(st, slot)
        release_task(st, j, g, st.state_slot_machine[slot], 1)
    if CAPS:
        note_running(st, j)
    refresh_job(st, j)


@inlined
def _follow_work(st, slot, reason):
    """Keep of the attempt in `slot`, which is stopped, what its checkpoints have saved.

    Return how much of its time that is, s.
    """
    task, j = st.state_slot_task[slot], st.w_stage_job[st.state_slot_stage[slot]]
    if reason <= INPUT_LOST:
        lose_work(st, task)
    elif PREEMPTS and reason == PREEMPTED and st.p_job_when_preempted[j] == SUSPEND:
        return suspend_work(st, slot)
    elif reason != TIMEOUT and reason != CANCELLED:
        return keep_work(st, slot, st.w_job_checkpoint[j])
    return 0.0


@inlined
def stops_full(st):
    """Tell whether the records of stops have no room for all that may come before the next look.

    Until then each running task may be stopped once, and each that fails may have another run
    again; each place of an elastic job may be given back before that, and taken again.
    """
    room = len(st.out_stop_task) - st.state_i[N_STOPS]
    times = 4 if ELASTIC else 2
    return st.state_i[STOPS] and room < times * len(st.state_slot_task)


@part
def requeue_task(st, g, task):
    """Let `task` of stage `g`, which was stopped or is done, wait for room."""
    is_first = st.state_stage_waiting[g] == 0
    if ELASTIC and is_elastic(st, st.w_stage_job[g]):
        st.state_stage_waiting[g] = tasks_with(st, g)
    else:
        turn_push(st, g, turn_of(st, st.w_stage_task0[g], task - st.w_stage_task0[g]))
    if is_first:
        stage_ready(st, g)
    request_refill(st, st.w_stage_job[g])


@part
def stop_and_requeue(st, slot, reason):
    """Stop the task in `slot`, and let it wait for room."""
    stop_task(st, slot, reason)
    requeue_task(st, st.state_slot_stage[slot], st.state_slot_task[slot])


@part
def list_to_stop(st, j):
    """List gang job `j`, which has lost a slot or a task in one, to be stopped as a whole."""
    if not st.state_job_stops[j]:
        st.state_job_stops[j] = 1
        st.state_stopping[st.state_i[N_STOPPING]] = j
        st.state_i[N_STOPPING] += 1


@part
def _list_holders(st, machine):
    """List the gangs with idle slots on `machine`, which is lost."""
    for j in range(len(st.w_job_min_tasks)):
        for c in range(first_component(st, j), end_component(st, j)):
            n_idle = idle_slots(st, j, c) if st.state_job_idle_held[j] > 0 else 0
            for i in range(st.w_slot0[c], st.w_slot0[c] + n_idle):
                if st.state_held_machine[i] == machine:
                    list_to_stop(st, j)


@part
def stop_gangs(st, reason):
    """Stop the listed gangs, task by task; they wait for all of their slots again."""
    for k in range(st.state_i[N_STOPPING]):
        j = st.state_stopping[k]
        for machine in range(len(st.state_mach_slot)):
            slot = st.state_mach_slot[machine]
            while slot >= 0:
                after = st.state_slot_next[slot]
                in_gang = st.w_stage_job[st.state_slot_stage[slot]] == j
                if in_gang and st.state_slot_flag[slot] & HELD:
                    stop_and_requeue(st, slot, reason)
                slot = after
        release_slots(st, j)
        if CAPS:
            note_running(st, j)
        if not STRICT and not is_listed(st):
            regroup(st, j)
        refresh_job(st, j)
        st.state_job_stops[j] = 0
    st.state_i[N_STOPPING] = 0


@inlined
def attempt_fails(st, slot):
    """Tell whether the attempt that ends in `slot` fails."""
    return failing_task(st, slot) >= 0


@inlined
def fail_attempt(st, slot):
    """Fail the attempt in `slot`: its task starts again, after the lost output is made again."""
    task = st.state_slot_task[slot]
    g = st.state_slot_stage[slot]
    failing = failing_task(st, slot)
    lost = st.w_attempt_lost[next_attempt(st, failing)]
    st.state_task_failed[failing] += 1
    stop_task(st, slot, FAILED if lost < 0 else INPUT_LOST)
    if lost < 0:
        requeue_task(st, g, task)
        return
    st.state_task_reader_next[task] = st.state_task_reader[lost]
    st.state_task_reader[lost] = task
    if not st.state_task_rerun[lost]:
        _rerun(st, lost, _stage_of(st, st.w_stage_job[g], lost))


@inlined
def wake_readers(st, g, task):
    """If `task` of stage `g`, which ended, was a rerun: requeue the readers of its output."""
    if not st.state_task_rerun[task]:
        return
    st.state_task_rerun[task] = 0
    reader = st.state_task_reader[task]
    st.state_task_reader[task] = -1
    while reader >= 0:
        after = st.state_task_reader_next[reader]
        requeue_task(st, _stage_of(st, st.w_stage_job[g], reader), reader)
        reader = after


@inlined
def _rerun(st, task, g):
    """Mark `task` of stage `g`, which is done, as not done, and requeue it."""
    j = st.w_stage_job[g]
    duration = st.w_task_duration[task]
    if st.state_i[STOPS]:
        start, stop = st.out_task_start[task], st.out_task_finish[task]
        record_stop(st, task, st.out_task_machine[task], start, stop, OUTPUT_LOST, 0.0)
    st.state_task_rerun[task] = 1
    if CHECKPOINTS:
        lose_work(st, task)
    st.state_stage_left[g] += 1
    st.state_job_left[j] += 1
    st.state_job_done[j] -= 1
    ran_s = duration / st.state_task_speed[task] if CLASS_SPEEDS else duration
    st.state_job_done_work[j] -= ran_s
    if st.state_i[EXPECTED]:
        st.state_stage_done_work[g] -= ran_s
    st.state_job_remaining[j] += weighted_s(st, g, duration)
    st.state_stage_next[g] -= 1
    requeue_task(st, g, task)
    if DYNAMIC_ORDER:
        update_rank(st, j)
    if SCORED:
        follow_remaining(st, j)


@part
def _stage_of(st, j, task):
    g = st.w_job_stage0[j]
    while st.w_stage_task0[g + 1] <= task:
        g += 1
    return g


FAULT = 64
STOPS_TASKS = 5
"""Bits of outages in which machines are lost; in the others they are drained."""


@inlined
def outages(st):
    """Lose, drain and recover the machines that are due."""
    i, now = st.state_i[NEXT_OUTAGE], st.state_f[NOW]
    while i < len(st.w_outage_time) and st.w_outage_time[i] <= now:
        machine = st.w_outage_machine[i]
        kind = st.w_outage_kind[i]
        if st.w_outage_back[i]:
            st.state_mach_lost[machine] &= ~kind
            freed(st, machine)
        else:
            st.state_mach_lost[machine] |= kind
        if not st.w_outage_back[i] and kind & STOPS_TASKS:
            while st.state_mach_slot[machine] >= 0:
                slot = st.state_mach_slot[machine]
                stop_and_requeue(st, slot, MACHINE_LOST)
            if GANGS:
                _list_holders(st, machine)
                stop_gangs(st, GANG_STOPPED)
        if not WINDOWS or kind > 0:
            emit(st, FAULT, machine)
        i += 1
    st.state_i[NEXT_OUTAGE] = i
