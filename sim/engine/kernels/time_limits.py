"""Limits of run time: when each job that has started is to be ended.

Jobs with a limit are a heap by its end, so long after the job's first start. While starts lag
behind placements, a job's start may move: to an earlier one its entry moves at once, and to a later
one, or none, when it comes up. `sim.engine.kernels.timeouts` ends the jobs.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.heaps import job_pop, job_rise
from sim.engine.kernels.state import N_LIMITED


@part
def follow_start(st, j):
    """Move job `j`, which has started, no later than the end of its limit."""
    end, before = _limit_end(st, j), st.state_job_limit_at[j]
    if not end < before:
        return
    position = st.state_i[N_LIMITED]
    if before < math.inf:
        position = 0
        while st.state_limit_heap[position] != j:
            position += 1
    else:
        st.state_i[N_LIMITED] = position + 1
    st.state_job_limit_at[j] = end
    job_rise(st.state_limit_heap, st.state_job_limit_at, position, j)


@inlined
def next_limit(st, before):
    """Return the next time at which a job is to be ended, at most `before`.

    Entries that came too early are moved: nothing happens at their time, so nothing is placed.
    """
    while first_limit(st) < before:
        j = st.state_limit_heap[0]
        if is_due(st, j):
            return st.state_job_limit_at[j]
        drop_first(st)
        follow_start(st, j)
    return before


@part
def first_limit(st):
    """Return the time of the first entry, inf for none."""
    if st.state_i[N_LIMITED] == 0:
        return math.inf
    return st.state_job_limit_at[st.state_limit_heap[0]]


@part
def is_due(st, j):
    """Tell whether job `j` is to be ended at the time of its entry."""
    return _limit_end(st, j) == st.state_job_limit_at[j]


@part
def drop_first(st):
    """Drop the first entry."""
    st.state_job_limit_at[st.state_limit_heap[0]] = math.inf
    st.state_i[N_LIMITED] -= 1
    job_pop(st.state_limit_heap, st.state_job_limit_at, st.state_i[N_LIMITED])


@part
def _limit_end(st, j):
    """Return the end of the limit of job `j`, inf if it is over or has not started."""
    if st.state_job_left[j] == 0 or math.isnan(st.out_job_start[j]):
        return math.inf
    return st.out_job_start[j] + st.w_job_limit[j]
