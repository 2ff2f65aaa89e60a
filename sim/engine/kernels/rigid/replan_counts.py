"""Periodic planning: what a cycle leaves out, by groups of jobs, arrays, and its time.

A cycle tries no more than so many jobs of each group (such as of each user). Of an array it tries
no element after one that neither starts nor gets a reservation, nor more than may run. A plan whose
time is over ends; before that it may sleep, and go on with the next part of its list.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.rigid.replan_registers import (
    ARRAY_RESERVED,
    BEGUN,
    CYCLE,
    DEPTH,
    JOB_CYCLE,
    MAX,
    N_DEPTHS,
    N_EXPECTED,
    N_PLANS,
    YIELD,
)
from sim.engine.kernels.state import NOW

BY_PLAN, BY_MAIN = 0, 1
ENOUGH = 2**31 - 1


@part
def begin_counts(st, by, jobs, n):
    """Forget the jobs that the last cycle tried: `by` the plan, or the main loop.

    Of the arrays of the first `n` of `jobs` count the elements that run.
    """
    first, end = _kinds(st, by)
    for k in range(first, end):
        st.state_depth_used[k, :] = 0
    if by == BY_PLAN:
        st.state_reserved_in[:] = 0
    arrays, tried = st.p_job_array, st.state_array_tried
    if len(arrays) == 0:
        return
    for i in range(n):
        if arrays[jobs[i]] >= 0:
            tried[by, arrays[jobs[i]]] = 0
            if by == BY_PLAN:
                st.state_array_reserved[arrays[jobs[i]]] = 0
    for i in range(st.state_replan[N_EXPECTED]):
        array = arrays[st.state_expected_jobs[i]]
        if array >= 0 and tried[by, array] < ENOUGH:
            tried[by, array] += 1


@part
def _kinds(st, by):
    """Return the first kind of groups that a cycle counts, and the end of them."""
    n = st.p_replan[N_DEPTHS]
    return (0, n) if by == BY_PLAN else (n, len(st.p_depth_most))


@part
def is_skipped(st, by, j):
    """Tell whether enough elements of the array of job `j` were tried; else count it."""
    if len(st.p_job_array) == 0 or st.p_job_array[j] < 0:
        return False
    tried, array = st.state_array_tried, st.p_job_array[j]
    if tried[by, array] == ENOUGH or 0 < st.p_job_throttle[j] <= tried[by, array]:
        return True
    tried[by, array] += 1
    return False


@part
def exceeds_depth(st, by, j):
    """Tell whether enough jobs of one of the groups of job `j` were tried; else count it."""
    first, end = _kinds(st, by)
    for k in range(first, end):
        group = st.p_depth_group[k, j]
        if group >= 0 and st.state_depth_used[k, group] >= st.p_depth_most[k]:
            return True
    for k in range(first, end):
        if st.p_depth_group[k, j] >= 0:
            st.state_depth_used[k, st.p_depth_group[k, j]] += 1
    return False


@part
def close_array(st, by, j):
    """Try no other element of the array of job `j` in this cycle."""
    if len(st.p_job_array) > 0 and st.p_job_array[j] >= 0:
        st.state_array_tried[by, st.p_job_array[j]] = ENOUGH


@part
def count_reserved(st, j):
    """Count a reservation of job `j`, and of its array."""
    st.state_reserved_in[st.p_reserved_in[j]] += 1
    if len(st.p_job_array) > 0 and st.p_job_array[j] >= 0:
        array = st.p_job_array[j]
        st.state_array_reserved[array] += 1
        if 0 < st.p_replan[ARRAY_RESERVED] <= st.state_array_reserved[array]:
            close_array(st, BY_PLAN, j)


@part
def taken_s(st, first, end):
    """Return the time that the plan takes for its jobs from position `first` to `end`, s."""
    depth = st.p_replan[DEPTH]
    time_s = st.p_replan_s[JOB_CYCLE] * (min(end, depth) - min(first, depth))
    if first == 0:
        time_s += st.p_replan_s[CYCLE]
    factors = st.p_cycle_factors
    return time_s * factors[st.state_replan[N_PLANS] % len(factors)]


@part
def time_left_s(st):
    """Return the time after which the plan ends, s."""
    return st.p_replan_s[MAX] - (st.state_f[NOW] - st.state_replan_s[BEGUN])


@part
def end_of_part(st, first, n):
    """Return the position, of `n`, before which the plan sleeps, or ends as its time is over."""
    part_s, end = min(st.p_replan_s[YIELD], time_left_s(st)), first + 1
    while end < n and taken_s(st, first, end) < part_s:
        end += 1
    return min(end, n)
