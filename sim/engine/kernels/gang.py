"""Gangs: a job that starts only when its whole minimum parallelism fits, and holds those slots."""

from sim.base.jit import inlined, part
from sim.engine.kernels.features import LIMITS
from sim.engine.kernels.heaps import before
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.resources import take_held, within_cap
from sim.engine.kernels.state import N_GANG

UNLIMITED = 2**62


@part
def is_waiting_gang(st, j):
    """Tell whether job `j` is a gang that has not got its slots yet."""
    return st.w_job_min_tasks[j] > 0 and st.state_job_gang[j] < 0


@part
def room_for_gang(st, j):
    """Tell whether all slots of gang job `j` fit the free room at once, cap aside."""
    need = st.w_job_min_tasks[j]
    found = 0
    for machine in range(st.state_mach_free.shape[0]):
        found += _slots_on(st, j, machine)
        if found >= need:
            return True
    return False


@part
def gang_within_cap(st, j):
    """Tell whether all slots of gang job `j` stay within its organisation's cap."""
    return within_cap(st, j, st.w_job_slot, j, st.w_job_min_tasks[j])


@part
def admit_gang(st, j):
    """Take the slots of gang job `j`, first machine first, and start what is ready in them."""
    left = st.w_job_min_tasks[j]
    base = st.w_job_hold0[j]
    n = 0
    for machine in range(st.state_mach_free.shape[0]):
        for _ in range(min(_slots_on(st, j, machine), left)):
            take_held(st, j, machine)
            st.state_hold_machine[base + n] = machine
            n += 1
            left -= 1
        if left == 0:
            break
    for i in range(n // 2):  # a stack: the first slot on top
        other = st.state_hold_machine[base + n - 1 - i]
        st.state_hold_machine[base + n - 1 - i] = st.state_hold_machine[base + i]
        st.state_hold_machine[base + i] = other
    st.state_job_gang[j] = n
    fill_gang(st, j)


@part
def fill_gang(st, j):
    """Start ready tasks of job `j` in its idle held slots."""
    while st.state_job_gang[j] > 0:
        if LIMITS and (
            st.state_job_running[j] >= st.p_job_run_limit[j]
            or st.state_job_started[j] >= st.p_job_start_gate[j]
        ):
            return
        g = st.state_job_ready[j]
        if g < 0:
            return
        other = st.state_stage_ready_next[g]
        while other >= 0:
            if before(st, other, g):
                g = other
            other = st.state_stage_ready_next[other]
        st.state_job_gang[j] -= 1
        machine = st.state_hold_machine[st.w_job_hold0[j] + st.state_job_gang[j]]
        start_task(st, g, machine, True)


@inlined
def fill_gangs(st):
    """Let gang jobs use their own slots that came free, before anything else is placed."""
    for i in range(st.state_i[N_GANG]):
        j = st.state_gang_list[i]
        st.state_gang_listed[j] = 0
        if st.state_job_gang[j] > 0:
            fill_gang(st, j)
    st.state_i[N_GANG] = 0


@part
def _slots_on(st, j, machine):
    found = UNLIMITED
    for r in range(st.c_dot.shape[1]):
        if st.w_job_slot[j, r] > 0:
            found = min(found, st.state_mach_free[machine, r] // st.w_job_slot[j, r])
    return max(found, 0)
