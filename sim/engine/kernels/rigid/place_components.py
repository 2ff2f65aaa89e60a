"""Claims of gangs of unequal slots: one component after the other, beside those before it.

By the score of machines; where that does not suffice, on the first machines with free slots. For a
start as it is now the devices of a component are taken on trial, too.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices
from sim.engine.kernels.choosing.devices import release
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.rigid.place_room import (
    AS_IT_IS,
    close_claim,
    fill_entry,
    first_entry,
    least_room,
    may_hold,
    next_machine,
    slots_within,
    takes_first,
)
from sim.engine.kernels.rigid.rigid import planned_end
from sim.engine.kernels.state import CONSTRAINED


@part
def claim_components(st, j, begin):
    """Fill the entries of the claim of heterogeneous gang `j`, from `begin` on; False: no room."""
    if _fill_components(st, j, begin, not takes_first(st)):
        return True
    return not takes_first(st) and _fill_components(st, j, begin, False)


@part
def _fill_components(st, j, begin, by_score):
    c, end, n_left = first_component(st, j), end_component(st, j), 0
    entry = first_entry(st, j)
    while c < end:
        for machine in range(st.state_mach_free.shape[0]):
            _slots_beside(st, j, c, machine, begin, entry)
        n_left, machine = st.w_slot_size[c], -1
        while n_left > 0:
            machine = next_machine(st, c, machine, by_score)
            if machine < 0:
                break
            n_slots = min(st.state_place_slots[machine], n_left)
            st.state_place_slots[machine] = 0
            fill_entry(st, j, c, entry, machine, n_slots)
            _take_devices(st, c, n_left, n_slots, machine, begin)
            n_left -= n_slots
            entry += 1
        if n_left > 0:
            break
        c += 1
    _give_back_devices(st, j, c, n_left, begin)
    if c == end:
        close_claim(st, j, entry)
    return c == end


@part
def are_components_free(st, j, begin):
    """Tell whether heterogeneous gang `j` still fits on the machines that it has claimed."""
    c, entry, fits = first_component(st, j), first_entry(st, j), True
    n_left = st.w_slot_size[c]
    while fits and st.state_entry_place[entry] < st.state_mach_free.shape[0]:
        if n_left == 0:
            c += 1
            n_left = st.w_slot_size[c]
        machine, n_slots = st.state_entry_place[entry], st.state_entry_slots[entry]
        fits = _slots_beside(st, j, c, machine, begin, entry) >= n_slots
        if fits:
            _take_devices(st, c, n_left, n_slots, machine, begin)
            n_left -= n_slots
        entry += 1
    _give_back_devices(st, j, c, n_left, begin)
    return fits


@part
def claim_found(st, j):
    """Fill the entries of the claim of heterogeneous gang `j`, which was found its machines."""
    entry = first_entry(st, j)
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot0[c], st.w_slot0[c] + st.w_slot_size[c]):
            fill_entry(st, j, c, entry, st.state_held_machine[i], 1)
            entry += 1
    close_claim(st, j, entry)


@part
def _slots_beside(st, j, c, machine, begin, end_entry):
    """Count the slots of component `c` of job `j` that stay free beside its entries before one."""
    end = planned_end(st, begin, j)
    st.state_place_slots[machine] = 0
    if not may_hold(st, j, c, machine, begin, end):
        return 0
    least_room(st, machine, begin, end)
    for entry in range(first_entry(st, j), end_entry):
        if st.state_entry_place[entry] == machine:
            if st.w_job_one_per_node[j]:
                return 0
            for r in range(len(st.state_free)):
                st.state_place_room[machine, r] -= st.state_entry_room[entry, r]
    return slots_within(st, j, c, machine, begin)


@inlined
def _take_devices(st, c, n_left, n_slots, machine, begin):
    """Take devices on trial for the next slots of component `c`, if it is to start now."""
    if CHOOSES and st.state_i[CONSTRAINED] and begin == AS_IT_IS:
        for i in range(st.w_slot0[c] + n_left - 1, st.w_slot0[c] + n_left - 1 - n_slots, -1):
            st.state_held_machine[i] = machine
            st.state_held_devices[i] = acquire_devices(st, st.w_slot, c, machine)


@inlined
def _give_back_devices(st, j, last, n_left, begin):
    """Give back the devices of all components up to `last`, of which slots are left."""
    if not (CHOOSES and st.state_i[CONSTRAINED] and begin == AS_IT_IS):
        return
    for c in range(first_component(st, j), min(last + 1, end_component(st, j))):
        first = st.w_slot0[c] + (n_left if c == last else 0)
        for i in range(first, st.w_slot0[c] + st.w_slot_size[c]):
            release(st, st.w_slot, c, st.state_held_machine[i], st.state_held_devices[i])
