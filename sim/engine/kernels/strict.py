"""Strict placement: the head of each queue or nothing of that queue.

After a dispatch every queue's head has been refused by every machine (or by its cap). So a head
that waits for room is held next time only against the machines freed since.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.evict import evict
from sim.engine.kernels.features import EVICTS, GANGS
from sim.engine.kernels.gang import admit_gang, gang_within_cap, is_waiting_gang, room_for_gang
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.queues import BY_CAP, FOR_ROOM, pick_queue, unblock
from sim.engine.kernels.resources import clear_dirty, demand_row, fits, within_cap
from sim.engine.kernels.state import N_DIRTY


@inlined
def dispatch_strict(st):
    """Start all that may start now, queue by queue, in order."""
    unblock(st)
    hint_stage, hint = -1, 0
    started = False
    while True:
        q = pick_queue(st)
        if EVICTS and q < 0 and started:  # what has started may be what makes way for others
            started = False
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
            machine = first_dirty(st, row)
        else:
            machine = first_fit(st, row, hint if g == hint_stage else 0)
            hint_stage, hint = g, max(machine, 0)
        if EVICTS and machine < 0:
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
