"""Life cycle of a job: submission, stages that open, tasks that start and end, completion."""

import math

from sim.base.jit import inlined, late, part
from sim.engine.kernels.batches import less_each, next_run, start_batch
from sim.engine.kernels.caps import count_submitted
from sim.engine.kernels.choosing.choice import acquire_task_devices, release_task_devices
from sim.engine.kernels.elastic import finish_places, is_elastic, tasks_with, width_of
from sim.engine.kernels.faults.rates import begin_task, leave_machine
from sim.engine.kernels.faults.work import duration_s
from sim.engine.kernels.features import (
    BATCHES,
    CAPS,
    CHOOSES,
    DYNAMIC_ORDER,
    ELASTIC,
    ENFORCES,
    GANGS,
    INPUTS,
    LEARNS,
    LIMITS,
    PREEMPTS,
    RELEASES,
    SCORED,
    SERVICE,
    VARIABLE_ENDS,
    WINDOWS,
)
from sim.engine.kernels.heaps import fin_push, turn_pop, turn_push
from sim.engine.kernels.held_slots import enter_slot, leave_slots, release_slots
from sim.engine.kernels.jobs import (
    FIRST_K,
    HELD,
    JOB_ARRIVED,
    JOB_DONE,
    STAGE_DONE,
    TASKS_DONE,
    emit,
    follow_limit,
    refresh_job,
    request_refill,
    weighted_s,
)
from sim.engine.kernels.launch import launch, postpone_opening
from sim.engine.kernels.passing import note_running
from sim.engine.kernels.release import job_ends, job_starts
from sim.engine.kernels.resources import acquire_task, release_task
from sim.engine.kernels.service import accrue, drop_crossing
from sim.engine.kernels.speeds import run_s
from sim.engine.kernels.state import (
    CONSTRAINED,
    EXPECTED,
    FAILS,
    FIRST_ENDED,
    IS_REFINED,
    JOBS_LEFT,
    LAUNCH,
    LEARNING,
    N_ARRIVED,
    N_PLACED,
    N_SLOT_FREE,
    NOW,
    ONE_TO_ONE,
    PENDING,
    PREFERS,
    RECORD,
)
from sim.engine.kernels.time_limits import follow_start
from sim.engine.kernels.turns import bring_forward, has_heap, index_of, next_turn, turn_of
from sim.engine.kernels.waiting import (
    kernel_queue,
    stage_drained,
    stage_ready,
    update_wait_queue,
)
from sim.engine.kernels.windows import note_first_room
from sim.workload.kernels.pairs import partner

enter = late("sim.engine.kernels.learning.learning.enter", LEARNS)


@inlined
def submit_job(st, j):
    """Submit job `j`: open its stages that wait for no barrier."""
    st.state_job_turn[j] = st.state_i[N_ARRIVED]
    st.state_i[N_ARRIVED] += 1
    st.state_job_since[j] = st.state_f[NOW]
    st.state_job_queue[j] = kernel_queue(st, j, st.p_job_queue[j])
    update_wait_queue(st, j)
    if CAPS:
        count_submitted(st, j, 1)
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        if st.state_stage_barriers[g] == 0:
            open_stage(st, g)
    if LEARNS and st.state_i[LEARNING]:
        enter(st, j)
    emit(st, JOB_ARRIVED, j)


@part
def open_stage(st, g):
    """Make the tasks of stage `g`, which waits for no barrier, ready; one-to-one tasks may wait."""
    task0 = st.w_stage_task0[g]
    n = st.w_stage_task0[g + 1] - task0
    if has_heap(st, g):
        for turn in range(n):
            if st.state_task_missing[task0 + index_of(st, task0, turn)] == 0:
                turn_push(st, g, turn)
    else:
        st.state_stage_waiting[g] = n
    if st.state_stage_waiting[g] > 0:
        stage_ready(st, g)
        request_refill(st, st.w_stage_job[g])


@inlined
def _takes_room(st, j):
    """Note that job `j` takes room, if it had none before."""
    if RELEASES and st.state_job_started[j] == 0:
        job_starts(st, j)
    if WINDOWS:
        note_first_room(st, j)


@inlined
def _note_placement(st, slot):
    """Note time and number of the placement of the task in `slot`, which is not to leave yet."""
    st.state_slot_placed[slot] = st.state_f[NOW]
    st.state_slot_nth[slot] = st.state_i[N_PLACED]
    st.state_i[N_PLACED] += 1
    st.state_slot_leaves[slot] = math.inf


@part
def start_task(st, g, machine, in_held_slot, count):
    """Start the next task of stage `g` on `machine`, in a slot held by its gang or in free room.

    With batches the next `count`, which must be alike; of an elastic job all. If starts lag behind
    placements the task only launches, and its room is held.
    """
    now = st.state_f[NOW]
    if LEARNS:
        st.state_i[IS_REFINED] = 0
    j = st.w_stage_job[g]
    task = _take_next(st, g, machine, count)
    run = next_run(st, g, task, count) if BATCHES else 0
    duration = st.w_run_duration[run] if BATCHES else st.w_task_duration[task]
    st.state_stage_next[g] += count
    if SERVICE or DYNAMIC_ORDER:
        accrue(st, j)
    flag = 0
    if st.state_job_first_started[j] < st.p_job_notify_at[j]:
        flag = FIRST_K
        st.state_job_first_started[j] += count
    if in_held_slot:
        flag |= HELD
    _takes_room(st, j)
    start = now
    if st.state_i[LAUNCH]:
        start = launch(st, j, task, in_held_slot)
    if BATCHES:
        slot = start_batch(st, g, task, run, count, machine, flag, start)
    else:
        st.state_i[N_SLOT_FREE] -= 1
        slot = st.state_slot_free[st.state_i[N_SLOT_FREE]]
        st.state_slot_task[slot] = task
        st.state_slot_stage[slot] = g
        st.state_slot_machine[slot] = machine
        st.state_slot_flag[slot] = flag
    if in_held_slot:
        enter_slot(st, j, slot)
    else:
        if CHOOSES and st.state_i[CONSTRAINED]:
            acquire_task_devices(st, g, slot)
        acquire_task(st, j, g, machine, count)
    st.state_slot_start[slot] = start
    if PREEMPTS:
        _note_placement(st, slot)
    if st.state_job_started[j] == 0 and math.isnan(st.out_job_start[j]):
        st.out_job_start[j] = start
    if ENFORCES:
        follow_start(st, j)
    st.state_job_started[j] += count
    st.state_job_running[j] += width_of(st, j) if ELASTIC and is_elastic(st, j) else count
    if PREEMPTS:
        follow_limit(st, j)
    if st.state_i[PENDING]:
        weighted = weighted_s(st, g, duration)
        st.state_job_remaining[j] = less_each(st.state_job_remaining[j], weighted, count)
    if not BATCHES and st.state_i[RECORD]:
        st.out_task_start[task] = start
        st.out_task_machine[task] = machine
    if VARIABLE_ENDS:
        begin_task(st, slot, start, duration_s(st, slot))
    elif not BATCHES:
        fin_push(st, start + run_s(st, g, machine, duration), slot)
    if st.state_stage_waiting[g] == 0:
        stage_drained(st, g)
    if CAPS:
        note_running(st, j)
    refresh_job(st, j)


@inlined
def _take_next(st, g, machine, count):
    """Take the next `count` tasks of stage `g` off those that wait; return the first."""
    task0 = st.w_stage_task0[g]
    if ELASTIC and is_elastic(st, st.w_stage_job[g]):
        st.state_stage_waiting[g] = 0
        return task0
    if has_heap(st, g):
        return task0 + index_of(st, task0, turn_pop(st, g))
    if st.state_i[PREFERS]:
        bring_forward(st, g, next_turn(st, g, machine))
    st.state_stage_waiting[g] -= count
    return task0 + index_of(st, task0, st.state_stage_next[g])


@inlined
def end_task(st, slot):
    """End the task or batch in `slot` now: release its room and open what waited for it."""
    now = st.state_f[NOW]
    task = st.state_slot_task[slot]
    g = st.state_slot_stage[slot]
    j = st.w_stage_job[g]
    flag = st.state_slot_flag[slot]
    count = st.state_slot_count[slot] if BATCHES else 1
    width = n_slots = count
    if ELASTIC and is_elastic(st, j):
        count, width = tasks_with(st, g), st.state_job_running[j]
        finish_places(st, j, slot)
    st.state_slot_free[st.state_i[N_SLOT_FREE]] = slot
    st.state_i[N_SLOT_FREE] += 1
    if VARIABLE_ENDS:
        leave_machine(st, slot)
    if not BATCHES and st.state_i[RECORD]:
        st.out_task_finish[task] = now
    if SERVICE or DYNAMIC_ORDER:
        accrue(st, j)
    duration = st.state_slot_duration[slot] if BATCHES else st.w_task_duration[task]
    ran_s = run_s(st, g, st.state_slot_machine[slot], duration)
    if LIMITS or not BATCHES:  # else nobody reads it
        st.state_job_done_work[j] = less_each(st.state_job_done_work[j], -ran_s, count)
        if st.state_i[EXPECTED]:
            st.state_stage_done_work[g] = less_each(st.state_stage_done_work[g], -ran_s, count)
    if (DYNAMIC_ORDER or SCORED or not BATCHES) and not st.state_i[PENDING]:
        weighted = weighted_s(st, g, duration)
        st.state_job_remaining[j] = less_each(st.state_job_remaining[j], weighted, count)
    st.state_job_running[j] -= width
    if PREEMPTS:
        follow_limit(st, j)
    st.state_job_done[j] += count
    st.state_job_left[j] -= count
    st.state_stage_left[g] -= count
    if flag & HELD:
        leave_slots(st, j, slot, n_slots)
    else:
        if CHOOSES and st.state_i[CONSTRAINED]:
            release_task_devices(st, slot)
        release_task(st, j, g, st.state_slot_machine[slot], count)
    k = count if flag & FIRST_K else 0
    if st.state_i[FIRST_ENDED] or (ELASTIC and k > 0 and is_elastic(st, j)):
        k = max(min(count, st.p_job_notify_at[j] - st.state_job_first_ended[j]), 0)
    for _ in range(k):
        st.state_job_first_ended[j] += 1
        st.state_job_first_work[j] += ran_s
        if st.state_job_first_ended[j] == st.p_job_notify_at[j]:
            emit(st, TASKS_DONE, j)
    is_rerun = st.state_i[FAILS] and st.state_task_rerun[task]
    if st.state_i[ONE_TO_ONE] and st.w_stage_o2o[g] & 2 and not is_rerun:
        for ended in range(task, task + count):
            _release_children(st, g, ended)
    if st.state_stage_left[g] == 0 and not st.state_stage_done[g]:
        _stage_done(st, g)
    if st.state_job_left[j] == 0:
        _job_done(st, j)
        return
    refresh_job(st, j)
    request_refill(st, j)


@inlined
def _stage_done(st, g):
    """Complete stage `g`: open the child stages for which it was the last barrier."""
    st.state_stage_done[g] = 1
    emit(st, STAGE_DONE, g)
    for e in range(st.w_edge0[g], st.w_edge0[g + 1]):
        if st.w_edge_kind[e] == 0:
            child = st.w_edge_child[e]
            lags = len(st.w_stage_lag) and st.w_stage_lag[child] > 0
            if lags and st.state_stage_barriers[child] == 1:
                postpone_opening(st, child)
                continue
            st.state_stage_barriers[child] -= 1
            if st.state_stage_barriers[child] == 0:
                open_stage(st, child)


@inlined
def _job_done(st, j):
    """Complete job `j`: release the slots that it holds, and the jobs that wait for it."""
    st.out_job_finish[j] = st.state_f[NOW]
    st.state_i[JOBS_LEFT] -= 1
    if SERVICE:
        drop_crossing(st, j)
    if GANGS and st.state_job_idle_held[j] > 0:
        release_slots(st, j)
    if CAPS:
        note_running(st, j)
        count_submitted(st, j, -1)
    if INPUTS:
        job_ends(st, j)
    emit(st, JOB_DONE, j)


@inlined
def _release_children(st, g, task):
    """Release the one-to-one children that wait for `task` of stage `g`."""
    for e in range(st.w_edge0[g], st.w_edge0[g + 1]):
        if st.w_edge_kind[e] == 0:
            continue
        child = st.w_edge_child[e]
        waiting = partner(st.w_stage_task0, g, task, child)
        if waiting < 0:
            continue
        st.state_task_missing[waiting] -= 1
        if st.state_task_missing[waiting] == 0 and st.state_stage_barriers[child] == 0:
            task0 = st.w_stage_task0[child]
            turn_push(st, child, turn_of(st, task0, waiting - task0))
            if st.state_stage_waiting[child] == 1:
                stage_ready(st, child)
                request_refill(st, st.w_stage_job[child])
