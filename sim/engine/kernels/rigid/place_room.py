"""Room of places that rigid jobs claim: now, at later times, and the least between two of them.

The machines that have room for slots are chosen by it, and fill the entries of claims
(`sim.engine.kernels.rigid.places`).
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import part
from sim.engine.kernels.choosing.choice import BEST_FIT, FASTEST, LEAST_DOT, score
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.features import CHOOSES, FLAVORS, WINDOWS
from sim.engine.kernels.resources import is_other_flavor
from sim.engine.kernels.rigid.rigid import width
from sim.engine.kernels.state import CONSTRAINED, HARD_CAPS, MACHINE_CHOICE, NOW
from sim.engine.kernels.windows import UNFORESEEN, is_closed

AS_IT_IS = -math.inf
AT_BEGIN, WITHIN, TOGETHER = range(3)
"""Rows of ``state_room``: of a place at some begin, and at a later time; of all machines."""


@part
def first_entry(st, j):
    """Return the first entry of the claim of job `j`: there is one a task, and two more."""
    return st.w_stage_task0[st.w_job_stage0[j]] + 2 * j


@part
def free_slots(st, j, c, machine, begin, end):
    """Return how many slots of component `c` of job `j` stay free on a machine between two times.

    At most all. Sets that number, and the least room that the machine has meanwhile.
    """
    if not may_hold(st, j, c, machine, begin, end):
        st.state_place_slots[machine] = 0
        return 0
    least_room(st, machine, begin, end)
    return slots_within(st, j, c, machine, begin)


@part
def stays_free(st, j, place, begin, end):
    """Tell whether a place that is no machine has room for all of job `j` between two times."""
    least_room(st, place, begin, end)
    for r in range(len(st.state_free)):
        if 0 < st.w_job_total[j, r] > st.state_place_room[place, r]:
            return False
    return True


@part
def least_room(st, place, begin, end):
    """Set the least room that a place has between two times."""
    min_room = st.state_place_room
    free_now(st, AT_BEGIN, place)
    change = st.state_place_first[place]
    while change >= 0 and st.state_change_time[change] <= begin:
        apply(st, AT_BEGIN, change)
        change = st.state_change_next[change]
    for r in range(len(st.state_free)):
        min_room[place, r] = st.state_room[AT_BEGIN, r]
    while change >= 0 and st.state_change_time[change] < end:
        apply(st, AT_BEGIN, change)
        if not change & 1:
            for r in range(len(st.state_free)):
                min_room[place, r] = min(min_room[place, r], st.state_room[AT_BEGIN, r])
        change = st.state_change_next[change]


@part
def slots_within(st, j, c, machine, begin):
    """Set and return how many slots of component `c` of job `j` the least room of a machine has.

    Of devices the room of all of a machine counts; as it is now, that of each.
    """
    n_slots = width(st, j)
    for r in range(len(st.state_free)):
        slot = st.w_slot[c, r]
        if slot > 0 and n_slots * slot > st.state_place_room[machine, r]:
            n_slots = max(st.state_place_room[machine, r], 0) // slot
    if CHOOSES and st.state_i[CONSTRAINED] and begin == AS_IT_IS and n_slots > 0:
        n_slots = min(n_slots, n_by_devices(st, st.w_slot, c, machine))
    if st.w_job_one_per_node[j]:
        n_slots = min(n_slots, 1)
    st.state_place_slots[machine] = n_slots
    return n_slots


@part
def may_hold(st, j, c, machine, begin, end):
    """Tell whether a machine is there, open to job `j`, and of a class for component `c`."""
    if CHOOSES and st.state_i[CONSTRAINED] and not st.w_slot_allowed[c] & st.c_mach_class[machine]:
        return False
    if FLAVORS and is_other_flavor(st, machine):
        return False
    return is_there(st, j, machine, begin, end)


@part
def is_there(st, j, machine, begin, end):
    """Tell whether a machine is there, and open to job `j` between two times."""
    if is_absent(st, machine):
        return False
    return not (WINDOWS and is_closed(st, j, machine, max(begin, st.state_f[NOW]), end))


@part
def is_absent(st, machine):
    """Tell whether `machine` is lost or drained; what was foreseen closes it as a window."""
    absent = UNFORESEEN if WINDOWS else -1
    return st.state_mach_lost[machine] & absent != 0


@part
def free_now(st, row, place):
    """Set ``state_room[row]`` to that of a place now: of a machine, a share, or all machines."""
    n_machines = st.state_mach_free.shape[0]
    for r in range(len(st.state_free)):
        if place < n_machines:
            st.state_room[row, r] = st.state_mach_free[place, r]
        elif place < len(st.state_place_first) - 1:
            org = place - n_machines
            st.state_room[row, r] = st.c_org_cap[org, r] - st.state_org_used[org, r]
        else:
            st.state_room[row, r] = st.state_free[r]


@part
def apply(st, row, change):
    """Add what a change frees, or take what it claims, in the room of its place."""
    entry = change >> 1
    for r in range(len(st.state_free)):
        if change & 1:
            st.state_room[row, r] += st.state_entry_room[entry, r]
        else:
            st.state_room[row, r] -= st.state_entry_room[entry, r]


@part
def lacks_room(st, row, j):
    """Tell whether ``state_room[row]`` is too small for all of job `j`."""
    for r in range(len(st.state_free)):
        needed = st.w_job_total[j, r]
        if needed > 0 and needed > st.state_room[row, r]:
            return True
    return False


@part
def close_claim(st, j, entry):
    """Fill the last entries of the claim of job `j`, from `entry` on: of its share, and of all."""
    n_machines, together = st.state_mach_free.shape[0], len(st.state_place_first) - 1
    if st.state_i[HARD_CAPS]:
        _fill(st, j, entry, n_machines + st.w_job_org[j], width(st, j), st.w_job_total, j, 1)
        entry += 1
    _fill(st, j, entry, together, width(st, j), st.w_job_total, j, 1)
    st.state_claim_entries[j] = entry + 1 - first_entry(st, j)


@part
def fill_entry(st, j, c, entry, machine, n_slots):
    """Fill an entry of the claim of job `j`: slots of component `c` on a machine."""
    _fill(st, j, entry, machine, n_slots, st.w_slot, c, n_slots)


@part
def _fill(st, j, entry, place, n_slots, demand, row, times):
    st.state_entry_job[entry] = j
    st.state_entry_place[entry] = place
    st.state_entry_slots[entry] = n_slots
    for r in range(len(st.state_free)):
        st.state_entry_room[entry, r] = times * demand[row, r]


@part
def takes_first(st):
    """Tell whether jobs take the first machines with free slots."""
    rule = st.state_i[MACHINE_CHOICE]
    return rule != BEST_FIT and rule != LEAST_DOT and rule != FASTEST


@part
def next_machine(st, c, machine, by_score):
    """Return the machine that takes tasks after `machine`, of those with free slots; -1: none."""
    n_machines, best, best_score = st.state_mach_free.shape[0], -1, 0.0
    if not by_score:
        machine += 1
        while machine < n_machines and st.state_place_slots[machine] == 0:
            machine += 1
        return machine if machine < n_machines else -1
    for other in range(n_machines):
        if st.state_place_slots[other] > 0:
            other_score = score(st, st.state_place_room, st.w_slot, c, st.w_slot_stage[c], other)
            if best < 0 or other_score < best_score:
                best, best_score = other, other_score
    return best
