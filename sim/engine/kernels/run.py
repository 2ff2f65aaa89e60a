"""The event loop: from instant to instant until all is done or the policy is wanted.

The order at one instant, so that a run is a function of its input alone: task ends by row, faults,
timers (crossings of attained service by row, then the policy's timer), arrivals by row, then the
policy, then placement.

Names in capitals such as POOL are features of a run: constants when its loop is compiled
(`sim.engine.kernels.state`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sim.base.jit import compiled, inlined, is_cached, jit, part, specialised
from sim.engine.kernels.arrivals import arrivals, next_arrival
from sim.engine.kernels.dispatch import dispatch_pack, dispatch_skip, dispatch_strict
from sim.engine.kernels.features import (
    DYNAMIC_ORDER,
    GANGS,
    LIMITS,
    OVERBOOK,
    POOL,
    RESERVES,
    SCORED,
    SERVICE,
    SKIP,
    STRICT,
    VARIABLE_ENDS,
)
from sim.engine.kernels.gang import fill_gangs
from sim.engine.kernels.heaps import fin_pop
from sim.engine.kernels.lifecycle import (
    SERVICE_CROSSED,
    TIMER_TICK,
    emit,
    end_task,
    look_at_gang,
    see_remaining,
)
from sim.engine.kernels.pool import dispatch_pool, run_pool
from sim.engine.kernels.rates import collect_ended, drop_stale, speed_now, update_rates
from sim.engine.kernels.reserve import dispatch_reserved
from sim.engine.kernels.restart import attempt_fails, fail_attempt, made_again, outages
from sim.engine.kernels.service import accrue, crossing, postpone, watch
from sim.engine.kernels.state import (
    FAILS,
    IDLE_TICKS,
    JOBS_LEFT,
    N_EVENTS,
    N_FIN,
    N_SERVICE,
    NEXT_OUTAGE,
    NOW,
    RESERVATIONS,
    SEEN,
    TIMER,
)
from sim.engine.kernels.waiting import move_home, rank_changed, rekey, settle

DONE, WANTS_POLICY, STUCK = range(3)

MAX_IDLE_TICKS = 10_000
"""Timer ticks in a row with nothing running, arriving or started, after which a run is stuck."""


@jit
def run(st, changed, n_changed):
    """Run until DONE, STUCK, or an instant with events for the policy.

    `n_changed` jobs were `changed` by the policy; -1 at the first call, before anything is placed.
    """
    placing = n_changed >= 0
    if LIMITS and placing:
        st.state_i[N_EVENTS] = 0
        _apply(st, changed, n_changed)
    while True:
        if placing:
            _dispatch(st)
        if VARIABLE_ENDS:
            update_rates(st)
            drop_stale(st)
        if POOL:
            run_pool(st)
        if st.state_i[JOBS_LEFT] == 0:
            return DONE
        now = _next_time(st)
        if now == math.inf or st.state_i[IDLE_TICKS] > MAX_IDLE_TICKS:
            return STUCK
        st.state_f[NOW] = now
        if VARIABLE_ENDS:
            speed_now(st)
        _ends(st)
        if VARIABLE_ENDS:
            outages(st)
        if SERVICE:
            _crossings(st)
        if st.state_f[TIMER] <= now:
            _tick(st)
        arrivals(st)
        if st.state_i[N_EVENTS] > 0:
            return WANTS_POLICY
        placing = True


@inlined
def _next_time(st):
    time = st.state_f[TIMER]
    if st.state_i[N_FIN] > 0:
        time = min(time, st.state_fin_time[0])
    time = min(time, next_arrival(st))
    outage = st.state_i[NEXT_OUTAGE]
    if outage < len(st.w_outage_time):
        time = min(time, st.w_outage_time[outage])
    if st.state_i[N_SERVICE] > 0:
        time = min(time, st.state_service_time[st.state_service_heap[0]])
    return max(time, st.state_f[NOW])


@inlined
def _ends(st):
    if VARIABLE_ENDS:
        for i in range(collect_ended(st)):
            _end(st, st.state_ended[i])
        return
    while st.state_i[N_FIN] > 0 and st.state_fin_time[0] <= st.state_f[NOW]:
        end_task(st, fin_pop(st))


@inlined
def _end(st, slot):
    if not st.state_i[FAILS]:
        end_task(st, slot)
    elif attempt_fails(st, slot):
        fail_attempt(st, slot)
    else:
        g, task = st.state_slot_stage[slot], st.state_slot_task[slot]
        end_task(st, slot)
        made_again(st, g, task)


@inlined
def _crossings(st):
    now = st.state_f[NOW]
    while st.state_i[N_SERVICE] > 0:
        j = st.state_service_heap[0]
        if st.state_service_time[j] > now:
            return
        if crossing(st, j) > now:
            postpone(st, j)
            continue
        accrue(st, j)
        queue = st.p_job_queue[j]
        # the crossed threshold counts as reached, whatever the last bit says
        demote_at, service_at = st.p_queue_demote_at[queue], st.p_job_service_at[j]
        limit = min(demote_at, service_at)
        st.state_job_attained[j] = max(st.state_job_attained[j], limit)
        if service_at == limit:
            st.p_job_service_at[j] = math.inf
            emit(st, SERVICE_CROSSED, j)
        if demote_at == limit:
            st.p_job_queue[j] = st.p_queue_demote_to[queue]
            move_home(st, j)
            settle(st, j)
        if DYNAMIC_ORDER:
            rank_changed(st, j)
        postpone(st, j)


@inlined
def _tick(st):
    st.state_f[TIMER] = math.inf
    emit(st, TIMER_TICK, -1)
    idle = st.state_i[N_FIN] == 0 and next_arrival(st) == math.inf
    st.state_i[IDLE_TICKS] = st.state_i[IDLE_TICKS] + 1 if idle else 0


@inlined
def _apply(st, changed, n_changed):
    for i in range(n_changed):
        j = changed[i]
        if st.state_i[SEEN]:
            see_remaining(st, j)
        if st.state_job_turn[j] < 0 or st.state_job_left[j] == 0:
            continue
        move_home(st, j)
        settle(st, j)
        rekey(st, j)
        if SERVICE:
            watch(st, j)
        look_at_gang(st, j)


@part
def _dispatch(st):
    if POOL:
        dispatch_pool(st)
        return
    if GANGS:
        fill_gangs(st)
    if RESERVES and st.state_i[RESERVATIONS] > 0:
        dispatch_reserved(st)
    elif STRICT:
        dispatch_strict(st)
    elif SKIP:
        dispatch_skip(st)
    else:
        dispatch_pack(st)


def compiled_variant(features: frozenset[str], state: Any, changed: Any) -> Callable[..., int]:
    """Return the event loop of runs with `features`; say so if it has to be compiled."""
    saying = (
        f"sim: compiling {_words(features)}, once for this version: up to {_most_s(features)} s"
    )
    variant: Callable[..., int] = specialised(run, features)
    return compiled(variant, state, changed, -1, saying=saying)


def is_compiled(features: frozenset[str]) -> bool:
    """Tell whether the event loop of runs with `features` need not be compiled any more."""
    return is_cached(run, features)


def _words(features: frozenset[str]) -> str:
    if POOL in features:
        return "the event loop of a pool of slots"
    rest = sorted(features - {"STRICT"})
    return "the event loop of machines" + (f" ({', '.join(rest).lower()})" if rest else "")


def _most_s(features: frozenset[str]) -> int:
    """Return the budget of a variant, in CPU seconds; most take half of it."""
    if POOL in features:
        return 15
    return 40 if features & {SCORED, OVERBOOK, VARIABLE_ENDS} else 25
