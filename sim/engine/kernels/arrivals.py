"""Submission of jobs: at their time, once their inputs exist; jobs without inputs fail.

A job that polls is submitted at the later of its own time and ``w_job_poll_lag`` after its last
hard input was made; it fails when one of them fails. A blind job is submitted at its own time and
fails then if a hard input is missing, whether it is late or failed.
A job beyond a cap of submitted jobs is rejected: it fails with all that poll for its output.
Stages that lag behind their parents open here too.
"""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import may_submit
from sim.engine.kernels.features import CAPS, INPUTS
from sim.engine.kernels.heaps import due_pop, due_push
from sim.engine.kernels.jobs import JOB_FAILED, emit
from sim.engine.kernels.lifecycle import BLIND, POLL, open_stage, submit_job
from sim.engine.kernels.state import (
    JOBS_LEFT,
    N_DUE,
    N_OPENING,
    NEXT_JOB,
    NEXT_OPENING,
    NOW,
)

MISSES_INPUT, TIMED_OUT, REJECTED = 1, 2, 3
"""Codes of ``out_job_failed``."""


@inlined
def next_arrival(st):
    """Return the time of the next submission or opening that is known, s; inf for none."""
    time, job = math.inf, st.state_i[NEXT_JOB]
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
            st.state_i[NEXT_JOB] = job + 1
            _submit_or_wait(st, job)
            job += 1
        elif due >= 0:
            due_pop(st)
            _submit(st, due)
        else:
            return


@inlined
def _submit_or_wait(st, j):
    """Submit job `j` at its time in the trace, or let it wait for its inputs, or fail."""
    if st.out_job_failed[j]:
        return
    mode = st.w_job_input_mode[j]
    if mode == BLIND and st.state_job_missing[j] > 0:
        fail(st, j, MISSES_INPUT)
    elif mode == POLL and st.state_job_missing[j] > 0:
        return
    elif mode == POLL and st.state_job_due[j] > st.state_f[NOW]:
        due_push(st, j)
    else:
        _submit(st, j)


@inlined
def _submit(st, j):
    """Submit job `j` now, or reject it, and fail those that wait for it, if a cap is reached."""
    if CAPS and not may_submit(st, j):
        fail(st, j, REJECTED)
        return
    st.out_job_submit[j] = st.state_f[NOW]
    submit_job(st, j)


@part
def fail(st, first, why):
    """Fail job `first`, and with it the jobs that poll for its output, transitively.

    `why` it does: MISSES_INPUT, TIMED_OUT or REJECTED. The others miss an input.
    """
    st.out_job_failed[first] = why
    if not INPUTS:
        st.state_i[JOBS_LEFT] -= 1
        emit(st, JOB_FAILED, first)
        return
    st.state_failing[0] = first
    n, i = 1, 0
    while i < n:
        j = st.state_failing[i]
        i += 1
        st.state_i[JOBS_LEFT] -= 1
        emit(st, JOB_FAILED, j)
        for e in range(st.w_input0[j], st.w_input0[j + 1]):
            reader = st.w_input_reader[e]
            if st.w_job_input_mode[reader] == POLL and not st.out_job_failed[reader]:
                st.out_job_failed[reader] = MISSES_INPUT
                st.state_failing[n] = reader
                n += 1
