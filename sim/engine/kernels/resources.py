"""Taking and giving back room: on machines, and in the accounts of organisations and queues."""

from sim.base.jit import inlined, part
from sim.engine.kernels.devices import may_run
from sim.engine.kernels.features import CHOOSES, USAGE, VARIABLE_ENDS
from sim.engine.kernels.state import HARD, N_DIRTY, N_TOUCHED, PICKY, RELEASED, UNIT

FREED, HELD_BACK = 1, 2


@part
def demand_row(st, g):
    """Return the row of ``w_stage_demand`` that holds what a task of stage `g` needs."""
    return 0 if st.state_i[UNIT] else g


@part
def fits(st, row, machine):
    """Tell whether the demands of `row` fit the free room of `machine`."""
    if st.state_mach_lost[machine]:
        return False
    for r in range(st.state_mach_free.shape[1]):
        if st.w_stage_fit[row, r] > st.state_mach_free[machine, r]:
            return False
    if CHOOSES and st.state_i[PICKY]:
        return may_run(st, row, machine)
    return True


@part
def within_cap(st, j, demand, row, times):
    """Tell whether the organisation of job `j` may use `times` the demands of `row` more."""
    if not st.state_i[HARD]:
        return True
    org = st.w_job_org[j]
    for r in range(st.c_dot.shape[1]):
        if st.state_org_used[org, r] + times * demand[row, r] > st.c_org_cap[org, r]:
            return False
    return True


@inlined
def take(st, j, g, machine):
    """Take the room of one task of stage `g` on `machine`."""
    _move(st, j, machine, st.w_stage_demand, demand_row(st, g), 1)


@inlined
def give(st, j, g, machine):
    """Give back the room of one task of stage `g` on `machine`."""
    _move(st, j, machine, st.w_stage_demand, demand_row(st, g), -1)
    st.state_org_freed[st.w_job_org[j]] = 1
    freed(st, machine)


@inlined
def take_held(st, j, machine):
    """Take the room of one held slot of gang job `j` on `machine`."""
    _move(st, j, machine, st.w_job_slot, j, 1)


@inlined
def give_held(st, j, machine):
    """Give back the room of one held slot of gang job `j` on `machine`."""
    _move(st, j, machine, st.w_job_slot, j, -1)
    st.state_org_freed[st.w_job_org[j]] = 1
    freed(st, machine)


@part
def _move(st, j, machine, demand, row, sign):
    for r in range(demand.shape[1]):
        amount = sign * demand[row, r]
        st.state_mach_free[machine, r] -= amount
        if USAGE:
            st.state_job_used[j, r] += amount
            st.state_queue_used[st.state_job_home[j], r] += amount
            st.state_org_used[st.w_job_org[j], r] += amount
    if CHOOSES:
        st.state_mach_version[machine] += 1
    if VARIABLE_ENDS:
        touch(st, machine)


@part
def touch(st, machine):
    """Note that something was taken or given on `machine` since the last placement."""
    if not st.state_mach_touched[machine]:
        st.state_mach_touched[machine] = 1
        st.state_touched[st.state_i[N_TOUCHED]] = machine
        st.state_i[N_TOUCHED] += 1


@part
def freed(st, machine):
    """Note that `machine` has more room than before."""
    st.state_i[RELEASED] = 1
    if not st.state_mach_dirty[machine]:
        _mark_dirty(st, machine, FREED)


@part
def hold_back(st, machine):
    """See to it that the next dispatch holds everything against `machine` again."""
    if st.state_mach_dirty[machine]:
        st.state_mach_dirty[machine] = HELD_BACK
    else:
        _mark_dirty(st, machine, HELD_BACK)


@part
def clear_dirty(st):
    """After a dispatch: of the machines freed before it, keep those that it held back."""
    n = 0
    for i in range(st.state_i[N_DIRTY]):
        machine = st.state_dirty[i]
        if st.state_mach_dirty[machine] == HELD_BACK:
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
