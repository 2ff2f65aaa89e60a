"""Free slots by shape: how many slots of a gang the free room holds at most.

A *shape* is what a slot takes and the classes of machines that it may be on. Lost, kept and closed
machines and single devices are not looked at, so a count is an upper bound: a gang of more slots
does not fit, and no machine need be tried. A shape is counted when it is asked for, and then
follows the machines whose room has changed, until it was not asked for during `PATIENCE` changes.
While nothing is released room only gets less, and a count made before is a bound still.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.state import IS_COUNTED, N_COUNTED

UNCOUNTED = -1
PATIENCE = 16
MOST = 2**31
"""Slots of a machine at most, of a shape that takes nothing."""


@part
def most_slots(st, j):
    """Return how many slots of job `j` the free room holds at most."""
    if not st.state_i[IS_COUNTED]:
        _follow_room(st)
        st.state_i[IS_COUNTED] = 1
    shape = st.w_job_shape[j]
    if st.state_shape_slots[shape] == UNCOUNTED:
        _begin_count(st, shape)
    st.state_shape_asked[shape] = PATIENCE
    return st.state_shape_slots[shape]


@part
def most_slots_on(st, j, machine):
    """Return the part of the last count that is of `machine`."""
    return _slots_in(st, st.w_job_shape[j], st.state_seen_free, machine)


@inlined
def _begin_count(st, shape):
    total = 0
    for machine in range(len(st.state_seen_free)):
        total += _slots_in(st, shape, st.state_seen_free, machine)
    st.state_shape_slots[shape] = total
    st.state_counted[st.state_i[N_COUNTED]] = shape
    st.state_i[N_COUNTED] += 1


@inlined
def _follow_room(st):
    """Let the counts follow the machines whose room has changed; drop those no longer asked for."""
    _drop_unasked(st)
    free, seen = st.state_mach_free, st.state_seen_free
    for machine in range(len(seen)):
        changed = 0
        for r in range(seen.shape[1]):
            changed |= free[machine, r] ^ seen[machine, r]
        if not changed:
            continue
        for i in range(st.state_i[N_COUNTED]):
            shape = st.state_counted[i]
            gained = _slots_in(st, shape, free, machine) - _slots_in(st, shape, seen, machine)
            st.state_shape_slots[shape] += gained
        for r in range(seen.shape[1]):
            seen[machine, r] = free[machine, r]


@inlined
def _drop_unasked(st):
    n = 0
    for i in range(st.state_i[N_COUNTED]):
        shape = st.state_counted[i]
        if st.state_shape_asked[shape] > 0:
            st.state_shape_asked[shape] -= 1
            st.state_counted[n] = shape
            n += 1
        else:
            st.state_shape_slots[shape] = UNCOUNTED
    st.state_i[N_COUNTED] = n


@part
def _slots_in(st, shape, room, machine):
    """Count the slots of a shape for which `room` suffices on `machine`."""
    if CHOOSES and not st.w_shape_allowed[shape] & st.c_mach_class[machine]:
        return 0
    n_slots = MOST
    for r in range(st.w_shape_slot.shape[1]):
        if st.w_shape_slot[shape, r] > 0:
            n_slots = min(n_slots, max(room[machine, r], 0) // st.w_shape_slot[shape, r])
    return n_slots
