"""Machines that are lost, with the tasks that ran on them, and come back.

What ran on a lost machine starts again from the beginning, wherever there is room.
"""

from sim.kernels._jit import inlined, part
from sim.kernels.lifecycle import FIRST_K, emit, turn_of
from sim.kernels.resources import freed, give
from sim.kernels.service import accrue, watch
from sim.kernels.state import (
    LIMITS,
    MOVING,
    N_SLOT_FREE,
    NEXT_OUTAGE,
    NOW,
    SERVICE,
)
from sim.kernels.stretch import forget_end, leave_machine
from sim.kernels.taskheap import turn_push
from sim.kernels.waiting import rank_changed, settle, stage_ready

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
                _kill(st, st.state_mach_slot[machine])
        emit(st, FAULT, machine)
        i += 1
    st.state_i[NEXT_OUTAGE] = i


@part
def _kill(st, slot):
    """Let the task in `slot` be as if it had never started, but for the service that it had."""
    task = st.state_slot_task[slot]
    g = st.state_slot_stage[slot]
    j = st.w_stage_job[g]
    st.state_slot_free[st.state_i[N_SLOT_FREE]] = slot
    st.state_i[N_SLOT_FREE] += 1
    leave_machine(st, slot)
    forget_end(st, slot)
    if st.state_i[SERVICE] or st.state_i[MOVING]:
        accrue(st, j)
    st.state_job_running[j] -= 1
    st.state_job_started[j] -= 1
    if st.state_slot_flag[slot] & FIRST_K:
        st.state_job_first[j] -= 1
    st.state_stage_next[g] -= 1
    give(st, j, g, st.state_slot_machine[slot])
    turn_push(st, g, turn_of(st, st.w_stage_task0[g], task - st.w_stage_task0[g]))
    if st.state_stage_waiting[g] == 1:
        stage_ready(st, g)
    if st.state_i[LIMITS]:
        settle(st, j)
    if st.state_i[MOVING]:
        rank_changed(st, j)
    if st.state_i[SERVICE]:
        watch(st, j)
