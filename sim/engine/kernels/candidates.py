"""The waiting stages whose next task may start on a machine."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.gang import is_waiting_gang
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.scanhold import fits_at, score_at
from sim.engine.kernels.scanlist import BY_CAP, put_aside, refuse
from sim.engine.kernels.score import before_queue
from sim.engine.kernels.state import N_NEW, N_REFUSED


@part
def may_start(st, g):
    """Tell whether a single task of stage `g` may start, room aside."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        return False
    if within_cap(st, j, st.w_stage_demand, demand_row(st, g), 1):
        return True
    refuse(st, g, BY_CAP)
    return False


@inlined
def find_new(st, machine):
    """List the places of the new stages that fit `machine`, with their scores; return how many."""
    found = 0
    i = st.state_i[N_REFUSED]
    while i < st.state_i[N_NEW]:
        g = st.state_scan_fresh[i]
        at = st.state_scan_at[g]
        if st.state_scan_new[g] > 1:
            put_aside(st, i)
        elif at >= 0 and fits_at(st, machine, at):
            st.state_scan_found[found] = at
            st.state_scan_score[found] = score_at(st, machine, at)
            found += 1
        i += 1
    return found


@part
def first_queue(st, n):
    """Return the queue that goes before all others of the `n` found, -1 if nothing may start."""
    best = -1
    for i in range(n):
        at = st.state_scan_found[i]
        queue = st.state_scan_queue[at]
        if queue == best or (best >= 0 and not before_queue(st, queue, best)):
            continue
        if may_start(st, st.state_scan[at]):
            best = queue
    return best
