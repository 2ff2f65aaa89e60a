"""Placement: strict, skipping what does not fit, and packing by free · demand.

After a dispatch no (waiting stage, machine) pair fits that the order allows. In strict order, the
head of each queue or nothing of that queue, every head has been refused by every machine (or by its
cap), so one that waits for room is held next time only against the machines freed since. To skip
and to pack, the next dispatch holds the stages that are new against all machines and the others
only against the machines freed since; a stage refused by the cap of its organisation stays new.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.bundle import pick_bundle, start_bundle
from sim.engine.kernels.choice import best_machine
from sim.engine.kernels.features import CHOOSES, EVICTS, GANGS, OVERBOOK, SCORED
from sim.engine.kernels.gang import admit_gang, gang_within_cap, is_waiting_gang, room_for_gang
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.overbook import best_overbooking
from sim.engine.kernels.resources import clear_dirty, demand_row, fits, hold_back, within_cap
from sim.engine.kernels.restart import evict
from sim.engine.kernels.scanlist import (
    BY_ALL,
    find_fitting,
    first_fitting,
    mark_new,
    may_use,
    put_aside,
    queue_end,
    refuse,
    scan_settled,
    still_fitting,
)
from sim.engine.kernels.score import find_new, may_start, start_charged
from sim.engine.kernels.state import (
    MACHINE_CHOICE,
    MAKES_WAY,
    N_DIRTY,
    N_NEW,
    N_REFUSED,
    N_SCAN,
    N_SLOT_FREE,
    OVERBOOKS,
    RELEASED,
    SCAN_SHIFTS,
)
from sim.engine.kernels.waiting import BY_CAP, FOR_ROOM, goes_first, pick_queue, unblock


@inlined
def dispatch_strict(st):
    """Start all that may start now, queue by queue, in order."""
    unblock(st)
    hint_stage, hint = -1, 0
    started = False
    while True:
        q = pick_queue(st)
        if EVICTS and st.state_i[MAKES_WAY] and q < 0 and started:
            started = False  # what has started may be what makes way for others
            unblock(st)
            continue
        if q < 0:
            break
        g = st.state_queue_root[q]
        j = st.w_stage_job[g]
        if GANGS and is_waiting_gang(st, j):
            if not gang_within_cap(st, j):
                _block(st, q, g, BY_CAP)
            elif room_for_gang(st, j):
                admit_gang(st, j)
                st.state_queue_blocked_stage[q] = -1  # single tasks of it were not refused
            else:
                _block(st, q, g, FOR_ROOM)
            continue
        row = demand_row(st, g)
        if not within_cap(st, j, st.w_stage_demand, row, 1):
            _block(st, q, g, BY_CAP)
            continue
        if st.state_queue_blocked_stage[q] == g:
            machine = machine_for(st, g, row, 0, True)
        else:
            machine = machine_for(st, g, row, hint if g == hint_stage else 0, False)
            hint_stage, hint = g, max(machine, 0)
        if EVICTS and st.state_i[MAKES_WAY] and machine < 0:
            machine = evict(st, g, row)
            if machine >= 0:
                unblock(st)  # what is left of the room may do for those who were refused
        if machine < 0:
            _block(st, q, g, FOR_ROOM)
        else:
            start_task(st, g, machine, False)
            started = True
    clear_dirty(st)


@part
def machine_for(st, g, row, begin, freed):
    """Return the machine that a task of stage `g` goes to, -1 for none.

    None before `begin` has room. `freed`: of those freed since the last dispatch, as no other has.
    """
    if CHOOSES and st.state_i[MACHINE_CHOICE]:
        return best_machine(st, g, row, freed)
    if freed:
        return first_dirty(st, row)
    return first_fit(st, row, begin)


@part
def first_fit(st, row, begin):
    """Return the first machine from `begin` on that has room for `row`, -1 for none."""
    for machine in range(begin, st.state_mach_free.shape[0]):
        if fits(st, row, machine):
            return machine
    return -1


@part
def first_dirty(st, row):
    """Return the first machine, of those freed since the last dispatch, with room for `row`."""
    best = -1
    for i in range(st.state_i[N_DIRTY]):
        machine = st.state_dirty[i]
        if (best < 0 or machine < best) and fits(st, row, machine):
            best = machine
    return best


@part
def _block(st, q, g, why):
    st.state_queue_blocked[q] = why
    st.state_queue_blocked_stage[q] = g


@inlined
def dispatch_skip(st):
    """Start all that may start now: of what fits, the first in order, on the first machine."""
    begin = 0
    hint_stage, hint = -1, 0
    while st.state_i[N_DIRTY] > 0 or st.state_i[N_NEW] > 0:
        at = _first_that_fits(st, begin)
        if at < 0:
            break
        g = st.state_scan[at]
        j = st.w_stage_job[g]
        begin = 0
        if GANGS and is_waiting_gang(st, j):
            _admit(st, j)
            continue
        one_queue = st.state_scan_queue[0] == st.state_scan_queue[st.state_i[N_SCAN] - 1]
        shifts = st.state_i[SCAN_SHIFTS]
        hint = _machine_for(st, g, hint if g == hint_stage else 0)
        hint_stage = g
        start_task(st, g, hint, False)
        if one_queue and st.state_i[SCAN_SHIFTS] == shifts:
            begin = at  # what goes before it found no room, and now there is less
    _done(st)


@inlined
def dispatch_pack(st):
    """Start all that may start now: machine by machine the fitting tasks of greatest score.

    Of the score (`sim.engine.plan.queues`) the alignment is the sum over resources of (free /
    capacity) × (demand / capacity) of the machine, added in the order of the resources.
    """
    while GANGS:
        at = _first_gang(st)
        if at < 0:
            break
        _admit(st, st.w_stage_job[st.state_scan[at]])
    idle = -1
    while idle < 0 or (st.state_i[N_DIRTY] > 0 and st.state_i[N_SLOT_FREE] < idle):
        idle = st.state_i[N_SLOT_FREE]  # for whom room was kept may have found it elsewhere
        _pack(st)


@part
def _pack(st):
    _sort_dirty(st)
    machine, i = -1, 0
    while st.state_i[N_SCAN] > 0:
        machine += 1
        if st.state_i[N_NEW] == st.state_i[N_REFUSED]:  # on to the next one that was freed
            while i < st.state_i[N_DIRTY] and st.state_dirty[i] < machine:
                i += 1
            if i == st.state_i[N_DIRTY]:
                break
            machine = st.state_dirty[i]
        if machine == st.state_mach_free.shape[0]:
            break
        if st.state_mach_lost[machine]:
            continue
        if st.state_mach_dirty[machine]:
            _fill(st, machine)
            if OVERBOOK and st.state_i[OVERBOOKS]:
                _overbook(st, machine)
        else:
            _fill_with_new(st, machine)
    _done(st)


@inlined
def _first_that_fits(st, begin):
    """Return the place from `begin` on of the stage that starts next, -1 for none."""
    n = st.state_i[N_SCAN]
    best = -1
    low = begin
    while low < n:
        high = queue_end(st, low, n)
        if best < 0 or goes_first(st, st.state_scan_queue[low], st.state_scan_queue[best]):
            at = _first_between(st, low, high)
            if at >= 0:
                best = at
        low = high
    return best


@inlined
def _first_between(st, low, high):
    best = high
    for i in range(st.state_i[N_DIRTY]):
        best = _first_on(st, st.state_dirty[i], low, best)
    i = st.state_i[N_REFUSED]
    while i < st.state_i[N_NEW]:
        g = st.state_scan_fresh[i]
        at = st.state_scan_at[g]
        if st.state_scan_new[g] > 1:
            put_aside(st, i)
        elif low <= at < best and may_start(st, g):
            if first_fit(st, demand_row(st, g), 0) >= 0:
                best = at
            else:
                refuse(st, g, BY_ALL)
                put_aside(st, i)
        i += 1
    if GANGS:
        for at in range(low, best):
            if _gang_may_start(st, at):
                best = at
                break
    return -1 if best == high else best


@inlined
def _first_on(st, machine, low, high):
    """Return the first place of [low, high) whose stage may start on `machine`, else `high`."""
    at = first_fitting(st, machine, low, high)
    while at < high and not (may_use(st, machine, at) and may_start(st, st.state_scan[at])):
        at = first_fitting(st, machine, at + 1, high)
    return at


@part
def _gang_may_start(st, at):
    g = st.state_scan[at]
    if g < 0:
        return False
    j = st.w_stage_job[g]
    return is_waiting_gang(st, j) and gang_within_cap(st, j) and room_for_gang(st, j)


@inlined
def _first_gang(st):
    best = -1
    for at in range(st.state_i[N_SCAN]):
        if best >= 0:
            queue, of_best = st.state_scan_queue[at], st.state_scan_queue[best]
            if queue == of_best or not goes_first(st, queue, of_best):
                continue
        if _gang_may_start(st, at):
            best = at
    return best


@inlined
def _machine_for(st, g, begin):
    """Return the machine that a task of stage `g` goes to; none before `begin` has room."""
    return machine_for(st, g, demand_row(st, g), begin, not st.state_scan_new[g])


@inlined
def _fill(st, machine):
    """Fill `machine`, freed since the last dispatch, from all that waits."""
    shifts = st.state_i[SCAN_SHIFTS] - 1
    n = 0
    while True:
        if st.state_i[SCAN_SHIFTS] == shifts:
            n = still_fitting(st, machine, n)
        else:  # places have moved
            n = find_fitting(st, machine)
            shifts = st.state_i[SCAN_SHIFTS]
        if n == 0 or not _start_best(st, machine, n):
            return


@inlined
def _fill_with_new(st, machine):
    """Start what is new on `machine`, which everything else has been held against."""
    while True:
        n = find_new(st, machine)
        if n == 0 or not _start_best(st, machine, n):
            return


@part
def _start_best(st, machine, n):
    """Start what `machine` likes best of the `n` found; tell whether anything did."""
    if SCORED:
        k = pick_bundle(st, machine, n)
        if k < 0:
            hold_back(st, machine)
            return False
        start_bundle(st, machine, k)
        return k > 0
    best, best_score = -1, 0.0
    for i in range(n):
        at, score = st.state_scan_found[i], st.state_scan_score[i]
        if _is_better(st, at, score, best, best_score) and may_start(st, st.state_scan[at]):
            best, best_score = at, score
    if best < 0:
        return False
    start_task(st, st.state_scan[best], machine, False)
    return True


@part
def _is_better(st, at, score, best, best_score):
    if best < 0:
        return True
    queue, queue_of_best = st.state_scan_queue[at], st.state_scan_queue[best]
    if queue != queue_of_best:
        return goes_first(st, queue, queue_of_best)
    return score > best_score or (score == best_score and at < best)


@part
def _overbook(st, machine):
    while True:
        at = best_overbooking(st, machine)
        if at < 0:
            return
        start_charged(st, st.state_scan[at], machine)


@part
def _admit(st, j):
    """Give gang job `j` its slots, then hold its single tasks against every machine."""
    admit_gang(st, j)
    g = st.state_job_ready[j]
    while g >= 0:
        if st.state_scan_at[g] >= 0:
            mark_new(st, g)
        g = st.state_stage_ready_next[g]


@inlined
def _sort_dirty(st):
    dirty = st.state_dirty
    for i in range(1, st.state_i[N_DIRTY]):
        machine, k = dirty[i], i
        while k > 0 and dirty[k - 1] > machine:
            dirty[k] = dirty[k - 1]
            k -= 1
        dirty[k] = machine


@part
def _done(st):
    scan_settled(st)
    st.state_i[RELEASED] = 0
    clear_dirty(st)
