"""What a task is worth to a machine, which queue is served, and what each queue is owed.

`sim.packing` says what the parameters mean (DAGPS, §5, Fig. 8).
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.kernels._jit import inlined, part
from sim.kernels.lifecycle import start_task
from sim.kernels.queues import goes_first
from sim.kernels.state import (
    LEFTS,
    PACK_REMAINING,
    PACK_REMOTE,
    PACK_UNFAIRNESS,
    PREFERS,
    PRIORITY,
    WORTHS,
)


@part
def worth_of(st, g, machine, what):
    """Return `what` the next task of stage `g` brings, weighted by its priority and place."""
    if not (st.state_i[PRIORITY] or st.state_i[PREFERS]):
        return what
    task0 = st.w_stage_task0[g]
    turn = st.state_task_heap[task0] if st.w_stage_o2o[g] & 1 else st.state_stage_next[g]
    worth = what
    if st.state_i[PRIORITY]:
        worth = st.p_turn_priority[task0 + turn] * what
    if st.state_i[PREFERS]:
        prefers = st.p_turn_prefers[task0 + turn]
        if prefers >= 0 and prefers != machine:
            worth = worth * st.p_pack[PACK_REMOTE]
    return worth


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
    """Tell whether queue `a` is served before `b`; among competing ones, whether it is owed more.

    A lower tier goes first.
    """
    if not compete(st):
        return goes_first(st, a, b)
    tier_a, tier_b = _tier(st, a), _tier(st, b)
    if tier_a != tier_b:
        return tier_a < tier_b
    owed_a, owed_b = st.state_queue_deficit[a], st.state_queue_deficit[b]
    return owed_a > owed_b or (owed_a == owed_b and a < b)


@part
def is_owed(st, queue):
    """Tell whether competing `queue` is owed so much that nothing else may go before it."""
    return st.state_queue_deficit[queue] >= st.p_pack[PACK_UNFAIRNESS]


@part
def is_served(st, queue, first):
    """Tell whether `queue` may be picked from, where `first` goes before all others."""
    if queue == first:
        return True
    return compete(st) and not is_owed(st, first) and _tier(st, queue) == _tier(st, first)


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
