"""Accounts of a job: events for its policy, limits, remaining work, and its rank among others.

They follow each start, end and stop of one of its tasks.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import follow_remaining
from sim.engine.kernels.features import DYNAMIC_ORDER, GANGS, LIMITS, SCORED, SERVICE
from sim.engine.kernels.service import schedule_crossing
from sim.engine.kernels.state import (
    DEFERRED,
    EVENTS,
    EXPECTED,
    N_EVENTS,
    N_OVER,
    N_REFILL,
    N_URGENT,
    NOW,
    PENDING,
)
from sim.engine.kernels.waiting import update_rank, update_wait_queue

JOB_ARRIVED, TASKS_DONE, STAGE_DONE, JOB_DONE, SERVICE_CROSSED, TIMER_TICK = 1, 2, 4, 8, 16, 32
JOB_FAILED, REFINED, RESIZE = 128, 256, 512
"""Kinds of events (`sim.engine.plan.world.Event`)."""

FIRST_K, HELD = 1, 2
"""Flags of a running task: it is one of the first that its job started, or in a held slot."""


@part
def emit(st, kind, row):
    """Record an event for the policy, if it subscribed to its kind."""
    if st.state_i[EVENTS] & kind:
        n = st.state_i[N_EVENTS]
        st.state_event_kind[n] = kind
        st.state_event_row[n] = row
        st.state_i[N_EVENTS] = n + 1
        if st.state_i[DEFERRED]:
            st.state_event_time[n] = st.state_f[NOW]
        if not st.state_i[DEFERRED] & kind:
            st.state_i[N_URGENT] += 1


@part
def follow_limit(st, j):
    """Follow the running tasks and the run limit of job `j`: count the jobs above their limit."""
    is_over = st.state_job_running[j] > st.p_job_run_limit[j]
    if is_over != st.state_job_is_over[j]:
        st.state_job_is_over[j] = is_over
        st.state_i[N_OVER] += 1 if is_over else -1


@inlined
def refresh_job(st, j):
    """Update queue, rank and crossing of job `j`, which runs more or fewer tasks than before."""
    if LIMITS:
        update_wait_queue(st, j)
    if DYNAMIC_ORDER:
        update_rank(st, j)
    if SCORED:
        follow_remaining(st, j)
    if SERVICE:
        schedule_crossing(st, j)


@part
def weighted_s(st, g, duration):
    """Return the weighted seconds of a task of stage `g` in the remaining work of its job."""
    if st.state_i[EXPECTED]:
        duration = st.p_stage_expected_s[g]
    return duration * st.p_stage_weight[g]


@part
def recompute_remaining(st, j):
    """Recompute the remaining work of job `j` from the expected durations of its stages' tasks."""
    remaining = 0.0
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        left = st.state_stage_left[g]
        if st.state_i[PENDING]:
            left = st.w_stage_task0[g + 1] - st.w_stage_task0[g] - st.state_stage_next[g]
        remaining += left * st.p_stage_expected_s[g] * st.p_stage_weight[g]
    st.state_job_remaining[j] = remaining


@part
def request_refill(st, j):
    """If job `j` has idle held slots, let the next dispatch fill them."""
    if GANGS and st.state_job_idle_held[j] > 0 and not st.state_refill_listed[j]:
        st.state_refill_listed[j] = 1
        st.state_refill_list[st.state_i[N_REFILL]] = j
        st.state_i[N_REFILL] += 1
