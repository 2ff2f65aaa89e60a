"""Placement in strict order: the head of each queue or nothing of that queue.

After a dispatch every head has been refused by every machine (or by its cap), so a head that waits
for room is next tried only on the machines freed since.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.batches import startable
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.choosing.choice import score_of
from sim.engine.kernels.features import (
    BATCHES,
    CHOOSES,
    GANGS,
    QUOTAS,
    RUNS_ON,
    SPREADS,
    USAGE,
    WINDOWS,
)
from sim.engine.kernels.flavors import NONE, open_next
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.resources import clear_dirty, demand_row, fits, is_kept, within_cap
from sim.engine.kernels.rigid.gang import admit_gang, gang_fits, gang_within_cap
from sim.engine.kernels.selected import is_shut
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import MACHINE_CHOICE, N_DIRTY
from sim.engine.kernels.waiting import BY_CAP, FOR_ROOM, is_contested, next_queue, unblock


@inlined
def dispatch_strict(st):
    """Start all tasks that may start now, queue by queue, in order."""
    unblock(st)
    hint_stage, hint = -1, 0
    while True:
        if QUOTAS:
            note_borrowing(st)
        q = next_queue(st)
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
        if machine < 0:
            _block(st, q, g, FOR_ROOM)
        else:
            count = 1
            if BATCHES and not (USAGE and is_contested(st, q)):
                count = startable(st, g, machine)
            start_task(st, g, machine, False, count)
    clear_dirty(st)


@part
def machine_for(st, g, row, begin, freed):
    """Return the machine that a task of stage `g` goes to, -1 for none.

    None before `begin` has room. `freed`: only machines freed since the last dispatch, as no other
    has.
    """
    if CHOOSES and st.state_i[MACHINE_CHOICE]:
        return _best_machine(st, g, row, freed)
    if freed:
        return _first_dirty(st, g, row)
    return _first_fit(st, g, row, begin)


@part
def machine_in_flavors(st, g, row):
    """Return the machine that a task of stage `g` goes to, in its flavors one after the other.

    -1 for none; the flavor of the machine stays open.
    """
    j = st.w_stage_job[g]
    i = open_next(st, j, st.w_stage_tries[g], st.w_stage_demand, row, NONE, True)
    while i != NONE:
        machine = machine_for(st, g, row, 0, False)
        if machine >= 0:
            return machine
        i = open_next(st, j, st.w_stage_tries[g], st.w_stage_demand, row, i, True)
    return -1


@part
def _best_machine(st, g, row, freed):
    """Return the machine with room where stage `g` scores least, -1 for none.

    `freed`: only machines freed since the last dispatch are tried; no other has room.
    """
    best, best_score = -1, 0.0
    for i in range(st.state_i[N_DIRTY] if freed else st.state_mach_free.shape[0]):
        machine = st.state_dirty[i] if freed else i
        if _is_barred(st, g, row, machine):
            continue
        if fits(st, row, machine):
            score = score_of(st, g, machine)
            if best < 0 or score < best_score or (score == best_score and machine < best):
                best, best_score = machine, score
    return best


@part
def _is_barred(st, g, row, machine):
    """Tell whether `machine` is kept for others, or closed to stage `g`, of the demand in `row`."""
    if (WINDOWS or RUNS_ON) and is_shut(st, st.w_stage_job[g], machine):
        return True
    if SPREADS and is_beside_itself(st, st.w_stage_job[g], machine):
        return True
    return is_kept(st, st.w_stage_demand, row, machine)


@part
def _first_fit(st, g, row, begin):
    """Return the first machine from `begin` on with room for stage `g`, -1 for none."""
    for machine in range(begin, st.state_mach_free.shape[0]):
        if not _is_barred(st, g, row, machine) and fits(st, row, machine):
            return machine
    return -1


@part
def _first_dirty(st, g, row):
    """Return the first machine, of those freed since the last dispatch, with room for `g`."""
    best = -1
    for i in range(st.state_i[N_DIRTY]):
        machine = st.state_dirty[i]
        if _is_barred(st, g, row, machine):
            continue
        if (best < 0 or machine < best) and fits(st, row, machine):
            best = machine
    return best


@part
def _block(st, q, g, why):
    st.state_queue_blocked[q] = why
    st.state_queue_blocked_stage[q] = g
