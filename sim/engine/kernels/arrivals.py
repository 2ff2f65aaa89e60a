"""Jobs are submitted, when it is time and their inputs are there, or fail for want of them.

A job that polls is submitted at the later of its own time and ``w_job_poll_lag`` after its last
hard input was made; it fails when one of them fails. A blind job is submitted at its own time and
fails then if a hard input is missing, be it late or failed.
"""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import INPUTS
from sim.engine.kernels.heaps import due_pop, due_push
from sim.engine.kernels.lifecycle import BLIND, JOB_FAILED, POLL, arrive, emit
from sim.engine.kernels.state import JOBS_LEFT, N_DUE, NEXT_JOB, NOW


@inlined
def next_arrival(st):
    """Return when the next job is due to be submitted, s; inf for never, as far as is known."""
    time, job = math.inf, st.state_i[NEXT_JOB]
    if job < len(st.w_job_submit):
        time = st.w_job_submit[job]
    if st.state_i[N_DUE] > 0:
        time = min(time, st.state_job_due[st.state_due_heap[0]])
    return time


@inlined
def arrivals(st):
    """Submit what is due now, by row."""
    now, job, n_jobs = st.state_f[NOW], st.state_i[NEXT_JOB], len(st.w_job_submit)
    if not INPUTS:
        while job < n_jobs and st.w_job_submit[job] <= now:
            arrive(st, job)
            job += 1
        st.state_i[NEXT_JOB] = job
        return
    while True:
        late = -1
        if st.state_i[N_DUE] > 0 and st.state_job_due[st.state_due_heap[0]] <= now:
            late = st.state_due_heap[0]
        if job < n_jobs and st.w_job_submit[job] <= now and (late < 0 or job < late):
            st.state_i[NEXT_JOB] = job + 1
            _look_at_inputs(st, job)
            job += 1
        elif late >= 0:
            due_pop(st)
            st.out_job_submit[late] = now
            arrive(st, late)
        else:
            return


@inlined
def _look_at_inputs(st, j):
    """Job `j` has come to the time at which it was submitted in the trace."""
    if st.out_job_failed[j]:
        return
    mode = st.w_job_mode[j]
    if mode == BLIND and st.state_job_missing[j] > 0:
        _fail(st, j)
    elif mode == POLL and st.state_job_missing[j] > 0:
        return
    elif mode == POLL and st.state_job_due[j] > st.state_f[NOW]:
        due_push(st, j)
    else:
        arrive(st, j)


@part
def _fail(st, first):
    """Job `first` fails, and with it those that poll for what it makes, and so on."""
    st.state_failing[0] = first
    st.out_job_failed[first] = 1
    n, i = 1, 0
    while i < n:
        j = st.state_failing[i]
        i += 1
        st.state_i[JOBS_LEFT] -= 1
        emit(st, JOB_FAILED, j)
        for e in range(st.w_input0[j], st.w_input0[j + 1]):
            reader = st.w_input_reader[e]
            if st.w_job_mode[reader] == POLL and not st.out_job_failed[reader]:
                st.out_job_failed[reader] = 1
                st.state_failing[n] = reader
                n += 1
