"""Machines held for the first stage in order that does not fit, where later ones that fit go first.

Without it, tasks with large demands starve: as small tasks end, other small ones take their room.
The held machines are those on which the first stage's task lacks the least, at most one for each of
its tasks that have not started. They are chosen anew in each dispatch.
"""

# mypy: disable-error-code="no-untyped-def"

import numpy as np

from sim.base.jit import part
from sim.engine.kernels.features import CAPS
from sim.engine.kernels.passing import is_passed_over
from sim.engine.kernels.resources import retry_machine
from sim.engine.kernels.state import HELD_MACHINES, N_BUCKETS
from sim.engine.kernels.waiting import goes_before


@part
def first_waiting(st):
    """Return the first waiting stage in order, -1 for none."""
    first = -1
    for position in range(st.state_i[N_BUCKETS]):
        g = st.state_bucket_root[position]
        if first < 0 or goes_before(st, g, first):
            if CAPS and is_passed_over(st, g):
                continue  # and so is all of its bucket
            first = g
    return first


@part
def hold_machines(st, g):
    """Hold machines for the tasks of stage `g` that have not started, the nearest to room first."""
    n_machines = len(st.state_mach_held)
    for machine in range(n_machines):
        st.state_mach_shortfall[machine] = _shortfall(st, g, machine)
    n_tasks = st.w_stage_task0[g + 1] - st.w_stage_task0[g]
    for _ in range(min(st.state_i[HELD_MACHINES], n_tasks - st.state_stage_next[g])):
        best, smallest = -1, np.inf
        for machine in range(n_machines):
            if st.state_mach_shortfall[machine] < smallest:
                best, smallest = machine, st.state_mach_shortfall[machine]
        if best < 0:
            return
        st.state_mach_held[best] = 1
        st.state_mach_shortfall[best] = np.inf


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

    Of the resource of which it lacks most, over the largest amount of it on a machine.
    """
    if st.state_mach_lost[machine]:
        return np.inf
    lacking = 0.0
    for r in range(st.state_mach_free.shape[1]):
        demand = st.w_stage_fit[g, r]
        if demand > st.c_capacity[machine, r]:
            return np.inf
        lacking = max(lacking, (demand - st.state_mach_free[machine, r]) * st.c_mach_scale[r])
    return lacking
