"""Room for slots that start together: machines in the order in which they give slots."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.choice import acquire_devices, score
from sim.engine.kernels.choosing.devices import release
from sim.engine.kernels.components import end_component, first_component, is_heterogeneous
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.held_slots import slots_on
from sim.engine.kernels.state import CONSTRAINED, MACHINE_CHOICE


@part
def find_slots(st, j):
    """Find machines for all slots of gang `j`, all or none; False if they do not fit.

    Component by component, on the machines of least score. Where that does not suffice for several,
    on the first machines with room. The machines are noted as those of its slots, and nothing is
    taken.
    """
    by_score = CHOOSES and st.state_i[MACHINE_CHOICE] > 0
    if find_within(st, j, by_score, False):
        return True
    return by_score and is_heterogeneous(st, j) and find_within(st, j, False, False)


@part
def find_within(st, j, by_score, is_limited):
    """Find machines in turn; if `is_limited`, with at most ``state_mach_limit`` slots each."""
    c, end, n_left = first_component(st, j), end_component(st, j), 0
    if st.w_job_one_per_node[j]:
        st.state_mach_given[:] = 0
    while c < end:
        n_left, machine = st.w_slot_size[c], -1
        while n_left > 0:
            machine = _next_machine(st, j, c, machine, by_score)
            if machine < 0:
                break
            n_slots = min(_slots_beside(st, j, c, machine), n_left)
            if is_limited:
                n_slots = min(n_slots, st.state_mach_limit[machine])
                st.state_mach_limit[machine] -= n_slots
            if st.w_job_one_per_node[j] and n_slots > 0:
                st.state_mach_given[machine] = 1
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


@part
def _next_machine(st, j, c, machine, by_score):
    """Return the machine that gives slots after `machine`: the next, or that of least score.

    -1 if none of them has room.
    """
    if not (CHOOSES and by_score):
        return machine + 1 if machine + 1 < st.state_mach_free.shape[0] else -1
    best, best_score = -1, 0.0
    for other in range(st.state_mach_free.shape[0]):
        if _slots_beside(st, j, c, other) > 0:
            other_score = score(st, st.w_slot, c, st.w_slot_stage[c], other)
            if best < 0 or other_score < best_score:
                best, best_score = other, other_score
    return best


@part
def _slots_beside(st, j, c, machine):
    """Count the slots of component `c` that find room on `machine`, beside those of gang `j`."""
    if st.w_job_one_per_node[j] and st.state_mach_given[machine]:
        return 0
    return slots_on(st, j, c, machine)


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
