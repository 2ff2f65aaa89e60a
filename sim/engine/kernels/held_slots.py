"""Slots that gangs hold: their room and devices are taken at once, and given back at once.

A slot has room for any task of its component. Idle slots of a component are a stack, from
``w_slot0`` on, each with its machine and devices; `state_job_idle_held` are those of a job.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices, set_devices
from sim.engine.kernels.choosing.devices import n_by_devices, release
from sim.engine.kernels.components import (
    add_idle,
    component_of,
    end_component,
    first_component,
    idle_slots,
)
from sim.engine.kernels.features import (
    CHOOSES,
    CLASSES,
    ELASTIC,
    FLAVORS,
    HOLDS,
    PREEMPTS,
    RUNS_ON,
    SPREADS,
    WINDOWS,
)
from sim.engine.kernels.resources import acquire_held, is_kept, is_other_flavor, release_held
from sim.engine.kernels.selected import is_shut
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import CONSTRAINED, N_HOLDERS

UNLIMITED = 2**62


@part
def slots_on(st, j, c, machine):
    """Count the slots of component `c` of job `j` that find room on `machine` now."""
    if not is_open(st, j, c, machine):
        return 0
    return slots_in(st, j, c, machine, st.state_mach_free, True)


@part
def is_open(st, j, c, machine):
    """Tell whether `machine` may give slots of component `c` of job `j` now."""
    if st.state_mach_lost[machine]:
        return False
    if (HOLDS or CLASSES) and is_kept(st, st.w_job_total, j, machine):  # the job as a whole
        return False
    if (WINDOWS or RUNS_ON) and is_shut(st, j, machine):
        return False
    return not (SPREADS and is_beside_itself(st, j, machine))


@part
def slots_in(st, j, c, machine, left, is_now):
    """Count the slots of component `c` of job `j` in what is left of `machine`, of its class.

    All, if they take nothing. Of devices as they are now, if that is what is left.
    """
    if FLAVORS and is_other_flavor(st, machine):
        return 0
    n_slots = UNLIMITED
    for r in range(st.c_alignment_scale.shape[1]):
        if st.w_slot[c, r] > 0:
            n_slots = min(n_slots, left[machine, r] // st.w_slot[c, r])
    if n_slots == UNLIMITED:
        n_slots = st.w_slot_size[c]
    if CHOOSES and st.state_i[CONSTRAINED]:
        if not st.w_slot_allowed[c] & st.c_mach_class[machine]:
            return 0
        if is_now and n_slots > 0:
            n_slots = min(n_slots, n_by_devices(st, st.w_slot, c, machine))
    if st.w_job_one_per_node[j]:
        n_slots = min(n_slots, 1)
    return max(n_slots, 0)


@part
def hold_slot(st, j, c, i, machine):
    """Take the `i`-th slot of component `c` of job `j`, from the bottom of its stack, there."""
    i += st.w_slot0[c]
    if CHOOSES and st.state_i[CONSTRAINED]:
        st.state_held_devices[i] = acquire_devices(st, st.w_slot, c, machine)
    acquire_held(st, j, c, machine)
    st.state_held_machine[i] = machine


@part
def enter_slot(st, j, slot):
    """Give the task in `slot` the devices of the slot that its job has just taken off its stack."""
    if ELASTIC:
        st.state_job_unit[j] = slot
    if CHOOSES and st.state_i[CONSTRAINED]:
        c = component_of(st, st.state_slot_stage[slot])
        set_devices(st, slot, st.state_held_devices[st.w_slot0[c] + idle_slots(st, j, c)])


@part
def leave_slots(st, j, slot, count):
    """Let the slots in which the task or batch in `slot` ran be idle again."""
    c = component_of(st, st.state_slot_stage[slot])
    for _ in range(count):
        i = st.w_slot0[c] + idle_slots(st, j, c)
        st.state_held_machine[i] = st.state_slot_machine[slot]
        if CHOOSES and st.state_i[CONSTRAINED]:
            st.state_held_devices[i] = st.state_slot_devices[slot]
        add_idle(st, j, c, 1)


@part
def release_slots(st, j):
    """Give back the slots of gang job `j`, which all are idle: it is done, or waits again."""
    for c in range(first_component(st, j), end_component(st, j)):
        base = st.w_slot0[c]
        for i in range(base, base + idle_slots(st, j, c)):
            machine = st.state_held_machine[i]
            if CHOOSES and st.state_i[CONSTRAINED]:
                release(st, st.w_slot, c, machine, st.state_held_devices[i])
            release_held(st, j, c, machine)
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
