"""Packing scores: the worth of a task to a machine, and fairness between queues by deficit.

`sim.engine.plan.queues` defines the parameters (DAGPS, §5, Fig. 8).
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import gang_kind
from sim.engine.kernels.features import CAPS, GANGS, TIERS
from sim.engine.kernels.heaps import has_other_tier
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.packing.fitting import is_within_cap
from sim.engine.kernels.resources import demand_row, takes_room
from sim.engine.kernels.state import (
    HARD_CAPS,
    MAX_PRIORITY,
    N_BUCKETS,
    PACK_ORDER,
    PACK_REMAINING,
    PACK_REMOTE,
    PACK_UNFAIRNESS,
    PREFERS,
    PRIORITY,
    REBASED,
    SUM_REMAINING,
    SUM_WORTH,
)
from sim.engine.kernels.turns import next_turn
from sim.engine.kernels.waiting import precedes


@part
def task_worth(st, g, machine, value):
    """Return the worth of the next task of stage `g`: `value` × priority × preference."""
    if not (st.state_i[PRIORITY] or st.state_i[PREFERS]):
        return value
    task0 = st.w_stage_task0[g]
    turn = next_turn(st, g, machine)
    worth = value
    if st.state_i[PRIORITY]:
        worth = _priority(st, g, st.p_turn_priority[task0 + turn]) * value
    if st.state_i[PREFERS]:
        prefers = st.p_turn_prefers[task0 + turn]
        if prefers >= 0 and prefers != machine:
            worth = worth * st.p_pack[PACK_REMOTE]
    return worth


@part
def max_worth(st, value):
    """Return an upper bound of the worth of any task, given a bound of `value`."""
    if value <= 0:
        return 0.0  # of a negative one a share near 0 is greatest
    if not st.state_i[PRIORITY] or st.state_i[REBASED]:
        return value
    return (1.0 - st.p_pack[PACK_ORDER] * (1.0 - st.state_f[MAX_PRIORITY])) * value


@inlined
def _priority(st, g, priority):
    """Return the factor that `priority` gives the worth of a task of stage `g` now."""
    if st.state_i[REBASED]:
        j = st.w_stage_job[g]
        n_unstarted = st.state_job_left[j] - st.state_job_running[j] - 1
        priority = min(1.0, priority / n_unstarted) if n_unstarted > 0 else 1.0
    return 1.0 - st.p_pack[PACK_ORDER] * (1.0 - priority)


@part
def eta(st):
    """Return the weight of a unit of remaining work beside worth: η of DAGPS."""
    if st.state_f[SUM_REMAINING] > 0:
        return st.p_pack[PACK_REMAINING] * st.state_f[SUM_WORTH] / st.state_f[SUM_REMAINING]
    return 0.0


@part
def queues_compete(st):
    """Tell whether the queues of a tier compete by score."""
    return st.p_pack[PACK_UNFAIRNESS] < math.inf


@part
def queue_before(st, a, b):
    """Tell whether queue `a` is served before `b`; among competing ones, by tier alone."""
    if not queues_compete(st):
        return precedes(st, a, b)
    return _tier(st, a) < _tier(st, b)


@part
def owed_queue(st, queue, g):
    """Return the queue of the tier of `queue` that must be served first, -1 for none.

    Of those with a task that lacks nothing but room it is the one of greatest deficit, if the
    deficit reaches the limit of unfairness; a task of partitions of the same tier as stage `g`.
    """
    if not queues_compete(st):
        return -1
    best, max_deficit = -1, st.p_pack[PACK_UNFAIRNESS]
    for q in range(len(st.state_queue_waiting)):
        owed = st.state_queue_deficit[q]
        if (
            st.state_queue_waiting[q] == 0
            or owed < max_deficit
            or (owed == max_deficit and best >= 0)
        ):
            continue
        if _tier(st, q) == _tier(st, queue) and _wants_room(st, q, g):
            best, max_deficit = q, owed
    return best


@part
def is_eligible(st, position, first, owed):
    """Tell whether the bucket at `position` may be picked from.

    Its queue is `first`, competes with it, or is `owed`; or its tasks take nothing from that one.
    """
    queue = st.state_bucket_queue[position]
    if owed >= 0:
        row = demand_row(st, st.state_bucket_root[position])
        return queue == owed or not takes_room(st, st.w_stage_demand, row)
    return queue == first or (queues_compete(st) and _tier(st, queue) == _tier(st, first))


@part
def _wants_room(st, queue, g):
    """Tell whether a task in `queue`, of the tier of `g`, could start if there were room."""
    if not (CAPS or GANGS or TIERS or st.state_i[HARD_CAPS]):
        return True
    for position in range(st.state_i[N_BUCKETS]):
        if st.state_bucket_queue[position] != queue:
            continue
        if GANGS and st.state_bucket_kind[position] == gang_kind(st):
            continue
        if TIERS and has_other_tier(st, st.state_bucket_root[position], g):
            continue
        if is_within_cap(st, position):
            return True
    return False


@inlined
def start_and_charge(st, g, machine, count):
    """Start the next `count` tasks of stage `g`; charge the cost of one to the queues' deficits.

    Of several in a single queue, which owes nothing to itself. Without a demand they cost nothing.
    """
    if queues_compete(st) and takes_room(st, st.w_stage_demand, demand_row(st, g)):
        _charge(st, st.state_job_wait_queue[st.w_stage_job[g]], st.p_stage_cost[g])
    start_task(st, g, machine, False, count)


@inlined
def _charge(st, charged, cost):
    total = 0.0
    for q in range(len(st.state_queue_waiting)):
        if st.state_queue_waiting[q] > 0:
            total += _weight(st, q)
    for q in range(len(st.state_queue_waiting)):
        if st.state_queue_waiting[q] > 0:
            share = _weight(st, q) / total
            st.state_queue_deficit[q] += cost * (share - 1.0) if q == charged else cost * share


@part
def _weight(st, queue):
    n = len(st.p_queue_weight)
    return st.c_org_weight[queue // n] * st.p_queue_weight[queue % n]


@part
def _tier(st, queue):
    return st.p_queue_tier[queue % len(st.p_queue_tier)]


@part
def first_queue(st, n):
    """Return the queue served before all others of the `n` listed buckets."""
    best = -1
    for i in range(n):
        queue = st.state_bucket_queue[st.state_bucket_position[st.state_match[i]]]
        if queue != best and (best < 0 or queue_before(st, queue, best)):
            best = queue
    return best
