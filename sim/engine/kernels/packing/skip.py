"""Placement that skips stages that do not fit: the next in order that fits goes first.

After a dispatch no (waiting stage, machine) pair fits. The next one tries the new buckets on all
machines and the others only on the machines freed since; a bucket that fits none of them is left
out, since room only gets less.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.batches import startable
from sim.engine.kernels.buckets import end_dispatch, is_waiting_gang, mark_tried, refuse
from sim.engine.kernels.dispatch import machine_for, machine_in_flavors
from sim.engine.kernels.features import (
    BATCHES,
    CAPS,
    DYNAMIC_ORDER,
    FLAVORS,
    GANGS,
    HOLDS,
    QUOTAS,
)
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.packing.fitting import filter_candidates, find_candidates
from sim.engine.kernels.quota_order import note_borrowing
from sim.engine.kernels.resources import clear_dirty, demand_row, within_cap
from sim.engine.kernels.rigid.gang import (
    admit_waiting,
    first_gang,
    gang_fits,
    gang_within_cap,
)
from sim.engine.kernels.state import (
    BUCKETS_MADE,
    HARD_CAPS,
    HELD_MACHINES,
    N_BUCKETS,
    N_DIRTY,
    N_NEW,
)
from sim.engine.kernels.waiting import goes_before

first_waiting = late("sim.engine.kernels.packing.hold.first_waiting", HOLDS)
holds_in_vain = late("sim.engine.kernels.packing.hold.holds_in_vain", HOLDS)
hold_machines = late("sim.engine.kernels.packing.hold.hold_machines", HOLDS)
release_machines = late("sim.engine.kernels.packing.hold.release_machines", HOLDS)


@inlined
def dispatch_skip(st):
    """Start all tasks that may start now: the first in order that fits, on the first machine."""
    n = _list_candidates(st)
    hint_stage, hint = -1, 0
    again = -1
    first, holder = -1, -1
    while n >= 0:
        if QUOTAS:
            note_borrowing(st)
        if HOLDS and st.state_i[HELD_MACHINES] > 0 and again < 0:
            first = first_waiting(st)
            if holder >= 0 and (first != holder or holds_in_vain(st, holder)):
                release_machines(st)
                holder, hint_stage = holder if first == holder else -1, -1
                n = _list_candidates(st)
                continue
        i = again if again >= 0 else _first_candidate(st, n)
        again = -1
        position = st.state_bucket_position[st.state_match[i]] if i >= 0 else -1
        g = st.state_bucket_root[position] if i >= 0 else -1
        if HOLDS and first >= 0 and holder < 0 and g != first and _must_wait(st, first, g):
            holder = first
            hold_machines(st, first)
        if GANGS:
            gang = first_gang(st, g)
            if gang >= 0:
                admit_waiting(st, st.w_stage_job[gang])
                n = _list_candidates(st)
                continue
        if i < 0:
            break
        row = demand_row(st, g)
        is_new = position < st.state_i[N_NEW]
        if not FLAVORS and _is_over_cap(st, g, row):
            refuse(st, position)
            n = _drop(st, i, n)
            continue
        machine = (
            machine_in_flavors(st, g, row)
            if FLAVORS
            else machine_for(st, g, row, hint if g == hint_stage else 0, not is_new)
        )
        if machine < 0:
            if is_new:
                mark_tried(st, position)
            n = filter_candidates(st, _drop(st, i, n))
            continue
        hint_stage, hint = g, machine
        n_made = st.state_i[BUCKETS_MADE]
        bucket = st.state_match[i]
        one_queue = len(st.state_queue_root) == 1
        is_alike = one_queue and not (CAPS and HOLDS)  # else each start may change the first
        count = startable(st, g, machine) if BATCHES and is_alike else 1
        start_task(st, g, machine, False, count)
        position = st.state_bucket_position[bucket]
        if st.state_i[BUCKETS_MADE] != n_made:
            n = _list_candidates(st)
        elif position >= st.state_i[N_BUCKETS]:
            n = _drop(st, i, n)
        elif not DYNAMIC_ORDER and is_alike:
            again = i if st.state_bucket_root[position] == g else -1
    if HOLDS and holder >= 0:
        release_machines(st)
    end_dispatch(st)
    clear_dirty(st)


@part
def _is_over_cap(st, g, row):
    """Tell whether a cap forbids a task of stage `g`, of the demand in `row`."""
    if not (CAPS or st.state_i[HARD_CAPS]):
        return False
    return not within_cap(st, st.w_stage_job[g], st.w_stage_demand, row, 1)


@part
def _must_wait(st, first, g):
    """Tell whether the first stage in order waits while `g`, or a gang, may go before it.

    The first of those that no cap lets others pass: a `g` before it does not start.
    """
    if CAPS and g >= 0 and goes_before(st, g, first):
        return False
    if not GANGS:
        return g >= 0
    j = st.w_stage_job[first]
    return not (is_waiting_gang(st, j) and gang_within_cap(st, j) and gang_fits(st, j))


@part
def _list_candidates(st):
    """List the buckets that may find room; return their number, -1 if nothing has changed.

    With caps a gang may start although no room was freed: what they count goes down with time.
    """
    if st.state_i[N_DIRTY] == 0 and st.state_i[N_NEW] == 0:
        if CAPS and GANGS and len(st.state_group_cap) > 0:
            return 0
        return -1
    return find_candidates(st)


@part
def _first_candidate(st, n):
    """Return which of the `n` listed buckets has the first stage in order, -1 for none."""
    best, best_stage = -1, -1
    for i in range(n):
        position = st.state_bucket_position[st.state_match[i]]
        if position >= st.state_i[N_BUCKETS]:
            continue  # run limits have parked its stages
        g = st.state_bucket_root[position]
        if best < 0 or goes_before(st, g, best_stage):
            best, best_stage = i, g
    return best


@part
def _drop(st, i, n):
    """Remove the `i`-th of the `n` listed buckets; return how many are left."""
    st.state_match[i] = st.state_match[n - 1]
    return n - 1
