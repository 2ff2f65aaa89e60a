"""What a task is worth to a machine, which queue is served, and what each queue is owed.

`sim.engine.plan.queues` says what the parameters mean (DAGPS, §5, Fig. 8).
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.gang import is_waiting_gang
from sim.engine.kernels.lifecycle import start_task, turn_for
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.scanlist import BY_CAP, fits_at, forget_new, put_aside, refuse, score_at
from sim.engine.kernels.state import (
    HARD,
    LEFTS,
    N_NEW,
    N_REFUSED,
    N_SCAN,
    PACK_ORDER,
    PACK_REMAINING,
    PACK_REMOTE,
    PACK_UNFAIRNESS,
    PREFERS,
    PRIORITY,
    REBASED,
    WORTHS,
)
from sim.engine.kernels.waiting import goes_first


@part
def worth_of(st, g, machine, what):
    """Return `what` the next task of stage `g` brings, weighted by its priority and place."""
    if not (st.state_i[PRIORITY] or st.state_i[PREFERS]):
        return what
    task0 = st.w_stage_task0[g]
    turn = turn_for(st, g, machine)
    worth = what
    if st.state_i[PRIORITY]:
        worth = _priority(st, g, st.p_turn_priority[task0 + turn]) * what
    if st.state_i[PREFERS]:
        prefers = st.p_turn_prefers[task0 + turn]
        if prefers >= 0 and prefers != machine:
            worth = worth * st.p_pack[PACK_REMOTE]
    return worth


@inlined
def _priority(st, g, priority):
    """Return what `priority` makes of the worth of a task of stage `g` now."""
    if st.state_i[REBASED]:
        j = st.w_stage_job[g]
        others = st.state_job_left[j] - st.state_job_running[j] - 1
        priority = min(1.0, priority / others) if others > 0 else 1.0
    return 1.0 - st.p_pack[PACK_ORDER] * (1.0 - priority)


@part
def eta(st):
    """Return what a unit of remaining work counts beside worth."""
    if st.state_f[LEFTS] > 0:
        return st.p_pack[PACK_REMAINING] * st.state_f[WORTHS] / st.state_f[LEFTS]
    return 0.0


@part
def compete(st):
    """Tell whether the queues of a tier compete by score."""
    return st.p_pack[PACK_UNFAIRNESS] < math.inf


@part
def before_queue(st, a, b):
    """Tell whether queue `a` is served before `b`; among competing ones, by tier alone."""
    if not compete(st):
        return goes_first(st, a, b)
    return _tier(st, a) < _tier(st, b)


@part
def owed_queue(st, queue):
    """Return the queue of the tier of `queue` that nothing else may go before, -1 for none.

    Of those with a task that only room is wanted for it is the one of greatest deficit, if that
    is as much as unfairness may be.
    """
    if not compete(st):
        return -1
    best, most = -1, st.p_pack[PACK_UNFAIRNESS]
    for q in range(len(st.state_queue_waiting)):
        owed = st.state_queue_deficit[q]
        if st.state_queue_waiting[q] == 0 or owed < most or (owed == most and best >= 0):
            continue
        if _tier(st, q) == _tier(st, queue) and _wants_room(st, q):
            best, most = q, owed
    return best


@part
def is_served(st, queue, first, owed):
    """Tell whether `queue` may be picked from, where `first` goes before others, or `owed` does."""
    if owed >= 0:
        return queue == owed
    return queue == first or (compete(st) and _tier(st, queue) == _tier(st, first))


@part
def _wants_room(st, queue):
    """Tell whether a task that waits in `queue` could start if there were room."""
    if not (GANGS or st.state_i[HARD]):
        return True
    for at in range(st.state_i[N_SCAN]):
        g = st.state_scan[at]
        if g < 0 or st.state_scan_queue[at] != queue:
            continue
        j = st.w_stage_job[g]
        if GANGS and is_waiting_gang(st, j):
            continue
        if within_cap(st, j, st.w_stage_demand, demand_row(st, g), 1):
            return True
    return False


@inlined
def start_charged(st, g, machine):
    """Start the next task of stage `g`, and count it in what the queues are owed."""
    if compete(st):
        _charge(st, st.state_job_where[st.w_stage_job[g]], st.p_stage_cost[g])
    start_task(st, g, machine, False)


@inlined
def _charge(st, mine, cost):
    total = 0.0
    for q in range(len(st.state_queue_waiting)):
        if st.state_queue_waiting[q] > 0:
            total += _weight(st, q)
    for q in range(len(st.state_queue_waiting)):
        if st.state_queue_waiting[q] > 0:
            share = _weight(st, q) / total
            st.state_queue_deficit[q] += cost * (share - 1.0) if q == mine else cost * share


@part
def _weight(st, queue):
    n = len(st.p_queue_weight)
    return st.c_org_weight[queue // n] * st.p_queue_weight[queue % n]


@part
def _tier(st, queue):
    return st.p_queue_tier[queue % len(st.p_queue_tier)]


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
        if at < 0:
            forget_new(st, i)
            continue
        if st.state_scan_new[g] > 1:
            put_aside(st, i)
        elif fits_at(st, machine, at):
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
