"""Counters of groups of jobs that share a cap.

A group counts running jobs, what they hold (nodes, licences), submitted jobs, quanta of a resource,
or quanta × the seconds left to the limits of its running jobs. These go down at ticks; everything
else changes with starts and ends. A job runs from its first start to its end.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import CAPS
from sim.engine.kernels.state import CAP_TICK, EXCLUSIVES, N_TICKING, NEXT_CHANGE, NOW

RUNNING, HELD, SUBMITTED, AMOUNT, MINUTES = range(5)
"""Codes of ``c_group_counts``."""
WITHIN, PASSES, BLOCKS = range(3)
"""A job keeps within its caps; exceeds one and lets others pass; or blocks them."""
REFRESH_S = 300.0
"""Time between two ticks, s: Slurm's default PriorityCalcPeriod."""


@part
def over_cap(st, j, demand, row, times):
    """Tell whether `times` the demand in `row` more of job `j` exceeds a cap: WITHIN if not."""
    over = WITHIN
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.w_job_group_spared[i] or st.c_group_counts[n] == SUBMITTED:
            continue
        if st.state_group_used[n] + _need(st, i, j, demand, row, times) > st.state_group_cap[n]:
            if not st.c_group_blocks[n]:
                return PASSES
            over = BLOCKS
    return over


@part
def is_over_running(st, j):
    """Tell whether job `j` would exceed a cap of running jobs."""
    if st.state_job_counted[j]:
        return False
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        is_full = st.state_group_used[n] >= st.state_group_cap[n]
        if st.c_group_counts[n] == RUNNING and is_full and not st.w_job_group_spared[i]:
            return True
    return False


@part
def counts_running(st):
    """Tell whether any group counts what starts change; submitted and refused jobs do not."""
    for n in range(len(st.c_group_counts)):  # noqa: SIM110  # kernels have no generators
        if st.c_group_counts[n] != SUBMITTED:
            return True
    return False


@part
def count_within(st, j, row, count):
    """Count the tasks of job `j` with the demand in `row`, at most `count`, that caps allow.

    The first is within them, and so is its job.
    """
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] >= AMOUNT and not st.w_job_group_spared[i]:
            need = _need(st, i, j, st.w_stage_demand, row, 1)
            if need > 0:
                count = min(count, (st.state_group_cap[n] - st.state_group_used[n]) // need)
    return count


@part
def count_amount(st, j, demand, row, times):
    """Add `times` the demand in `row` to the counters of job `j`."""
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] >= AMOUNT:
            st.state_group_used[n] += _need(st, i, j, demand, row, times)


@part
def count_running(st, j, sign):
    """Count job `j` as running from now on, or no more, if `sign` is -1."""
    st.state_job_counted[j] = sign > 0
    _count_job(st, j, RUNNING, sign)
    _count_job(st, j, HELD, sign)
    if st.state_i[EXCLUSIVES] and st.w_job_exclusive[j]:
        count_whole(st, j, sign)
    if st.w_job_cap_limit[j] == 0:
        return
    st.state_job_limit_left[j] = st.w_job_cap_limit[j]
    st.state_job_counted_s[j] = st.state_f[NOW]
    if sign < 0:
        return
    if not st.state_job_limited[j]:
        st.state_job_limited[j] = 1
        st.state_limited_jobs[st.state_i[N_TICKING]] = j
        st.state_i[N_TICKING] += 1
    if st.state_f[CAP_TICK] == math.inf:
        st.state_f[CAP_TICK] = (math.floor(st.state_f[NOW] / REFRESH_S) + 1) * REFRESH_S


@part
def count_submitted(st, j, sign):
    """Count job `j` as submitted from now on, or as ended, if `sign` is -1."""
    _count_job(st, j, SUBMITTED, sign)


@part
def may_submit(st, j):
    """Tell whether job `j` may be submitted: no counter of submitted jobs is at its cap."""
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        is_full = st.state_group_used[n] >= st.state_group_cap[n]
        if st.c_group_counts[n] == SUBMITTED and is_full and not st.w_job_group_spared[i]:
            return False
    return True


@part
def next_change(st):
    """Return when a cap changes next; inf for never."""
    k = st.state_i[NEXT_CHANGE]
    return st.c_change_s[k] if k < len(st.c_change_s) else math.inf


@inlined
def change_caps(st):
    """Set the caps that change now. What runs goes on."""
    while next_change(st) <= st.state_f[NOW]:
        k = st.state_i[NEXT_CHANGE]
        st.state_group_cap[st.c_change_group[k]] = st.c_change_cap[k]
        st.state_i[NEXT_CHANGE] += 1


@inlined
def update_limits(st):
    """At a tick: lower the counters of minutes by the time that has passed since the last."""
    jobs, n = st.state_limited_jobs, 0
    for k in range(st.state_i[N_TICKING]):
        j = jobs[k]
        if st.state_job_counted[j]:
            _lower_limit(st, j)
        if st.state_job_counted[j] and st.state_job_limit_left[j] > 0:
            jobs[n] = j
            n += 1
        else:
            st.state_job_limited[j] = 0
    st.state_i[N_TICKING] = n
    st.state_f[CAP_TICK] = st.state_f[CAP_TICK] + REFRESH_S if n > 0 else math.inf


@inlined
def _lower_limit(st, j):
    left = st.w_job_cap_limit_s[j] - (st.state_f[NOW] - st.state_job_counted_s[j])
    whole = max(0, math.ceil(left))
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] == MINUTES:
            used = st.state_job_used[j, st.c_group_resource[n]]
            st.state_group_used[n] -= used * (st.state_job_limit_left[j] - whole)
    st.state_job_limit_left[j] = whole


@part
def count_beyond(st, j, c, machine, sign):
    """Count what `machine` has beyond a place of exclusive job `j`, which runs and takes it there.

    If `sign` is -1, it gives the place back.
    """
    for r in range(st.state_job_whole.shape[1]):
        st.state_job_whole[j, r] += sign * (st.c_capacity[machine, r] - st.w_slot[c, r])
    if not CAPS:
        return
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] == AMOUNT:
            r = st.c_group_resource[n]
            beyond = st.c_capacity[machine, r] - st.w_slot[c, r]
            st.state_group_used[n] += sign * beyond


@part
def count_whole(st, j, sign):
    """Count what the machines of exclusive job `j` have beyond its slots."""
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] == AMOUNT:
            st.state_group_used[n] += sign * st.state_job_whole[j, st.c_group_resource[n]]


@part
def _count_job(st, j, counts, sign):
    for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
        n = st.w_job_group[i]
        if st.c_group_counts[n] == counts:
            st.state_group_used[n] += sign * st.w_job_group_amount[i]


@part
def _need(st, i, j, demand, row, times):
    """Return what `times` the demand in `row` of job `j` adds to the counter of its group `i`."""
    n = st.w_job_group[i]
    counts = st.c_group_counts[n]
    if counts >= AMOUNT:
        amount = times * demand[row, st.c_group_resource[n]]
        return amount * st.state_job_limit_left[j] if counts == MINUTES else amount
    if counts == SUBMITTED or st.state_job_counted[j]:
        return 0
    return st.w_job_group_amount[i]
