"""Placement: strict, skipping stages that do not fit, and packing by free · demand.

After a dispatch no (waiting stage, machine) pair fits that the order allows. In strict order, the
head of each queue or nothing of that queue, every head has been refused by every machine (or by its
cap), so a head that waits for room is next tried only on the machines freed since. To skip and to
pack, the next dispatch tries the new stages on all machines and the others only on the machines
freed since; a stage refused by the cap of its organisation stays new.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.bundle import choose_bundle, start_bundle
from sim.engine.kernels.choice import best_machine
from sim.engine.kernels.features import CHOOSES, EVICTS, GANGS, OVERBOOK, SCORED
from sim.engine.kernels.gang import admit_gang, gang_fits, gang_within_cap, is_waiting_gang
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.overbook import best_overbooking
from sim.engine.kernels.resources import clear_dirty, demand_row, fits, retry_machine, within_cap
from sim.engine.kernels.restart import evict_for
from sim.engine.kernels.scanlist import (
    BY_ALL,
    can_use,
    end_scan,
    filter_fitting,
    find_fitting,
    first_fitting,
    mark_new,
    move_to_refused,
    queue_end,
    refuse,
)
from sim.engine.kernels.score import can_start, find_new, start_and_charge
from sim.engine.kernels.state import (
    EVICTING,
    MACHINE_CHOICE,
    N_DIRTY,
    N_NEW,
    N_REFUSED,
    N_SCAN,
    N_SLOT_FREE,
    OVERBOOKING,
    RELEASED,
    SCAN_SHIFTS,
)
from sim.engine.kernels.waiting import BY_CAP, FOR_ROOM, next_queue, precedes, unblock


@inlined
def dispatch_strict(st):
    """Start all tasks that may start now, queue by queue, in order."""
    unblock(st)
    hint_stage, hint = -1, 0
    started = False
    while True:
        q = next_queue(st)
        if EVICTS and st.state_i[EVICTING] and q < 0 and started:
            started = False  # tasks that just started may be evicted for others
            unblock(st)
            continue
        if q < 0:
            break
        g = st.state_queue_root[q]
        j = st.w_stage_job[g]
        if GANGS and is_waiting_gang(st, j):
            if not gang_within_cap(st, j):
                _block(st, q, g, BY_CAP)
            elif gang_fits(st, j):
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
        if EVICTS and st.state_i[EVICTING] and machine < 0:
            machine = evict_for(st, g, row)
            if machine >= 0:
                unblock(st)  # the rest of the freed room may fit stages that were refused
        if machine < 0:
            _block(st, q, g, FOR_ROOM)
        else:
            start_task(st, g, machine, False)
            started = True
    clear_dirty(st)


@part
def machine_for(st, g, row, begin, freed):
    """Return the machine that a task of stage `g` goes to, -1 for none.

    None before `begin` has room. `freed`: only machines freed since the last dispatch, as no other
    has.
    """
    if CHOOSES and st.state_i[MACHINE_CHOICE]:
        return best_machine(st, g, row, freed)
    if freed:
        return first_dirty(st, row)
    return first_fit(st, row, begin)


@part
def first_fit(st, row, begin):
    """Return the first machine from `begin` on with room for `row`, -1 for none."""
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
    """Start all tasks that may start now: the first in order that fits, on the first machine."""
    begin = 0
    hint_stage, hint = -1, 0
    while st.state_i[N_DIRTY] > 0 or st.state_i[N_NEW] > 0:
        position = _next_placeable(st, begin)
        if position < 0:
            break
        g = st.state_scan[position]
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
            begin = position  # the stages before it found no room, and now there is less
    _end_dispatch(st)


@inlined
def dispatch_pack(st):
    """Start all tasks that may start now: on each machine in turn the fitting ones of best score.

    Of the score (`sim.engine.plan.queues`) the alignment is the sum over resources of (free /
    capacity) × (demand / capacity) of the machine, added in the order of the resources.
    """
    while GANGS:
        position = _first_gang(st)
        if position < 0:
            break
        _admit(st, st.w_stage_job[st.state_scan[position]])
    idle = -1
    while idle < 0 or (st.state_i[N_DIRTY] > 0 and st.state_i[N_SLOT_FREE] < idle):
        idle = st.state_i[
            N_SLOT_FREE
        ]  # a queue for which room was kept may have found it elsewhere
        _pack(st)


@part
def _pack(st):
    _sort_dirty(st)
    machine, i = -1, 0
    while st.state_i[N_SCAN] > 0:
        machine += 1
        if st.state_i[N_NEW] == st.state_i[N_REFUSED]:  # go on to the next freed machine
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
            if OVERBOOK and st.state_i[OVERBOOKING]:
                _overbook(st, machine)
        else:
            _fill_with_new(st, machine)
    _end_dispatch(st)


@inlined
def _next_placeable(st, begin):
    """Return the position from `begin` on of the stage that starts next, -1 for none."""
    n = st.state_i[N_SCAN]
    best = -1
    low = begin
    while low < n:
        high = queue_end(st, low, n)
        if best < 0 or precedes(st, st.state_scan_queue[low], st.state_scan_queue[best]):
            position = _first_between(st, low, high)
            if position >= 0:
                best = position
        low = high
    return best


@inlined
def _first_between(st, low, high):
    """Return the first position of [low, high) whose stage may start somewhere, -1 for none."""
    best = high
    for i in range(st.state_i[N_DIRTY]):
        best = _first_on(st, st.state_dirty[i], low, best)
    i = st.state_i[N_REFUSED]
    while i < st.state_i[N_NEW]:
        g = st.state_scan_new_list[i]
        position = st.state_scan_position[g]
        if st.state_scan_new[g] > 1:
            move_to_refused(st, i)
        elif low <= position < best and can_start(st, g):
            if first_fit(st, demand_row(st, g), 0) >= 0:
                best = position
            else:
                refuse(st, g, BY_ALL)
                move_to_refused(st, i)
        i += 1
    if GANGS:
        for position in range(low, best):
            if _gang_may_start(st, position):
                best = position
                break
    return -1 if best == high else best


@inlined
def _first_on(st, machine, low, high):
    """Return the first position of [low, high) whose stage may start on `machine`, else `high`."""
    position = first_fitting(st, machine, low, high)
    while position < high and not (
        can_use(st, machine, position) and can_start(st, st.state_scan[position])
    ):
        position = first_fitting(st, machine, position + 1, high)
    return position


@part
def _gang_may_start(st, position):
    g = st.state_scan[position]
    if g < 0:
        return False
    j = st.w_stage_job[g]
    return is_waiting_gang(st, j) and gang_within_cap(st, j) and gang_fits(st, j)


@inlined
def _first_gang(st):
    """Return the position of the gang that is admitted next, -1 for none."""
    best = -1
    for position in range(st.state_i[N_SCAN]):
        if best >= 0:
            queue, best_queue = st.state_scan_queue[position], st.state_scan_queue[best]
            if queue == best_queue or not precedes(st, queue, best_queue):
                continue
        if _gang_may_start(st, position):
            best = position
    return best


@inlined
def _machine_for(st, g, begin):
    """Return the machine that a task of stage `g` goes to; none before `begin` has room."""
    return machine_for(st, g, demand_row(st, g), begin, not st.state_scan_new[g])


@inlined
def _fill(st, machine):
    """Fill `machine`, freed since the last dispatch, from all waiting stages."""
    shifts = st.state_i[SCAN_SHIFTS] - 1
    n = 0
    while True:
        if st.state_i[SCAN_SHIFTS] == shifts:
            n = filter_fitting(st, machine, n)
        else:  # positions have changed
            n = find_fitting(st, machine)
            shifts = st.state_i[SCAN_SHIFTS]
        if n == 0 or not _start_best(st, machine, n):
            return


@inlined
def _fill_with_new(st, machine):
    """Start new stages on `machine`, on which all others have been tried."""
    while True:
        n = find_new(st, machine)
        if n == 0 or not _start_best(st, machine, n):
            return


@part
def _start_best(st, machine, n):
    """Start the best of the `n` fitting stages on `machine`; tell whether anything started."""
    if SCORED:
        k = choose_bundle(st, machine, n)
        if k < 0:
            retry_machine(st, machine)
            return False
        start_bundle(st, machine, k)
        return k > 0
    best, best_score = -1, 0.0
    for i in range(n):
        position, score = st.state_scan_match[i], st.state_scan_score[i]
        if _is_better(st, position, score, best, best_score) and can_start(
            st, st.state_scan[position]
        ):
            best, best_score = position, score
    if best < 0:
        return False
    start_task(st, st.state_scan[best], machine, False)
    return True


@part
def _is_better(st, position, score, best, best_score):
    if best < 0:
        return True
    queue, best_queue = st.state_scan_queue[position], st.state_scan_queue[best]
    if queue != best_queue:
        return precedes(st, queue, best_queue)
    return score > best_score or (score == best_score and position < best)


@part
def _overbook(st, machine):
    """Start tasks on the full `machine` while overbooking gains."""
    while True:
        position = best_overbooking(st, machine)
        if position < 0:
            return
        start_and_charge(st, st.state_scan[position], machine)


@part
def _admit(st, j):
    """Admit gang job `j` to its slots, then let its single tasks be tried on every machine."""
    admit_gang(st, j)
    g = st.state_job_ready_head[j]
    while g >= 0:
        if st.state_scan_position[g] >= 0:
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
def _end_dispatch(st):
    end_scan(st)
    st.state_i[RELEASED] = 0
    clear_dirty(st)
