"""Room on machines, and the accounts of organisations and queues: acquire and release."""

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import WITHIN, count_amount, over_cap
from sim.engine.kernels.choosing.devices import can_run
from sim.engine.kernels.features import (
    CAPS,
    CHOOSES,
    CLASSES,
    FLAVORS,
    HOLDS,
    QUOTAS,
    USAGE,
    VARIABLE_ENDS,
)
from sim.engine.kernels.quotas import column, count_in_tree, within_quota
from sim.engine.kernels.state import (
    BARRED,
    CONSTRAINED,
    HARD_CAPS,
    IS_COUNTED,
    N_DIRTY,
    N_TOUCHED,
    OPEN_FLAVORS,
    RELEASED,
    UNIT,
)

FREED, RETRY = 1, 2


@part
def demand_row(st, g):
    """Return the row of ``w_stage_demand`` with the demand of a task of stage `g`."""
    return 0 if st.state_i[UNIT] else g


@part
def fits(st, row, machine):
    """Tell whether the demand in `row` fits the free room of `machine`."""
    if st.state_mach_lost[machine]:
        return False
    if FLAVORS and is_other_flavor(st, machine):
        return False
    for r in range(st.state_mach_free.shape[1]):
        if st.w_stage_fit[row, r] > st.state_mach_free[machine, r]:
            return False
    if CHOOSES and st.state_i[CONSTRAINED]:
        return can_run(st, row, machine)
    return True


@part
def is_other_flavor(st, machine):
    """Tell whether `machine` is of other flavors than those that are tried now."""
    return not st.state_i[OPEN_FLAVORS] >> st.c_mach_flavor[machine] & 1


@part
def takes_room(st, demand, row):
    """Tell whether the demand in `row` is not 0 throughout."""
    n_demanded = 0
    for r in range(demand.shape[1]):
        n_demanded += demand[row, r] > 0
    return n_demanded > 0


@part
def is_kept(st, demand, row, machine):
    """Tell whether the demand in `row` may not be placed on `machine`, which others wait for.

    One of 0 takes nothing from a held machine.
    """
    if HOLDS:
        return st.state_mach_held[machine] and takes_room(st, demand, row)
    if CLASSES:
        return st.c_mach_pool[machine] & st.state_i[BARRED] != 0
    return False


@part
def within_cap(st, j, demand, row, times):
    """Tell whether job `j` may use `times` the demand in `row` more: share, quotas, and caps."""
    if CAPS and over_cap(st, j, demand, row, times) != WITHIN:
        return False
    if not st.state_i[HARD_CAPS]:
        return True
    org = st.w_job_org[j]
    for r in range(st.c_alignment_scale.shape[1]):
        amount = times * demand[row, r]
        if st.state_org_used[org, r] + amount > st.c_org_cap[org, r]:
            return False
        if QUOTAS and not within_quota(st, st.state_node_taken, org, column(st, r), amount):
            return False
    return True


@inlined
def acquire_task(st, j, g, machine, count):
    """Acquire the room of `count` tasks of stage `g` on `machine`."""
    move(st, j, machine, st.w_stage_demand, demand_row(st, g), count)


@inlined
def release_task(st, j, g, machine, count):
    """Release the room of `count` tasks of stage `g` on `machine`."""
    move(st, j, machine, st.w_stage_demand, demand_row(st, g), -count)
    st.state_org_freed[st.w_job_org[j]] = 1
    freed(st, machine)


@part
def acquire_held(st, j, c, machine):
    """Acquire the room of one held slot of component `c` of gang job `j` on `machine`."""
    move(st, j, machine, st.w_slot, c, 1)


@inlined
def release_held(st, j, c, machine):
    """Release the room of one held slot of component `c` of gang job `j` on `machine`."""
    move(st, j, machine, st.w_slot, c, -1)
    st.state_org_freed[st.w_job_org[j]] = 1
    freed(st, machine)


@part
def move(st, j, machine, demand, row, times):
    """Acquire `times` the demand in `row` for job `j` on `machine`; release it if below 0."""
    for r in range(demand.shape[1]):
        amount = times * demand[row, r]
        st.state_mach_free[machine, r] -= amount
        if USAGE:
            st.state_job_used[j, r] += amount
            st.state_queue_used[st.state_job_queue[j], r] += amount
            st.state_org_used[st.w_job_org[j], r] += amount
        if QUOTAS:
            count_in_tree(st, st.w_job_org[j], machine, r, amount)
    if CAPS:
        count_amount(st, j, demand, row, times)
    if CHOOSES:
        st.state_mach_version[machine] += 1
    if VARIABLE_ENDS:
        touch(st, machine)


@part
def touch(st, machine):
    """Mark `machine` as changed since the last placement."""
    if not st.state_mach_touched[machine]:
        st.state_mach_touched[machine] = 1
        st.state_touched[st.state_i[N_TOUCHED]] = machine
        st.state_i[N_TOUCHED] += 1


@part
def freed(st, machine):
    """Mark `machine` as freed: it has more room than before."""
    st.state_i[RELEASED] = 1
    st.state_i[IS_COUNTED] = 0
    if not st.state_mach_dirty[machine]:
        _mark_dirty(st, machine, FREED)


@part
def retry_machine(st, machine):
    """Let the next dispatch try everything on `machine` again."""
    if st.state_mach_dirty[machine]:
        st.state_mach_dirty[machine] = RETRY
    else:
        _mark_dirty(st, machine, RETRY)


@part
def clear_dirty(st):
    """After a dispatch: keep only the freed machines that the next one is to try again."""
    n = 0
    for i in range(st.state_i[N_DIRTY]):
        machine = st.state_dirty[i]
        if st.state_mach_dirty[machine] == RETRY:
            st.state_mach_dirty[machine] = FREED
            st.state_dirty[n] = machine
            n += 1
        else:
            st.state_mach_dirty[machine] = 0
    st.state_i[N_DIRTY] = n


@inlined
def _mark_dirty(st, machine, why):
    st.state_mach_dirty[machine] = why
    st.state_dirty[st.state_i[N_DIRTY]] = machine
    st.state_i[N_DIRTY] += 1
