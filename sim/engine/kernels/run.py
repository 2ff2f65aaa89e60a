"""The event loop: from instant to instant until no job can end any more or the policy has events.

The order at one instant, so that a run is a function of its input alone: task ends by row, faults,
jobs that are ended at their limit by row, timers (crossings of attained service by row, then the
policy's timer), stages that open after a lag, arrivals by row, then the policy, then placement.

Names in capitals such as POOL are features of a run: constants when its loop is compiled
(`sim.engine.kernels.features`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from sim.base.jit import compiled, inlined, is_cached, jit, late, part, specialised
from sim.engine.kernels import state as layout
from sim.engine.kernels.arrivals import arrivals, next_arrival, openings
from sim.engine.kernels.batches import begin_batches, records_full
from sim.engine.kernels.buckets import retry_job
from sim.engine.kernels.caps import change_caps, next_change, update_limits
from sim.engine.kernels.conserve import is_broken
from sim.engine.kernels.dispatch import dispatch_strict
from sim.engine.kernels.faults.rates import advance_speed, collect_ended, drop_stale, update_rates
from sim.engine.kernels.faults.restart import (
    attempt_fails,
    fail_attempt,
    outages,
    stop_gangs,
    stops_full,
    wake_readers,
)
from sim.engine.kernels.faults.unit_rates import update_rates_by_places
from sim.engine.kernels.features import (
    BATCHES,
    CAPS,
    CHECKS,
    CLASSES,
    DYNAMIC_ORDER,
    ELASTIC,
    ENFORCES,
    GANGS,
    INTERPRETED,
    LEARNS,
    LIMITS,
    OVERBOOK,
    PINS,
    POOL,
    PREEMPTS,
    REPLANS,
    RESERVES,
    RUNS_ON,
    SCORED,
    SERVICE,
    SKIP,
    STRICT,
    VARIABLE_ENDS,
    WINDOWS,
)
from sim.engine.kernels.heaps import fin_pop
from sim.engine.kernels.jobs import (
    REFINED,
    SERVICE_CROSSED,
    TIMER_TICK,
    emit,
    follow_limit,
    recompute_remaining,
    request_refill,
)
from sim.engine.kernels.lifecycle import end_task
from sim.engine.kernels.packing.classes import dispatch_classes
from sim.engine.kernels.packing.pack import dispatch_pack
from sim.engine.kernels.packing.skip import dispatch_skip
from sim.engine.kernels.pool import dispatch_pool, run_pool
from sim.engine.kernels.release import n_left
from sim.engine.kernels.rigid.gang import refill_gangs
from sim.engine.kernels.rigid.resize import resize
from sim.engine.kernels.service import accrue, crossing, postpone_crossing, schedule_crossing
from sim.engine.kernels.state import (
    CAP_TICK,
    EXPECTED,
    FAILS,
    IDLE_TICKS,
    IS_REFINED,
    LEARNING,
    N_EVENTS,
    N_FIN,
    N_LIMITED,
    N_SERVICE,
    N_URGENT,
    NEXT_MOMENT,
    NEXT_OUTAGE,
    NEXT_PIN,
    NOW,
    REFINE_AT,
    RESERVATIONS,
    TIMER,
    TRIES,
)
from sim.engine.kernels.stop_records import GANG_STOPPED
from sim.engine.kernels.time_limits import next_limit
from sim.engine.kernels.timeouts import end_reservations, time_out
from sim.engine.kernels.waiting import reorder_job, update_queue, update_rank, update_wait_queue
from sim.engine.kernels.windows import next_over

DONE, NEEDS_POLICY, STUCK, FULL, WRONG, MOMENT, TRIED = range(7)

preempt = late("sim.engine.kernels.preemption.preempt.preempt", PREEMPTS)
next_leaving = late("sim.engine.kernels.preemption.preempt.next_leaving", PREEMPTS)
start_claimants = late("sim.engine.kernels.preemption.preempt.start_claimants", PREEMPTS)
stop_outside = late("sim.engine.kernels.preemption.outside.stop_outside", PREEMPTS)
stop_leaving = late("sim.engine.kernels.preemption.preempt.stop_leaving", PREEMPTS)
next_refinement = late("sim.engine.kernels.learning.learning.next_refinement", LEARNS)
refine = late("sim.engine.kernels.learning.learning.refine", LEARNS)
has_begun = late("sim.engine.kernels.pins.has_begun", PINS)
is_moment = late("sim.engine.kernels.pins.is_moment", PINS)
next_pin = late("sim.engine.kernels.pins.next_pin", PINS)
place_pinned = late("sim.engine.kernels.pins.place_pinned", PINS)
dispatch_replanned = late("sim.engine.kernels.rigid.replan.dispatch_replanned", REPLANS)
note_events = late("sim.engine.kernels.rigid.replan.note_events", REPLANS)
next_wake = late("sim.engine.kernels.rigid.replan.next_wake", REPLANS)
dispatch_reserved = late("sim.engine.kernels.rigid.reserve.dispatch_reserved", RESERVES)

MAX_IDLE_TICKS = 10_000
"""Deadlock limit: ticks or polls in a row with nothing running, arriving or started."""


@jit
def run(st, changed, n_changed):
    """Run until DONE, STUCK, an instant with events for the policy, or the records are FULL.

    A checked run also returns if its accounts are WRONG. With PINS, also at a MOMENT, before
    anything is placed, and if placements are tried once they are (TRIED).

    With events (NEEDS_POLICY), the policy `changed` the first `n_changed` jobs. -1 at the first
    call, before any placement, and to go on once the records are empty again. -2 to place jobs at
    a MOMENT.
    """
    placing = n_changed != -1
    if LIMITS and n_changed >= 0:
        st.state_i[N_EVENTS] = st.state_i[N_URGENT] = 0
        _apply_changes(st, changed, n_changed)
    while True:
        if placing:
            if PINS and is_moment(st):
                return MOMENT
            _dispatch(st)
            if PINS and st.state_i[TRIES]:
                return TRIED
            if REPLANS:
                _count_idle(st)
        if VARIABLE_ENDS:
            if ELASTIC:
                update_rates_by_places(st)
            else:
                update_rates(st)
            drop_stale(st)
        if POOL:
            run_pool(st)
        if CHECKS and is_broken(st):
            return WRONG
        if n_left(st) == 0:
            return DONE
        if BATCHES and records_full(st):
            return FULL
        if VARIABLE_ENDS and stops_full(st):
            return FULL
        now = _next_time(st)
        if now == math.inf or st.state_i[IDLE_TICKS] > MAX_IDLE_TICKS:
            return STUCK
        st.state_f[NOW] = now
        if VARIABLE_ENDS:
            advance_speed(st)
        _process_ends(st)
        if VARIABLE_ENDS:
            outages(st)
        if ENFORCES:
            time_out(st)
        if WINDOWS:
            end_reservations(st)
        if PREEMPTS:
            stop_leaving(st)
        if SERVICE:
            _crossings(st)
        if CAPS:
            change_caps(st)
            if st.state_f[CAP_TICK] <= now:
                update_limits(st)
        if st.state_f[TIMER] <= now:
            _tick(st)
        openings(st)
        arrivals(st)
        if LEARNS and st.state_i[LEARNING]:
            _refine(st)
        if st.state_i[N_URGENT] > 0:
            return NEEDS_POLICY
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
    if CAPS:
        time = min(time, st.state_f[CAP_TICK], next_change(st))
    if PINS:
        time = next_pin(st, time)
    if REPLANS and (not PINS or has_begun(st)):
        time = min(time, next_wake(st))
    if WINDOWS:
        time = min(time, next_over(st))
    if ENFORCES:
        time = next_limit(st, time)
    if PREEMPTS:
        time = next_leaving(st, time)
    if SERVICE:
        time = _next_crossing(st, time)
    if LEARNS and st.state_i[LEARNING]:
        time = next_refinement(st, time)
    return max(time, st.state_f[NOW])


@part
def _next_crossing(st, before):
    """Return the time of the next crossing, at most `before`.

    An entry that came too early is postponed: nothing happens at its time, so nothing is placed.
    """
    while st.state_i[N_SERVICE] > 0:
        j = st.state_service_heap[0]
        time = st.state_service_time[j]
        if time >= before:
            break
        if crossing(st, j) <= time:
            return time
        postpone_crossing(st, j)
    return before


@inlined
def _process_ends(st):
    if VARIABLE_ENDS:
        for i in range(collect_ended(st)):
            _process_end(st, st.state_ended[i])
        if GANGS:
            stop_gangs(st, GANG_STOPPED)
        return
    while st.state_i[N_FIN] > 0 and st.state_fin_time[0] <= st.state_f[NOW]:
        end_task(st, fin_pop(st))


@inlined
def _process_end(st, slot):
    if not st.state_i[FAILS]:
        end_task(st, slot)
    elif attempt_fails(st, slot):
        fail_attempt(st, slot)
    else:
        g, task = st.state_slot_stage[slot], st.state_slot_task[slot]
        end_task(st, slot)
        wake_readers(st, g, task)


@inlined
def _crossings(st):
    now = st.state_f[NOW]
    while st.state_i[N_SERVICE] > 0:
        j = st.state_service_heap[0]
        if st.state_service_time[j] > now:
            return
        if crossing(st, j) > now:
            postpone_crossing(st, j)
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
            update_queue(st, j)
            update_wait_queue(st, j)
        if DYNAMIC_ORDER:
            update_rank(st, j)
        postpone_crossing(st, j)


@inlined
def _tick(st):
    st.state_f[TIMER] = math.inf
    emit(st, TIMER_TICK, -1)
    _count_idle(st)


@part
def _count_idle(st):
    """Count the ticks, and polls of a planner, in a row with nothing left to change anything."""
    idle = st.state_i[N_FIN] == 0 and next_arrival(st) == math.inf
    if ENFORCES:
        idle = idle and st.state_i[N_LIMITED] == 0
    if WINDOWS:
        idle = idle and st.state_i[NEXT_OUTAGE] == len(st.w_outage_time)
    if CAPS:
        idle = idle and st.state_f[CAP_TICK] == math.inf and next_change(st) == math.inf
    if PINS:
        idle = idle and st.state_i[NEXT_PIN] == len(st.w_pin_s)
        idle = idle and st.state_i[NEXT_MOMENT] == len(st.w_moment_s)
    st.state_i[IDLE_TICKS] = st.state_i[IDLE_TICKS] + 1 if idle else 0


@inlined
def _apply_changes(st, changed, n_changed):
    if LEARNS and n_changed > 0:
        st.state_i[IS_REFINED] = 0
    for i in range(n_changed):
        _apply_change(st, changed[i])
    if PREEMPTS and RUNS_ON:
        stop_outside(st, changed, n_changed)
    if ELASTIC and (not PINS or has_begun(st)):
        resize(st, changed, n_changed)


@part
def _apply_change(st, j):
    """Follow changed columns of job `j` or its stages."""
    if st.state_i[EXPECTED]:
        recompute_remaining(st, j)
    if st.state_job_turn[j] < 0 or st.state_job_left[j] == 0:
        return
    if PREEMPTS:
        follow_limit(st, j)
    update_queue(st, j)
    update_wait_queue(st, j)
    reorder_job(st, j)
    if RUNS_ON:
        retry_job(st, j)
    if SERVICE:
        schedule_crossing(st, j)
    request_refill(st, j)


@inlined
def _refine(st):
    """Learn durations; read the jobs anew of which something else is expected."""
    if st.state_f[REFINE_AT] <= st.state_f[NOW]:
        _count_idle(st)
    for i in range(refine(st)):
        _apply_change(st, st.state_refined[i])
        emit(st, REFINED, st.state_refined[i])


@part
def _dispatch(st):
    if POOL:
        dispatch_pool(st)
        return
    if BATCHES:
        begin_batches(st)
    if PINS:
        place_pinned(st)
        if not has_begun(st):
            _go_on(st)
            return
    if PREEMPTS:
        start_claimants(st)
    _place(st)
    if PREEMPTS and not CLASSES:
        while preempt(st):
            _place(st)


@part
def _go_on(st):
    """Let gangs use their idle slots, and note what happened, while the policy places nothing."""
    if GANGS:
        refill_gangs(st)
    if REPLANS:
        note_events(st)


@inlined
def _place(st):
    if GANGS:
        refill_gangs(st)
    if REPLANS:
        dispatch_replanned(st)
    elif RESERVES and st.state_i[RESERVATIONS] > 0:
        dispatch_reserved(st)
    elif STRICT:
        dispatch_strict(st)
    elif CLASSES:
        dispatch_classes(st)
    elif SKIP:
        dispatch_skip(st)
    else:
        dispatch_pack(st)


def bind_variant(
    features: frozenset[str], arrays: Mapping[str, NDArray[Any]], changed: Any
) -> tuple[Callable[..., int], Any]:
    """Return the event loop of runs with `features`, and the state that it takes.

    If the loop has to be compiled, a line says so.
    """
    if INTERPRETED in features:
        loop: Callable[..., int] = specialised(run, features, interpreted=True)
        return loop, layout.make(arrays, interpreted=True)
    text, seconds = _variant_text(features), _budget_s(features)
    message = f"sim: compiling {text}, once for this version: up to {seconds} s"
    state, variant = layout.make(arrays), specialised(run, features)
    return compiled(variant, state, changed, -1, message=message), state


def is_compiled(features: frozenset[str]) -> bool:
    """Tell whether runs with `features` need not compile their event loop any more."""
    return INTERPRETED in features or is_cached(run, features)


def _variant_text(features: frozenset[str]) -> str:
    if POOL in features:
        return "the event loop of a pool of slots"
    rest = [name.lower().replace("_", " ") for name in sorted(features - {"STRICT", "BATCHES"})]
    return "the event loop of machines" + (f" ({', '.join(rest)})" if rest else "")


def _budget_s(features: frozenset[str]) -> int:
    """Return the compile-time budget of a variant, in CPU seconds; most take half of it."""
    if POOL in features:
        return 15
    return 40 if features & {SCORED, OVERBOOK, VARIABLE_ENDS, REPLANS} else 25
