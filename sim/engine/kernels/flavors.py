"""Flavors: machines whose quotas are counted apart; a gang or a task tries one after the other.

Machines of the same flavors are a *set* (``c_mach_flavor``). What a queue tries for a demand, in
order, is a row of ``c_tries``: sets of machines on which all that it takes counts in the same
columns of the quotas. The try that is *open* restricts each search for room to its machines
(OPEN_FLAVORS, as bits), and has the columns by which quotas are looked at (FLAVOR). All of a gang
is of one try. `sim.cluster.flavors` has the rules and their source.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.quotas import borrowed_bits, borrowed_height
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.state import FLAVOR, OPEN_FLAVORS

NONE = -1


@part
def open_next(st, j, tries, demand, row, last, is_within):
    """Open the try behind `last` (NONE: the first) for job `j`; return it, NONE if there is none.

    `is_within`: only those in which caps and quotas allow the demand in `row`. In the order of its
    queue, or those for which it borrows the least far up the tree first.
    """
    org = st.w_job_org[j]
    if not st.c_org_least[org]:
        for i in range(last + 1, st.c_tries.shape[1]):
            if st.c_tries[tries, i] < 0:
                break
            _open(st, st.c_tries[tries, i])
            if not is_within or within_cap(st, j, demand, row, 1):
                return i
        open_all(st)
        return NONE
    best, lowest, last_height = NONE, 0, 0
    if last != NONE:
        last_height = _height(st, org, tries, last, demand, row)
    for i in range(st.c_tries.shape[1]):
        if st.c_tries[tries, i] < 0:
            break
        height = _height(st, org, tries, i, demand, row)
        if last != NONE and (height < last_height or (height == last_height and i <= last)):
            continue
        if (best == NONE or height < lowest) and (
            not is_within or within_cap(st, j, demand, row, 1)
        ):
            best, lowest = i, height
    if best == NONE:
        open_all(st)
    else:
        _open(st, st.c_tries[tries, best])
    return best


@part
def open_for(st, g, last, is_within):
    """Open the try behind `last` for the gang of stage `g` that waits, or a task; return it."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        return open_next(st, j, st.w_job_tries[j], st.w_job_total, j, last, is_within)
    row = demand_row(st, g)
    return open_next(st, j, st.w_stage_tries[g], st.w_stage_demand, row, last, is_within)


@part
def open_rigid(st, j, last):
    """Open the try behind `last` for rigid job `j`, a gang or one task, whatever quotas say."""
    return open_next(st, j, st.w_job_tries[j], st.w_job_total, j, last, False)


@part
def _height(st, org, tries, i, demand, row):
    """Open a try; return how far up the tree `org` borrows in it."""
    _open(st, st.c_tries[tries, i])
    return borrowed_height(st, org, borrowed_bits(st, org, demand, row))


@inlined
def _open(st, k):
    st.state_i[OPEN_FLAVORS] = st.c_try[k, 0]
    st.state_i[FLAVOR] = st.c_try[k, 1]


@inlined
def open_all(st):
    """End a search: machines of all flavors are open."""
    st.state_i[OPEN_FLAVORS] = -1


@part
def open_with(st, j, machine):
    """Open the try of gang `j` with the flavors of `machine`, where it has slots.

    False if its queue uses none of them: a state may have placed it there.
    """
    flavor, is_used = st.c_mach_flavor[machine], False
    _open_set(st, flavor)
    for i in range(st.c_tries.shape[1]):
        k = st.c_tries[st.w_job_tries[j], i]
        if k >= 0 and st.c_try[k, 0] >> flavor & 1:
            st.state_i[OPEN_FLAVORS], is_used = st.c_try[k, 0], True
    return is_used


@inlined
def _open_set(st, flavor):
    st.state_i[OPEN_FLAVORS] = -1
    st.state_i[FLAVOR] = flavor


@part
def look_at(st, machine):
    """Let quotas be looked at by the columns of `machine`; all machines are open."""
    _open_set(st, st.c_mach_flavor[machine])


@part
def is_one_try(st, g):
    """Tell whether like tasks of stage `g` take the same flavor one after the other.

    If their queue takes that for which it borrows least, each start may change it.
    """
    return not st.c_org_least[st.w_job_org[st.w_stage_job[g]]]
