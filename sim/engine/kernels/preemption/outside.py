"""Jobs that run where the policy lets them run no more: they stop, and wait again.

A gang stops as a whole, and so does a job that is cancelled.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.components import end_component, first_component, idle_slots
from sim.engine.kernels.faults.restart import list_to_stop, stop_and_requeue, stop_gangs
from sim.engine.kernels.faults.work import CANCEL
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.jobs import HELD
from sim.engine.kernels.release import CANCELLED_JOB
from sim.engine.kernels.selected import may_run_on
from sim.engine.kernels.state import PREEMPTS_BY
from sim.engine.kernels.stop_records import CANCELLED, PREEMPTED
from sim.engine.kernels.timeouts import end_job

BY_RUNS_ON = 32
UNNAMED, NAMED, TO_CANCEL = range(3)


@inlined
def stop_outside(st, changed, n_changed):
    """Stop what runs of the jobs that the policy `changed` where they may run no more."""
    if st.state_i[PREEMPTS_BY] != BY_RUNS_ON:
        return
    n_running = 0
    for i in range(n_changed):
        j = changed[i]
        runs = st.state_job_running[j] > 0 or (GANGS and st.state_job_idle_held[j] > 0)
        if runs:
            st.state_job_named[j] = NAMED
            n_running += 1
    if n_running == 0:
        return
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            after = st.state_slot_next[slot]
            j = st.w_stage_job[st.state_slot_stage[slot]]
            if st.state_job_named[j] and not may_run_on(st, j, machine):
                if st.p_job_when_preempted[j] == CANCEL:
                    st.state_job_named[j] = TO_CANCEL
                elif GANGS and st.state_slot_flag[slot] & HELD:
                    list_to_stop(st, j)
                else:
                    stop_and_requeue(st, slot, PREEMPTED)
            slot = after
    for i in range(n_changed):
        j = changed[i]
        if GANGS and st.state_job_named[j] == NAMED and _is_outside(st, j):
            if st.p_job_when_preempted[j] == CANCEL:
                st.state_job_named[j] = TO_CANCEL
            else:
                list_to_stop(st, j)
    for i in range(n_changed):
        j = changed[i]
        if st.state_job_named[j] == TO_CANCEL:
            end_job(st, j, CANCELLED, CANCELLED_JOB)
        st.state_job_named[j] = UNNAMED
    if GANGS:
        stop_gangs(st, PREEMPTED)


@part
def _is_outside(st, j):
    """Tell whether an idle slot of job `j` is where the job may run no more."""
    if st.state_job_idle_held[j] <= 0:
        return False
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot0[c], st.w_slot0[c] + idle_slots(st, j, c)):
            if not may_run_on(st, j, st.state_held_machine[i]):
                return True
    return False
