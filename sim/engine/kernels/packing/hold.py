"""Machines held for the first stage in order that does not fit, where later ones that fit go first.

Without it, tasks with large demands starve: as small tasks end, other small ones take their room.
The held machines are those on which the first stage's task lacks the least, at most one for each of
its tasks that have not started. They are chosen anew in each dispatch.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from sim.base.jit import part
from sim.engine.kernels.buckets import gang_kind, is_waiting_gang
from sim.engine.kernels.features import CAPS, CHOOSES, FLAVORS, GANGS, RUNS_ON, SPREADS, WINDOWS
from sim.engine.kernels.flavors import NONE, open_for
from sim.engine.kernels.passing import first_gang_within, is_passed_over
from sim.engine.kernels.resources import is_other_flavor, retry_machine, within_cap
from sim.engine.kernels.rigid.gang import gang_within_cap
from sim.engine.kernels.selected import is_shut
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import CONSTRAINED, HELD_MACHINES, N_BUCKETS, OPEN_FLAVORS
from sim.engine.kernels.waiting import goes_before


@part
def first_waiting(st):
    """Return the first waiting stage in order, -1 for none."""
    first = -1
    for position in range(st.state_i[N_BUCKETS]):
        g = st.state_bucket_root[position]
        if CAPS and GANGS and st.state_bucket_kind[position] == gang_kind(st):
            first = first_gang_within(st, g, first)
            continue
        if first < 0 or goes_before(st, g, first):
            if CAPS and is_passed_over(st, g):
                continue  # and so is all of its bucket
            first = g
    return first


@part
def hold_machines(st, g):
    """Hold machines for the tasks of stage `g` that have not started, the nearest to room first.

    For the slots of a gang that waits. None if it waits for the cap of its organisation.
    """
    n_machines, j = len(st.state_mach_held), st.w_stage_job[g]
    if _is_capped(st, g):
        return
    if FLAVORS:
        _open_within(st, g)
    n_left = st.w_stage_task0[g + 1] - st.w_stage_task0[g] - st.state_stage_next[g]
    if GANGS and is_waiting_gang(st, j):
        n_left = st.w_job_min_tasks[j]
    for machine in range(n_machines):
        st.state_mach_shortfall[machine] = _shortfall(st, g, machine)
    for _ in range(min(st.state_i[HELD_MACHINES], n_left)):
        best, smallest = -1, np.inf
        for machine in range(n_machines):
            if st.state_mach_shortfall[machine] < smallest:
                best, smallest = machine, st.state_mach_shortfall[machine]
        if best < 0:
            return
        st.state_mach_held[best] = 1
        st.state_mach_shortfall[best] = np.inf


@part
def _open_within(st, g):
    """Open the machines of all flavors whose quota has room for stage `g`, or its gang."""
    bits = i = 0
    while True:
        i = open_for(st, g, NONE if bits == 0 else i, True)
        if i == NONE:
            break
        bits |= st.state_i[OPEN_FLAVORS]
    st.state_i[OPEN_FLAVORS] = bits


@part
def _is_capped(st, g):
    """Tell whether stage `g`, or a gang, waits for the cap of its organisation."""
    j = st.w_stage_job[g]
    if FLAVORS:
        return open_for(st, g, NONE, True) == NONE
    if GANGS and is_waiting_gang(st, j):
        return not gang_within_cap(st, j)
    return not within_cap(st, j, st.w_stage_demand, g, 1)


@part
def holds_in_vain(st, g):
    """Tell whether machines are held for stage `g`, which waits for its cap by now."""
    for machine in range(len(st.state_mach_held)):
        if st.state_mach_held[machine]:
            return _is_capped(st, g)
    return False


@part
def release_machines(st):
    """Hold no machines; the next list of candidates tries those that were held."""
    for machine in range(len(st.state_mach_held)):
        if st.state_mach_held[machine]:
            st.state_mach_held[machine] = 0
            retry_machine(st, machine)


@part
def _shortfall(st, g, machine):
    """Return the room that a task of stage `g` lacks on `machine`; inf if it never fits.

    Of the resource of which it lacks most, over the largest amount of it on a machine. If its job
    is a gang that waits, that of a slot.
    """
    j = st.w_stage_job[g]
    if (WINDOWS or RUNS_ON) and is_shut(st, j, machine):
        return np.inf
    if SPREADS and is_beside_itself(st, j, machine):
        return np.inf
    if GANGS and is_waiting_gang(st, j):
        return _lacking(st, st.w_job_slot, st.w_job_allowed, j, machine)
    return _lacking(st, st.w_stage_demand, st.w_stage_allowed, g, machine)


@part
def _lacking(st, demand, allowed, row, machine):
    if st.state_mach_lost[machine] or (FLAVORS and is_other_flavor(st, machine)):
        return np.inf
    if CHOOSES and st.state_i[CONSTRAINED] and not allowed[row] & st.c_mach_class[machine]:
        return np.inf
    lacking = 0.0
    for r in range(st.c_alignment_scale.shape[1]):
        if demand[row, r] > st.c_capacity[machine, r]:
            return np.inf
        shortfall = (demand[row, r] - st.state_mach_free[machine, r]) * st.c_mach_scale[r]
        lacking = max(lacking, shortfall)
    return lacking
