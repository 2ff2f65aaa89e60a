"""Room for slots that start together: machines in the order in which they give slots."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices, score
from sim.engine.kernels.choosing.devices import release
from sim.engine.kernels.components import end_component, first_component
from sim.engine.kernels.features import CHOOSES, REPLANS
from sim.engine.kernels.held_slots import slots_on
from sim.engine.kernels.state import CONSTRAINED, MACHINE_CHOICE


@part
def next_machine(st, j, c, machine, by_score):
    """Return the machine that gives slots after `machine`: the next, or that of least score.

    -1 if none of them has room.
    """
    if not (CHOOSES and by_score):
        return machine + 1 if machine + 1 < st.state_mach_free.shape[0] else -1
    best, best_score = -1, 0.0
    for other in range(st.state_mach_free.shape[0]):
        if slots_on(st, j, c, other) > 0:
            other_score = score(st, st.w_slot, c, st.w_slot_stage[c], other)
            if best < 0 or other_score < best_score:
                best, best_score = other, other_score
    return best


@part
def find_components(st, j):
    """Find machines for all slots of gang `j`, of several components; False if they do not fit.

    Component by component; where that does not suffice, on the first machines with room. The
    machines are noted as those of its slots, and nothing is taken.
    """
    by_score = CHOOSES and st.state_i[MACHINE_CHOICE] > 0
    if REPLANS and st.w_job_one_per_node[j]:
        by_score = False
    return find_within(st, j, by_score, False) or (by_score and find_within(st, j, False, False))


@part
def find_within(st, j, by_score, is_limited):
    """Find machines in turn; if `is_limited`, with at most ``state_mach_limit`` slots each."""
    c, end, n_left = first_component(st, j), end_component(st, j), 0
    while c < end:
        n_left, machine = st.w_slot_size[c], -1
        while n_left > 0:
            machine = next_machine(st, j, c, machine, by_score)
            if machine < 0:
                break
            n_slots = min(slots_on(st, j, c, machine), n_left)
            if REPLANS and st.w_job_one_per_node[j] and _has_slot(st, j, c, machine):
                n_slots = 0
            if is_limited:
                n_slots = min(n_slots, st.state_mach_limit[machine])
                st.state_mach_limit[machine] -= n_slots
            for _ in range(n_slots):
                n_left -= 1
                take_on_trial(st, c, n_left, machine)
        if n_left > 0:
            break
        c += 1
    fits = c == end
    for other in range(first_component(st, j), min(c + 1, end)):
        give_back(st, other, n_left if other == c else 0)
    return fits


@inlined
def _has_slot(st, j, c, machine):
    """Tell whether a component of gang `j` before `c` was given a slot on `machine`."""
    for entry in range(st.w_slot0[first_component(st, j)], st.w_slot0[c]):
        if st.state_held_machine[entry] == machine:
            return True
    return False


@part
def take_on_trial(st, c, i, machine):
    """Take room and devices for the `i`-th slot of component `c` on `machine`, and note it."""
    entry = st.w_slot0[c] + i
    st.state_held_machine[entry] = machine
    if CHOOSES and st.state_i[CONSTRAINED]:
        st.state_held_devices[entry] = acquire_devices(st, st.w_slot, c, machine)
    _add_free(st, c, machine, -1)


@part
def give_back(st, c, first):
    """Give back what was taken on trial for the slots of component `c`, from the `first` on."""
    for entry in range(st.w_slot0[c] + first, st.w_slot0[c] + st.w_slot_size[c]):
        machine = st.state_held_machine[entry]
        if CHOOSES and st.state_i[CONSTRAINED]:
            release(st, st.w_slot, c, machine, st.state_held_devices[entry])
        _add_free(st, c, machine, 1)


@inlined
def _add_free(st, c, machine, sign):
    for r in range(st.w_slot.shape[1]):
        st.state_mach_free[machine, r] += sign * st.w_slot[c, r]
