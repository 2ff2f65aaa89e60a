"""Release: jobs that wait for outputs, for the start or end of other jobs, or for a time.

A job that polls is submitted at the later of its own time and ``w_job_poll_lag`` after its last
hard input was made, and not before its dependencies are met; it fails when an input fails. A blind
job is submitted at its own time and fails then if a hard input is missing, whether it is late or
failed.

With `RELEASES` a job is put aside until it is eligible, too (`sim.workload.releases`): from its
begin time on, once all of its dependencies are met, or any. What happens to a job is told to those
that depend on it when it starts or ends, never again. Jobs whose dependencies can never be met fail
(CANCELS), or stay aside: a run is over when all jobs that are left do.
"""

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import INPUTS, RELEASES, REPLANS
from sim.engine.kernels.heaps import due_push, due_rise
from sim.engine.kernels.jobs import JOB_FAILED, emit
from sim.engine.kernels.state import CANCELS, JOBS_LEFT, N_ASIDE, NEXT_JOB, NOW

BLIND, POLL = 1, 2
HARD, _SOFT, AFTER, AFTER_OK, AFTER_NOT_OK, AFTER_ANY = range(6)
"""Kinds of edges between jobs (`sim.workload.schema.JOB_EDGE_KINDS`)."""
DONE, FAILED = 0, 1
MISSES_INPUT, TIMED_OUT, REJECTED, CANCELLED_JOB = 1, 2, 3, 4
"""Codes of ``out_job_failed``."""
NEVER = -1
"""Value of `state_job_unmet` of jobs whose dependencies can never be met."""


@part
def free_at(st, j):
    """Return from when on job `j` may be submitted, s; inf if that is not known yet.

    With `RELEASES` from when on it is eligible.
    """
    polls = st.w_job_input_mode[j] == POLL
    if polls and st.state_job_missing[j] > 0:
        return math.inf
    time = st.state_job_made[j] if polls else 0.0
    if RELEASES:
        if st.state_job_unmet[j] != 0:
            return math.inf
        time = max(time, st.w_job_begin[j], st.state_job_met[j])
    return time


@part
def is_refused(st, j):
    """Tell whether job `j`, the next, fails at its own time of submission, which is now."""
    if st.w_job_input_mode[j] == BLIND and st.state_job_missing[j] > 0:
        return True
    if RELEASES:
        _test_alone(st, st.w_job_name[j], j + 1)
        return st.state_i[CANCELS] > 0 and st.state_job_unmet[j] == NEVER
    return False


@inlined
def put_aside(st, j):
    """Let job `j` wait for other jobs."""
    if RELEASES:
        st.state_job_aside[j] = 1
        st.state_i[N_ASIDE] += 1


@inlined
def n_left(st):
    """Return the number of jobs that are left and may still end."""
    return st.state_i[JOBS_LEFT] - (st.state_i[N_ASIDE] if RELEASES else 0)


@inlined
def submitted_at(st, j):
    """Return when job `j`, which is eligible now, was submitted, s."""
    if RELEASES:
        st.out_job_eligible[j] = st.state_f[NOW]
        polls = st.w_job_input_mode[j] == POLL
        polled = max(st.state_job_made[j], st.state_job_met[j]) if polls else 0.0
        return max(st.w_job_submit[j], polled)
    return st.state_f[NOW]


@part
def job_starts(st, j):
    """Tell the jobs that depend on it that job `j` takes its first room now."""
    if st.state_job_begun[j]:
        return
    st.state_job_begun[j] = 1
    if st.w_job_name[j] >= 0:
        st.state_name_running[st.w_job_name[j]] += 1
    for e in range(st.w_input0[j], st.w_input0[j + 1]):
        if st.w_input_kind[e] == AFTER:
            _meet(st, st.w_input_reader[e], st.state_f[NOW] + st.w_input_delay[e])


@part
def job_ends(st, j):
    """Tell the jobs that depend on it that job `j` is done now."""
    _fail_all(st, _follow(st, j, DONE, 0))


@part
def fail_job(st, j, why):
    """Fail job `j`, and with it those that then can never be submitted or eligible.

    `why` it does: MISSES_INPUT, TIMED_OUT, REJECTED or CANCELLED_JOB. The others miss an input.
    """
    st.out_job_failed[j] = why
    if not INPUTS:
        st.state_i[JOBS_LEFT] -= 1
        emit(st, JOB_FAILED, j)
        return
    st.state_failing[0] = j
    _fail_all(st, 1)


@part
def _fail_all(st, n):
    """Fail the first `n` jobs of `state_failing`, and transitively those that depend on them."""
    i = 0
    while i < n:
        j = st.state_failing[i]
        i += 1
        st.state_i[JOBS_LEFT] -= 1
        if RELEASES:
            _leave(st, j)
        emit(st, JOB_FAILED, j)
        n = _follow(st, j, FAILED, n)


@part
def _follow(st, j, outcome, n):
    """Let the jobs that depend on job `j` follow its end; append to `n` those that fail.

    Where jobs are planned anew, what depends on its end waits until its nodes have completed it.
    """
    now = st.state_f[NOW]
    if RELEASES and REPLANS and st.state_job_begun[j]:
        now += st.p_completing_s[j]
    for e in range(st.w_input0[j], st.w_input0[j + 1]):
        reader = st.w_input_reader[e]
        fails = False
        if not RELEASES or st.w_input_kind[e] == HARD:
            if outcome == DONE:
                _make(st, reader)
            else:
                fails = st.w_job_input_mode[reader] == POLL and not st.out_job_failed[reader]
        elif _is_met(st.w_input_kind[e], outcome, st.state_job_begun[j]):
            _meet(st, reader, now + st.w_input_delay[e])
        elif st.w_input_kind[e] != AFTER:
            fails = _miss(st, reader)
        if fails:
            st.out_job_failed[reader] = MISSES_INPUT
            st.state_failing[n] = reader
            n += 1
    if RELEASES and st.w_job_name[j] >= 0:
        st.state_name_running[st.w_job_name[j]] -= st.state_job_begun[j]
        _test_alone(st, st.w_job_name[j], st.state_i[NEXT_JOB])
    return n


@inlined
def _is_met(kind, outcome, has_started):
    if kind == AFTER:
        return not has_started
    return kind == AFTER_ANY or (kind == AFTER_OK) == (outcome == DONE)


@part
def _make(st, reader):
    """Count an output that job `reader` reads and that is made now."""
    st.state_job_missing[reader] -= 1
    if st.w_job_input_mode[reader] == POLL and st.state_job_missing[reader] == 0:
        st.state_job_made[reader] = st.state_f[NOW] + st.w_job_poll_lag[reader]
        _release(st, reader)


@part
def _release(st, j):
    """Let job `j` come due, if its own time has come and it waits for no other job."""
    if j >= st.state_i[NEXT_JOB] or st.state_job_turn[j] >= 0:
        return
    time = free_at(st, j)
    if time < math.inf:
        if RELEASES:
            _leave(st, j)
        st.state_job_due[j] = time
        due_push(st, j)


@part
def _leave(st, j):
    st.state_i[N_ASIDE] -= st.state_job_aside[j]
    st.state_job_aside[j] = 0


@part
def _meet(st, j, time):
    """Meet a dependency of job `j` at a `time`, now or later."""
    if st.out_job_failed[j] or st.state_job_unmet[j] == NEVER:
        return
    if not st.w_job_needs_any[j]:
        st.state_job_met[j] = max(st.state_job_met[j], time)
        st.state_job_unmet[j] -= 1
    elif st.state_job_unmet[j] > 0:
        st.state_job_met[j] = time
        st.state_job_unmet[j] = 0
    else:  # another was met before, but may come later
        st.state_job_met[j] = min(st.state_job_met[j], time)
        if st.state_job_turn[j] < 0 and free_at(st, j) < st.state_job_due[j]:
            st.state_job_due[j] = free_at(st, j)
            due_rise(st, j)
        return
    if st.state_job_unmet[j] == 0:
        _release(st, j)


@part
def _miss(st, j):
    """Count a dependency of job `j` that can never be met; tell whether the job fails now."""
    if st.out_job_failed[j] or st.state_job_unmet[j] <= 0:
        return False
    st.state_job_possible[j] -= 1
    if st.w_job_needs_any[j] and st.state_job_possible[j] > 0:
        return False
    st.state_job_unmet[j] = NEVER
    return st.state_i[CANCELS] > 0 and st.state_job_aside[j] > 0


@part
def _test_alone(st, group, n_seen):
    """Meet the dependency of the first job left of a group, if that is a singleton and none runs.

    Only the first can be alone: the others wait for it. The times of submission of the first
    `n_seen` jobs of the workload have come.
    """
    if group < 0:
        return
    i = st.state_name_first[group]
    while i < st.w_name_job0[group + 1] and _is_gone(st, st.w_name_job[i]):
        i += 1
    st.state_name_first[group] = i
    if i == st.w_name_job0[group + 1] or st.state_name_running[group] > 0:
        return
    j = st.w_name_job[i]
    if st.w_job_singleton[j] and not st.state_job_alone[j] and j < n_seen:
        st.state_job_alone[j] = 1
        _meet(st, j, st.state_f[NOW])


@inlined
def _is_gone(st, j):
    return st.out_job_failed[j] or st.state_job_left[j] == 0
