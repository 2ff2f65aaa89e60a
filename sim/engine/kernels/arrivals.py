"""Arrival of jobs: at their time of submission, or later, once they are released.

`sim.engine.kernels.release` says when that is. A job beyond a cap of submitted jobs is rejected: it
fails with all that then can never be released. Stages that lag behind their parents open here too.
"""

import math

from sim.base.jit import inlined
from sim.engine.kernels.caps import may_submit
from sim.engine.kernels.features import CAPS, INPUTS, WINDOWS
from sim.engine.kernels.heaps import due_pop, due_push
from sim.engine.kernels.lifecycle import open_stage, submit_job
from sim.engine.kernels.release import (
    MISSES_INPUT,
    REJECTED,
    fail_job,
    free_at,
    is_refused,
    put_aside,
    submitted_at,
)
from sim.engine.kernels.state import (
    N_DUE,
    N_OPENING,
    NEXT_JOB,
    NEXT_OPENING,
    NOW,
)


@inlined
def next_arrival(st):
    """Return the time of the next submission or opening that is known, s; inf for none.

    Nothing happens at the time of a job that failed before, as an input that it polls for did.
    """
    time, job = math.inf, st.state_i[NEXT_JOB]
    if INPUTS:
        while job < len(st.w_job_submit) and st.out_job_failed[job]:
            job += 1
        st.state_i[NEXT_JOB] = job
    if job < len(st.w_job_submit):
        time = st.w_job_submit[job]
    if st.state_i[N_DUE] > 0:
        time = min(time, st.state_job_due[st.state_due_heap[0]])
    opening = st.state_i[NEXT_OPENING]
    if opening < st.state_i[N_OPENING]:
        time = min(time, st.state_opening_due[opening])
    return time


@inlined
def openings(st):
    """Open the stages whose lag is over now."""
    i = st.state_i[NEXT_OPENING]
    while i < st.state_i[N_OPENING] and st.state_opening_due[i] <= st.state_f[NOW]:
        g = st.state_opening[i]
        st.state_stage_barriers[g] = 0
        if st.state_job_left[st.w_stage_job[g]] > 0:  # else its job was ended
            open_stage(st, g)
        i += 1
    st.state_i[NEXT_OPENING] = i


@inlined
def arrivals(st):
    """Submit the jobs that are due now, by row."""
    now, job, n_jobs = st.state_f[NOW], st.state_i[NEXT_JOB], len(st.w_job_submit)
    if not INPUTS:
        while job < n_jobs and st.w_job_submit[job] <= now:
            _submit(st, job)
            job += 1
        st.state_i[NEXT_JOB] = job
        return
    while True:
        due = -1
        if st.state_i[N_DUE] > 0 and st.state_job_due[st.state_due_heap[0]] <= now:
            due = st.state_due_heap[0]
        if job < n_jobs and st.w_job_submit[job] <= now and (due < 0 or job < due):
            _submit_or_wait(st, job)
            job += 1
        elif due >= 0:
            due_pop(st)
            _submit(st, due)
        else:
            return


@inlined
def _submit_or_wait(st, j):
    """Submit job `j` at its time in the trace, or let it wait, or fail."""
    if st.out_job_failed[j]:
        st.state_i[NEXT_JOB] = j + 1
        return
    fails = is_refused(st, j)
    st.state_i[NEXT_JOB] = j + 1
    if fails:
        fail_job(st, j, MISSES_INPUT)
        return
    time = free_at(st, j)
    if time == math.inf:
        put_aside(st, j)
    elif time > st.state_f[NOW]:
        st.state_job_due[j] = time
        due_push(st, j)
    else:
        _submit(st, j)


@inlined
def _submit(st, j):
    """Submit job `j` now, or reject it: a cap is reached, or its reservation is over."""
    if CAPS and not may_submit(st, j):
        fail_job(st, j, REJECTED)
        return
    if WINDOWS and st.w_job_over_s[j] <= st.state_f[NOW]:
        fail_job(st, j, REJECTED)
        return
    st.out_job_submit[j] = submitted_at(st, j)
    submit_job(st, j)
