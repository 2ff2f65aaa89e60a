"""Claims of gangs of unequal slots: found together, in the least room of machines meanwhile."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.held_slots import slots_in
from sim.engine.kernels.rigid.place_room import (
    AS_IT_IS,
    close_claim,
    fill_entry,
    first_entry,
    is_there,
    least_room,
    takes_first,
)
from sim.engine.kernels.rigid.rigid import planned_end
from sim.engine.kernels.rigid.room import (
    BETWEEN,
    FIRST,
    LEAST_SCORE,
    find_together,
    give_back,
    take_on_trial,
)


@part
def claim_components(st, j, begin):
    """Fill the entries of the claim of heterogeneous gang `j`, from `begin` on; False: no room."""
    for machine in range(st.state_mach_free.shape[0]):
        _set_room(st, j, machine, begin)
    rule = FIRST if takes_first(st) else LEAST_SCORE
    if not find_together(st, j, st.state_place_room, BETWEEN, rule, begin == AS_IT_IS):
        return False
    claim_found(st, j)
    return True


@part
def are_components_free(st, j, begin):
    """Tell whether heterogeneous gang `j` still fits on the machines that it has claimed."""
    first, n_machines = first_entry(st, j), st.state_mach_free.shape[0]
    room, entry, is_now = st.state_place_room, first, begin == AS_IT_IS
    while st.state_entry_place[entry] < n_machines:
        _set_room(st, j, st.state_entry_place[entry], begin)
        entry += 1
    c, entry, fits = first_component(st, j), first, True
    n_left = st.w_slot_size[c]
    while fits and st.state_entry_place[entry] < n_machines:
        if n_left == 0:
            c += 1
            n_left = st.w_slot_size[c]
        machine, n_slots = st.state_entry_place[entry], st.state_entry_slots[entry]
        is_open = st.state_place_slots[machine] > 0
        fits = is_open and slots_in(st, j, c, machine, room, is_now) >= n_slots
        for _ in range(n_slots if fits else 0):
            n_left -= 1
            take_on_trial(st, c, n_left, machine, room, is_now)
        entry += 1
    for other in range(first_component(st, j), c + 1):
        give_back(st, other, n_left if other == c else 0, room, is_now)
    return fits


@part
def _set_room(st, j, machine, begin):
    """Set whether `machine` is open to job `j` from `begin` on, and its least room meanwhile."""
    end = planned_end(st, begin, j)
    st.state_place_slots[machine] = is_there(st, j, machine, begin, end)
    if st.state_place_slots[machine] > 0:
        least_room(st, machine, begin, end)


@part
def claim_found(st, j):
    """Fill the entries of the claim of heterogeneous gang `j`, which was found its machines."""
    entry = first_entry(st, j)
    for c in range(first_component(st, j), end_component(st, j)):
        i = st.w_slot0[c] + st.w_slot_size[c] - 1
        while i >= st.w_slot0[c]:
            machine, n_slots = st.state_held_machine[i], 0
            while i >= st.w_slot0[c] and st.state_held_machine[i] == machine:
                i -= 1
                n_slots += 1
            fill_entry(st, j, c, entry, machine, n_slots)
            entry += 1
    close_claim(st, j, entry)
