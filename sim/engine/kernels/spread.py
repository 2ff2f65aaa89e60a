"""Spread jobs: no two tasks, or slots, of a job share a machine, also where tasks start singly.

Slots that start together are found on machines of their own (`sim.engine.kernels.rigid.room`). A
task that starts by itself, and a gang some of whose tasks run beside its slots, look at what the
job has on a machine.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.components import end_component, first_component, idle_slots
from sim.engine.kernels.features import GANGS


@part
def is_beside_itself(st, j, machine):
    """Tell whether spread job `j` has a task or a slot on `machine`."""
    if not st.w_job_one_per_node[j]:
        return False
    slot = st.state_mach_slot[machine]
    while slot >= 0:
        if st.w_stage_job[st.state_slot_stage[slot]] == j:
            return True
        slot = st.state_slot_next[slot]
    if GANGS and st.state_job_idle_held[j] > 0:
        for c in range(first_component(st, j), end_component(st, j)):
            for i in range(st.w_slot0[c], st.w_slot0[c] + idle_slots(st, j, c)):
                if st.state_held_machine[i] == machine:
                    return True
    return False
