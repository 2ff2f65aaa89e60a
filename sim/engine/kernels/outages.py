"""Machines that are lost, with the tasks that ran on them, and come back.

What ran on a lost machine starts again from the beginning, wherever there is room.
"""

from sim.base.jit import inlined
from sim.engine.kernels.lifecycle import emit
from sim.engine.kernels.resources import freed
from sim.engine.kernels.restart import ready_again, take_down
from sim.engine.kernels.state import NEXT_OUTAGE, NOW

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
