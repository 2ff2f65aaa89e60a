"""Tasks that start again: attempts fail, machines and outputs are lost, guaranteed room is wanted.

Before it succeeds a task may fail a number of times that is drawn beforehand, each time after so
many seconds. An attempt may fail because it finds the output of a parent's task lost: then that
one runs again, and the reader waits for it. Nothing else does: other readers have read already.

A job may run as many tasks as its limit; what it runs beyond (`sim.engine.plan.Plan.evict`) it has
until the room is wanted for a job below its own. The last started go first: they lose least.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.choice import give_devices
from sim.engine.kernels.features import CHOOSES, DYNAMIC_ORDER, SERVICE
from sim.engine.kernels.heaps import turn_push
from sim.engine.kernels.lifecycle import FIRST_K, emit, look_again, turn_of, weighted_s
from sim.engine.kernels.rates import forget_end, leave_machine
from sim.engine.kernels.resources import demand_row, fits, freed, give
from sim.engine.kernels.service import accrue
from sim.engine.kernels.state import N_SLOT_FREE, NEXT_OUTAGE, NOW, PENDING, PICKY, SEEN
from sim.engine.kernels.waiting import rank_changed, stage_ready


@part
def take_down(st, slot):
    """Let the task in `slot` be as if it had never started, but for the service that it had.

    It is not yet ready again: see `ready_again`.
    """
    g = st.state_slot_stage[slot]
    j = st.w_stage_job[g]
    st.state_slot_free[st.state_i[N_SLOT_FREE]] = slot
    st.state_i[N_SLOT_FREE] += 1
    leave_machine(st, slot)
    forget_end(st, slot)
    if SERVICE or DYNAMIC_ORDER:
        accrue(st, j)
    st.state_job_running[j] -= 1
    st.state_job_started[j] -= 1
    if st.state_i[PENDING]:
        st.state_job_remaining[j] += weighted_s(st, g, st.state_slot_task[slot])
    if st.state_slot_flag[slot] & FIRST_K:
        st.state_job_first[j] -= 1
    st.state_stage_next[g] -= 1
    if CHOOSES and st.state_i[PICKY]:
        give_devices(st, slot)
    give(st, j, g, st.state_slot_machine[slot])
    look_again(st, j)


@part
def ready_again(st, g, task):
    """Let `task` of stage `g`, which was taken down or is done, wait for room."""
    turn_push(st, g, turn_of(st, st.w_stage_task0[g], task - st.w_stage_task0[g]))
    if st.state_stage_waiting[g] == 1:
        stage_ready(st, g)


@inlined
def attempt_fails(st, slot):
    """Tell whether what ends in `slot` is an attempt that fails."""
    task = st.state_slot_task[slot]
    return st.w_attempt0[task] + st.state_task_failed[task] < st.w_attempt0[task + 1]


@inlined
def fail_attempt(st, slot):
    """End the attempt in `slot`: its task starts again, after what it found lost is made again."""
    task = st.state_slot_task[slot]
    g = st.state_slot_stage[slot]
    lost = st.w_attempt_lost[st.w_attempt0[task] + st.state_task_failed[task]]
    st.state_task_failed[task] += 1
    take_down(st, slot)
    if lost < 0:
        ready_again(st, g, task)
        return
    st.state_task_reader_next[task] = st.state_task_reader[lost]
    st.state_task_reader[lost] = task
    if not st.state_task_again[lost]:
        _make_again(st, lost, _stage_of(st, st.w_stage_job[g], lost))


@inlined
def made_again(st, g, task):
    """If `task` of stage `g`, which ended, had to run again: let those that wait for it go on."""
    if not st.state_task_again[task]:
        return
    st.state_task_again[task] = 0
    reader = st.state_task_reader[task]
    st.state_task_reader[task] = -1
    while reader >= 0:
        after = st.state_task_reader_next[reader]
        ready_again(st, _stage_of(st, st.w_stage_job[g], reader), reader)
        reader = after


@inlined
def _make_again(st, task, g):
    """Let `task` of stage `g`, which is done, be not done."""
    j = st.w_stage_job[g]
    duration = st.w_task_duration[task]
    st.state_task_again[task] = 1
    st.state_stage_left[g] += 1
    st.state_job_left[j] += 1
    st.state_job_done[j] -= 1
    st.state_job_done_work[j] -= duration
    if st.state_i[SEEN]:
        st.state_stage_done_work[g] -= duration
    st.state_job_remaining[j] += weighted_s(st, g, task)
    st.state_stage_next[g] -= 1
    ready_again(st, g, task)
    if DYNAMIC_ORDER:
        rank_changed(st, j)


@part
def _stage_of(st, j, task):
    g = st.w_job_stage0[j]
    while st.w_stage_task0[g + 1] <= task:
        g += 1
    return g


FAULT = 64


@inlined
def outages(st):
    """Lose and bring back the machines whose time it is."""
    i, now = st.state_i[NEXT_OUTAGE], st.state_f[NOW]
    while i < len(st.w_outage_time) and st.w_outage_time[i] <= now:
        machine = st.w_outage_machine[i]
        if st.w_outage_back[i]:
            st.state_mach_lost[machine] = 0
            freed(st, machine)
        else:
            st.state_mach_lost[machine] = 1
            while st.state_mach_slot[machine] >= 0:
                slot = st.state_mach_slot[machine]
                take_down(st, slot)
                ready_again(st, st.state_slot_stage[slot], st.state_slot_task[slot])
        emit(st, FAULT, machine)
        i += 1
    st.state_i[NEXT_OUTAGE] = i


@inlined
def evict(st, g, row):
    """Make room for a task of stage `g`, of demand `row`; return the machine, -1 if none can.

    Of the machines on which enough makes way, that where the first started of what must go
    started last (ties: the lowest).
    """
    j = st.w_stage_job[g]
    if st.state_job_running[j] >= st.p_job_run_limit[j]:
        return -1
    if st.state_job_started[j] >= st.p_job_start_gate[j]:
        return -1
    best, latest = -1, 0.0
    for machine in range(st.state_mach_free.shape[0]):
        slot = _last_to_go(st, row, machine)
        if slot >= 0 and (best < 0 or st.state_slot_start[slot] > latest):
            best, latest = machine, st.state_slot_start[slot]
    if best < 0:
        return -1
    slot = st.state_mach_slot[best]
    while not fits(st, row, best):
        after = st.state_slot_next[slot]
        if _is_beyond(st, slot):
            take_down(st, slot)
            ready_again(st, st.state_slot_stage[slot], st.state_slot_task[slot])
        slot = after
    return best


@part
def _last_to_go(st, row, machine):
    """Return the slot of the last task that goes before `row` fits `machine`, -1 if it won't."""
    if st.state_mach_lost[machine]:
        return -1
    room, found = st.state_evict_room, -1
    for r in range(len(room)):
        room[r] = st.state_mach_free[machine, r]
    slot = st.state_mach_slot[machine]
    while slot >= 0 and found < 0:
        if _is_beyond(st, slot):
            g = st.state_slot_stage[slot]
            st.state_job_evicted[st.w_stage_job[g]] += 1
            if _gives(st, room, demand_row(st, g), row):
                found = slot
        slot = st.state_slot_next[slot]
    slot = st.state_mach_slot[machine]
    while slot >= 0:
        st.state_job_evicted[st.w_stage_job[st.state_slot_stage[slot]]] = 0
        slot = st.state_slot_next[slot]
    return found


@part
def _gives(st, room, given, wanted):
    """Add the demand `given` to `room`; tell whether it is enough for the demand `wanted`."""
    enough = True
    for r in range(len(room)):
        room[r] += st.w_stage_demand[given, r]
        enough = enough and st.w_stage_fit[wanted, r] <= room[r]
    return enough


@part
def _is_beyond(st, slot):
    """Tell whether the task in `slot` is one that its job runs beyond its limit."""
    j = st.w_stage_job[st.state_slot_stage[slot]]
    return st.state_job_running[j] - st.state_job_evicted[j] > st.p_job_run_limit[j]
