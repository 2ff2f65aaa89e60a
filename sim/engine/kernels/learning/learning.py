"""Learnt durations: stages that finish, and refinements at arrivals and every so often.

`sim.engine.plan.learning` has the rules. The next refinement of all jobs is at REFINE_AT. Where
nothing has started or happened since the last one, it would find nothing and placement would
start nothing, so that it is passed over.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.features import ENFORCES, PREEMPTS, WINDOWS
from sim.engine.kernels.state import (
    ESTIMATES,
    IS_REFINED,
    LEARN_GUESS,
    LEARN_PRIOR,
    LEARN_REFRESH,
    N_DIRTY,
    N_ENTERED,
    N_LIVE,
    N_REFINED,
    NOW,
    REFINE_ALL,
    REFINE_AT,
    RESERVATIONS,
)


@inlined
def next_refinement(st, before):
    """Return the time of the next refinement, at most `before`, when something else happens."""
    time = st.state_f[REFINE_AT]
    if st.state_i[IS_REFINED] and _places_nothing(st):
        if before == math.inf:
            return before
        while time < before:
            time += st.p_learn[LEARN_REFRESH]
        st.state_f[REFINE_AT] = time
    if before <= time:
        st.state_i[IS_REFINED] = 0
    return min(time, before)


@inlined
def _places_nothing(st):
    """Tell whether a refinement that finds nothing would list no job and start nothing."""
    return (
        st.state_i[REFINE_ALL] == 0 and st.state_i[N_DIRTY] == 0 and st.state_i[RESERVATIONS] == 0
    )


@inlined
def enter(st, j):
    """Note that job `j` arrives."""
    st.state_entered[st.state_i[N_ENTERED]] = j
    st.state_i[N_ENTERED] += 1


@part
def refine(st):
    """Learn and refine, if jobs have arrived or it is time; return how many jobs to read anew.

    These are the first in ``state_refined``.
    """
    is_time = st.state_f[REFINE_AT] <= st.state_f[NOW]
    n_entered = st.state_i[N_ENTERED]
    st.state_i[N_REFINED] = 0
    if n_entered == 0 and not is_time:
        return 0
    _learn(st)
    for i in range(n_entered):
        _add_stages(st, st.state_entered[i])
    next_s, i = st.state_f[NOW] + st.p_learn[LEARN_REFRESH], 0
    if is_time:
        st.state_f[REFINE_AT] = next_s if st.state_i[N_LIVE] > 0 else math.inf
        while i < st.state_i[N_LIVE]:
            i = _refine_live(st, i)
        st.state_i[IS_REFINED] = 1
    else:
        st.state_f[REFINE_AT] = min(st.state_f[REFINE_AT], next_s)
        for i in range(n_entered):
            _refine_entered(st, st.state_entered[i])
    if st.state_i[ESTIMATES]:
        for i in range(n_entered):
            _estimate(st, st.state_entered[i])
    st.state_i[N_ENTERED] = 0
    return st.state_i[N_REFINED]


@inlined
def _learn(st):
    """Count the stages that have finished in the means of their groups."""
    n_live = 0
    for i in range(st.state_i[N_LIVE]):
        g = st.state_live[i]
        is_ended = st.state_job_left[st.w_stage_job[g]] == 0
        if (ENFORCES or PREEMPTS or WINDOWS) and st.state_stage_left[g] > 0 and is_ended:
            continue  # its job was ended, or cancelled
        if st.state_stage_left[g] > 0:
            st.state_live[n_live] = g
            n_live += 1
            continue
        for level in range(len(st.p_learn_group)):
            group = st.p_learn_group[level, g]
            if group >= 0:
                st.state_learn_work[group] += st.state_stage_done_work[g]
                st.state_learn_tasks[group] += st.w_stage_task0[g + 1] - st.w_stage_task0[g]
                st.state_learn_mean[group] = (
                    st.state_learn_work[group] / st.state_learn_tasks[group]
                )
        if st.p_learn_group[0, g] >= 0:
            st.state_learn_runs[st.p_learn_group[0, g]] += 1
    st.state_i[N_LIVE] = n_live


@inlined
def _add_stages(st, j):
    """Add the stages of job `j`, which arrives; it is read anew whatever is expected."""
    st.state_seen_left[j] = -1
    live, n = st.state_live, st.state_i[N_LIVE]
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        i = n
        while i > 0 and live[i - 1] > g:
            live[i] = live[i - 1]
            i -= 1
        live[i] = g
        n += 1
    st.state_i[N_LIVE] = n


@inlined
def _refine_live(st, i):
    """Refine the job of entry `i` of the unfinished stages; return its first entry behind it."""
    j = st.w_stage_job[st.state_live[i]]
    is_changed = _has_moved(st, j)
    while i < st.state_i[N_LIVE] and st.w_stage_job[st.state_live[i]] == j:
        is_changed |= _refine_stage(st, st.state_live[i])
        i += 1
    if is_changed or st.state_i[REFINE_ALL]:
        _list_job(st, j)
    return i


@inlined
def _refine_entered(st, j):
    _has_moved(st, j)
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        _refine_stage(st, g)
    _list_job(st, j)


@part
def _has_moved(st, j):
    """Tell whether a task of job `j` has started or ended since its last refinement."""
    is_still = st.state_seen_left[j] == st.state_job_left[j]
    is_still &= st.state_seen_started[j] == st.state_job_started[j]
    st.state_seen_left[j] = st.state_job_left[j]
    st.state_seen_started[j] = st.state_job_started[j]
    return not is_still


@inlined
def _list_job(st, j):
    st.state_refined[st.state_i[N_REFINED]] = j
    st.state_i[N_REFINED] += 1


@part
def _refine_stage(st, g):
    """Refine the expected duration of the tasks of stage `g`; tell whether it changes."""
    prior_s = st.p_learn[LEARN_GUESS]
    for level in range(len(st.p_learn_group)):
        group = st.p_learn_group[level, g]
        if group >= 0 and not math.isnan(st.state_learn_mean[group]):
            prior_s = st.state_learn_mean[group]
            break
    n_prior = st.p_learn[LEARN_PRIOR]
    work_s = prior_s * n_prior + st.state_stage_done_work[g]
    n_done = st.w_stage_task0[g + 1] - st.w_stage_task0[g] - st.state_stage_left[g]
    expected_s = work_s / (n_prior + n_done)
    if expected_s == st.p_stage_expected_s[g]:
        return False
    st.p_stage_expected_s[g] = expected_s
    return True


@inlined
def _estimate(st, j):
    """Estimate the work of job `j`: of its finished tasks, and expected of the others."""
    work_s = 0.0
    for g in range(st.w_job_stage0[j], st.w_job_stage0[j + 1]):
        work_s += st.state_stage_done_work[g] + st.state_stage_left[g] * st.p_stage_expected_s[g]
    st.out_job_estimate[j] = work_s
