"""Guaranteed room: what runs beyond its job's run limit makes way for jobs below theirs.

A job may run as many tasks as its limit; what it runs beyond (`sim.engine.plan.Plan.evict`) it has
until the room is wanted for a job below its own. The last started go first: they lose least.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.resources import demand_row, fits
from sim.engine.kernels.restart import ready_again, take_down


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
