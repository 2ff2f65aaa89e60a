"""Slots that gangs hold: their room and devices are taken at once, and given back at once.

A slot has room for any task of its job. Idle slots of a job are a stack: `state_job_idle_held` of
them, from ``w_job_held0`` on, each with its machine and devices.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices, set_devices
from sim.engine.kernels.choosing.devices import n_by_devices, release
from sim.engine.kernels.features import CHOOSES, CLASSES, HOLDS, PREEMPTS, WINDOWS
from sim.engine.kernels.resources import acquire_held, is_kept, release_held
from sim.engine.kernels.state import CONSTRAINED, N_HOLDERS
from sim.engine.kernels.windows import is_closed_now


@part
def slots_on(st, j, machine):
    """Count the slots of gang job `j` that find room on `machine` now, at most all of them."""
    if st.state_mach_lost[machine]:
        return 0
    if (HOLDS or CLASSES) and is_kept(st, st.w_job_slot, j, machine):
        return 0
    if WINDOWS and is_closed_now(st, j, machine):
        return 0
    n_slots = st.w_job_min_tasks[j]
    for r in range(st.c_alignment_scale.shape[1]):
        if st.w_job_slot[j, r] > 0:
            n_slots = min(n_slots, st.state_mach_free[machine, r] // st.w_job_slot[j, r])
    if CHOOSES and st.state_i[CONSTRAINED]:
        if not st.w_job_allowed[j] & st.c_mach_class[machine]:
            return 0
        n_slots = min(n_slots, n_by_devices(st, st.w_job_slot, j, machine))
    return max(n_slots, 0)


@part
def hold_slot(st, j, i, machine):
    """Take the `i`-th slot of gang job `j`, from the bottom of its stack, on `machine`."""
    i += st.w_job_held0[j]
    if CHOOSES and st.state_i[CONSTRAINED]:
        st.state_held_devices[i] = acquire_devices(st, st.w_job_slot, j, machine)
    acquire_held(st, j, machine)
    st.state_held_machine[i] = machine


@part
def enter_slot(st, j, slot):
    """Give the task in `slot` the devices of the slot that its job has just taken off its stack."""
    if CHOOSES and st.state_i[CONSTRAINED]:
        set_devices(st, slot, st.state_held_devices[st.w_job_held0[j] + st.state_job_idle_held[j]])


@part
def leave_slots(st, j, slot, count):
    """Let the slots in which the task or batch in `slot` ran be idle again."""
    for _ in range(count):
        i = st.w_job_held0[j] + st.state_job_idle_held[j]
        st.state_held_machine[i] = st.state_slot_machine[slot]
        if CHOOSES and st.state_i[CONSTRAINED]:
            st.state_held_devices[i] = st.state_slot_devices[slot]
        st.state_job_idle_held[j] += 1


@part
def release_slots(st, j):
    """Give back the slots of gang job `j`, which all are idle: it is done, or waits again."""
    base = st.w_job_held0[j]
    for i in range(base, base + st.state_job_idle_held[j]):
        machine = st.state_held_machine[i]
        if CHOOSES and st.state_i[CONSTRAINED]:
            release(st, st.w_job_slot, j, machine, st.state_held_devices[i])
        release_held(st, j, machine)
    st.state_job_idle_held[j] = -1
    if PREEMPTS:
        _leave_holders(st, j)


@inlined
def _leave_holders(st, j):
    """Take gang job `j` off the list of those that hold slots."""
    st.state_i[N_HOLDERS] -= 1
    last = st.state_holder[st.state_i[N_HOLDERS]]
    st.state_holder[st.state_job_holder[j]] = last
    st.state_job_holder[last] = st.state_job_holder[j]
