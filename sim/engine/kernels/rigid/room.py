"""Room for slots that start together: machines for all of them, or none, found on trial.

One search for gangs, preemption and pins, which look at the present, and for gangs of unequal slots
under reservations and plans, which look at a time. The caller says where room is: ``left`` is what
is free of each machine, and the *source* which machines are open. Components of a gang get room one
after the other, each beside those before it; devices are those of the present, if it is looked at.
A gang that asks for a domain of machines gets room in one, or, if it may, in the fewest.
In the end all is given back, and the machines are noted as those of the slots.

An elastic job that asks for a domain finds one in which to start; its places are taken there
(`sim.engine.kernels.rigid.resize`).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.choosing.choice import acquire_devices, score
from sim.engine.kernels.choosing.devices import release
from sim.engine.kernels.components import end_component, first_component, is_heterogeneous
from sim.engine.kernels.domains import largest_domain, look_into, next_domain
from sim.engine.kernels.elastic import is_elastic, wanted_width
from sim.engine.kernels.features import (
    CHOOSES,
    ELASTIC,
    PINS,
    PLACES,
    PREEMPTS,
    REPLANS,
    TOPOLOGY,
)
from sim.engine.kernels.held_slots import is_open, slots_in
from sim.engine.kernels.state import CONSTRAINED, MACHINE_CHOICE

choose_nodes = late("sim.engine.kernels.rigid.replan_nodes.choose_nodes", REPLANS)
note_fit = late("sim.engine.kernels.rigid.replan_nodes.note_fit", REPLANS)

PRESENT, PINNED, FREED, BETWEEN, PLANNED = range(5)
"""Sources of room: machines as they are; of them at most ``state_mach_limit`` slots; those whose
``state_mach_room`` is not 0, while units that stop are given back; places whose
``state_place_slots`` is not 0, between two times; allowed nodes of a plan."""
FIRST, LEAST_SCORE, CONSECUTIVE = range(3)
"""Rules: the first machines with room; those of least score; rows of consecutive nodes."""


@part
def find_slots(st, j, source):
    """Find machines for all slots of gang `j` now; False if they do not fit.

    Those of the least width of an elastic job, which asks for a domain, are not noted.
    """
    if ELASTIC and TOPOLOGY and is_elastic(st, j):
        n_slots = look_where_it_starts(st, j, source)
        st.state_mach_within[:] = 1
        return n_slots >= st.w_job_width_min[j]
    by_score = CHOOSES and st.state_i[MACHINE_CHOICE] > 0
    rule = LEAST_SCORE if by_score else FIRST
    return find_together(st, j, st.state_mach_free, source, rule, True)


@part
def look_where_it_starts(st, j, source):
    """Let a search look at the domains in which elastic job `j` starts; return the slots there.

    Of those that hold the width that is wanted, of the narrowest level, the one with the least
    room; where none does, that of the level required with the most, or else the fewest together.
    """
    free, required, width = st.state_mach_free, st.w_job_required[j], wanted_width(st, j)
    st.state_mach_within[:] = 1
    for level in range(st.w_job_narrowest[j], max(required, 0) - 1, -1):
        _count_in_domains(st, j, level, free, source, True)
        domain = next_domain(st, width)
        if domain >= 0:
            st.state_mach_within[:] = 0
            look_into(st, level, domain)
            return width
    level = required
    if required < 0:
        level = st.w_job_narrowest[j]
        _count_in_domains(st, j, level, free, source, True)
    st.state_mach_within[:] = 0
    n_slots = 0
    while n_slots < width and (required < 0 or n_slots == 0):
        domain = largest_domain(st)
        if domain < 0:
            break
        look_into(st, level, domain)
        n_slots += st.state_domain_slots[domain]
        st.state_domain_slots[domain] = -1
    return n_slots


@part
def find_together(st, j, left, source, rule, is_now):
    """Find machines for all slots of gang `j` by a rule; False if they do not fit.

    In the domains that it asks for, unless its machines are told.
    """
    if TOPOLOGY and source != PINNED and st.w_job_narrowest[j] >= 0:
        return _find_in_domains(st, j, left, source, rule, is_now)
    return _find(st, j, left, source, rule, is_now)


@part
def _find_in_domains(st, j, left, source, rule, is_now):
    """Find machines for all slots of gang `j` in one domain, the narrowest, or in the fewest.

    Of the domains of a level in the one with the least room that holds them.
    """
    n_slots, level = st.w_slot_size[first_component(st, j)], st.w_job_narrowest[j]
    while level >= max(st.w_job_required[j], 0):
        _count_in_domains(st, j, level, left, source, is_now)
        while True:
            domain = next_domain(st, n_slots)
            if domain < 0:
                break
            st.state_mach_within[:] = 0
            look_into(st, level, domain)
            if _find(st, j, left, source, rule, is_now):
                st.state_mach_within[:] = 1
                return True
        st.state_mach_within[:] = 1
        level -= 1
    return st.w_job_required[j] < 0 and _find_in_fewest(st, j, left, source, rule, is_now)


@part
def _find_in_fewest(st, j, left, source, rule, is_now):
    """Find machines for all slots of gang `j` in few domains, those with the most room first."""
    n_slots, level, n_within = st.w_slot_size[first_component(st, j)], st.w_job_narrowest[j], 0
    _count_in_domains(st, j, level, left, source, is_now)
    st.state_mach_within[:] = 0
    fits = False
    while not fits:
        domain = largest_domain(st)
        if domain < 0:
            break
        look_into(st, level, domain)
        n_within += st.state_domain_slots[domain]
        st.state_domain_slots[domain] = -1
        fits = n_within >= n_slots and _find(st, j, left, source, rule, is_now)
    st.state_mach_within[:] = 1
    return fits or _find(st, j, left, source, rule, is_now)  # where other components find room


@part
def _count_in_domains(st, j, level, left, source, is_now):
    """Count the slots of the first component of gang `j` with room in each domain of a level."""
    c = first_component(st, j)
    st.state_domain_slots[:] = 0
    if st.w_job_one_per_node[j]:
        st.state_mach_given[:] = 0
    for machine in range(len(st.state_mach_within)):
        n_slots = min(slots_beside(st, j, c, machine, left, source, is_now), st.w_slot_size[c])
        st.state_domain_slots[st.c_domain[level, machine]] += n_slots


@part
def _find(st, j, left, source, rule, is_now):
    """Find machines for all slots of gang `j` by a rule, where the search looks.

    Where that does not suffice for several components, on the first machines with room.
    """
    if find_within(st, j, left, source, rule, is_now):
        return True
    is_other = rule != FIRST and is_heterogeneous(st, j)
    return is_other and find_within(st, j, left, source, FIRST, is_now)


@part
def find_within(st, j, left, source, rule, is_now):
    """Find machines for all slots of gang `j` by a rule alone."""
    c, end, n_left = first_component(st, j), end_component(st, j), 0
    if st.w_job_one_per_node[j]:
        st.state_mach_given[:] = 0
    while c < end:
        if REPLANS and rule == CONSECUTIVE:
            n_left = _fill_rows(st, j, c, left, is_now)
        else:
            n_left = _fill_machines(st, j, c, left, source, rule, is_now)
        if n_left > 0:
            break
        c += 1
    fits = c == end
    for other in range(first_component(st, j), min(c + 1, end)):
        give_back(st, other, n_left if other == c else 0, left, is_now)
    return fits


@part
def _fill_machines(st, j, c, left, source, rule, is_now):
    """Let machines in turn give slots of component `c`, as many as they can; return those left."""
    n_left, machine = st.w_slot_size[c], -1
    while n_left > 0:
        machine = next_machine(st, j, c, machine, left, source, rule, is_now)
        if machine < 0:
            return n_left
        n_slots = min(slots_beside(st, j, c, machine, left, source, is_now), n_left)
        if PINS and source == PINNED:
            st.state_mach_limit[machine] -= n_slots
        n_left = _fill(st, j, c, n_left, machine, n_slots, left, is_now)
    return 0


@part
def next_machine(st, j, c, machine, left, source, rule, is_now):
    """Return the machine that gives slots after `machine`: the next, or that of least score.

    -1 if none of them has room.
    """
    if not (CHOOSES and rule == LEAST_SCORE):
        return machine + 1 if machine + 1 < st.state_mach_free.shape[0] else -1
    best, best_score = -1, 0.0
    for other in range(st.state_mach_free.shape[0]):
        if slots_beside(st, j, c, other, left, source, is_now) > 0:
            other_score = score(st, left, st.w_slot, c, st.w_slot_stage[c], other)
            if best < 0 or other_score < best_score:
                best, best_score = other, other_score
    return best


@part
def _fill_rows(st, j, c, left, is_now):
    """Choose nodes for all slots of component `c` by consecutive best fit; return those left."""
    room, tasks, total, n_left = st.state_node_room, st.state_node_tasks, 0, st.w_slot_size[c]
    for node in range(len(room)):
        room[node] = slots_beside(st, j, c, node, left, PLANNED, is_now)
        note_fit(st, j, node, left, node)
        total += room[node]
    if total < n_left:
        return n_left
    choose_nodes(st, j, n_left)
    for node in range(len(tasks)):
        n_left = _fill(st, j, c, n_left, node, tasks[node], left, is_now)
    return n_left


@part
def slots_beside(st, j, c, machine, left, source, is_now):
    """Count the slots of component `c` that find room on `machine`, beside those of gang `j`."""
    if TOPOLOGY and not st.state_mach_within[machine]:
        return 0
    if st.w_job_one_per_node[j] and st.state_mach_given[machine]:
        return 0
    if source <= FREED and not is_open(st, j, c, machine):
        return 0
    if PREEMPTS and source == FREED and st.state_mach_room[machine] == 0:
        return 0
    if PLACES and source == BETWEEN and st.state_place_slots[machine] == 0:
        return 0
    if REPLANS and source == PLANNED and st.state_node_allowed[machine] == 0:
        return 0
    n_slots = slots_in(st, j, c, machine, left, is_now)
    if PINS and source == PINNED:
        n_slots = min(n_slots, st.state_mach_limit[machine])
    return n_slots


@inlined
def _fill(st, j, c, n_left, machine, n_slots, left, is_now):
    """Let a machine give slots of component `c`, of which `n_left` had none; return those left."""
    if st.w_job_one_per_node[j] and n_slots > 0:
        st.state_mach_given[machine] = 1
    for _ in range(n_slots):
        n_left -= 1
        take_on_trial(st, c, n_left, machine, left, is_now)
    return n_left


@part
def take_on_trial(st, c, i, machine, left, is_now):
    """Take room and devices for the `i`-th slot of component `c` on `machine`, and note it."""
    entry = st.w_slot0[c] + i
    st.state_held_machine[entry] = machine
    if is_now and CHOOSES and st.state_i[CONSTRAINED]:
        st.state_held_devices[entry] = acquire_devices(st, st.w_slot, c, machine)
    for r in range(left.shape[1]):
        left[machine, r] -= st.w_slot[c, r]


@part
def give_back(st, c, first, left, is_now):
    """Give back what was taken on trial for the slots of component `c`, from the `first` on."""
    for entry in range(st.w_slot0[c] + first, st.w_slot0[c] + st.w_slot_size[c]):
        machine = st.state_held_machine[entry]
        if is_now and CHOOSES and st.state_i[CONSTRAINED]:
            release(st, st.w_slot, c, machine, st.state_held_devices[entry])
        for r in range(left.shape[1]):
            left[machine, r] += st.w_slot[c, r]
