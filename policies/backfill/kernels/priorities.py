"""Calculation of the priorities of waiting jobs: every period, and as they come."""

# mypy: disable-error-code="no-untyped-def"

import math

from policies.backfill.kernels.fair_share import (
    add_run,
    add_tasks,
    decay_often,
    decay_to,
    has_started,
    rank_tree,
    set_classic,
    set_effective_above,
    set_unknown,
)
from policies.backfill.kernels.priority_record import (
    AT,
    FAIR_TREE,
    IS_STALE,
    LAGS,
    MAX_AGE,
    N_CALCULATED,
    N_PRESENT,
    N_QUEUE,
    NEXT,
    PERIOD,
    RIGID,
    SEEN,
    WEIGHT_AGE,
    WEIGHT_FAIR_SHARE,
)
from sim.base.jit import inlined, jit, part
from sim.engine.plan import Event

JOB_ARRIVED, JOB_DONE = int(Event.JOB_ARRIVED), int(Event.JOB_DONE)
JOB_FAILED, TIMER = int(Event.JOB_FAILED), int(Event.TIMER)


@jit
def begin(st):
    """Calculate the factors of fair share before anything was used."""
    if st.state_i[FAIR_TREE]:
        rank_tree(st)
    else:
        st.state_factor[:] = math.nan
        set_effective_above(st)


@jit
def update(st, now, kinds, rows, times):
    """Process events; return the number of jobs with another key in the plan.

    Without `times` they are those of an instant; with them, ends of jobs since the last call come
    first. Of rigid jobs only the order counts, and keys that leave it as it is are not handed over.
    """
    begin = _end_before(st, now, kinds, rows, times)
    if begin > 0 and _is_tick(kinds, begin) and not _two_wait(st):
        st.state_f[SEEN] = math.inf
        st.state_f[NEXT] = math.inf  # since the last end, no order needs this calculation
        return 0
    st.state_f[SEEN] = math.inf
    _advance(st, now, kinds[begin:], rows[begin:])
    n_before = st.state_i[N_QUEUE]
    _arrive(st, now, kinds, rows)
    if st.state_i[RIGID]:
        n_changed = _keep_order(st, n_before)
    else:
        n_changed, first = 0, 0 if st.state_i[IS_STALE] else n_before
        for i in range(first, st.state_i[N_QUEUE]):
            n_changed = _hand_over(st, st.state_queue[i], n_changed)
    st.state_i[IS_STALE] = 0
    # an order needs two; usage of the time between is caught up with
    next_s = (st.state_i[N_CALCULATED] + 1) * st.w_setting[PERIOD]
    st.state_f[NEXT] = next_s if _two_wait(st) else math.inf
    return n_changed


@inlined
def _end_before(st, now, kinds, rows, times):
    """Process the ends of jobs before `now`, instant by instant; return their number."""
    begin = 0
    while begin < len(times) and times[begin] < now:
        end = begin + 1
        while end < len(times) and times[end] == times[begin]:
            end += 1
        st.state_f[SEEN] = times[begin]
        _advance(st, times[begin], kinds[begin:end], rows[begin:end])
        begin = end
    return begin


@inlined
def _is_tick(kinds, begin):
    """Tell whether the timer is the only event from number `begin` on."""
    return begin == len(kinds) - 1 and kinds[begin] == TIMER


@part
def _advance(st, now, kinds, rows):
    """Calculate what is due, and process the ends of jobs of an instant."""
    n_due = _n_due(st, now) - st.state_i[N_CALCULATED]
    if n_due > 0:
        _catch_up(st, n_due)
    _end(st, now, kinds, rows)
    if n_due > 0 or st.state_i[RIGID] or st.state_i[LAGS]:
        _list_waiting(st)
    if n_due > 0:
        for i in range(st.state_i[N_QUEUE]):
            _calculate_key(st, st.state_queue[i])
        st.state_i[IS_STALE] = 1


@part
def _two_wait(st):
    """Tell whether at least two submitted jobs wait.

    The queue, in which those that have started are left out a few at a time, is read from its end.
    """
    jobs, n = st.state_queue, st.state_i[N_QUEUE]
    first, n_waiting = n, 0
    while first > 0 and n_waiting < 2:
        first -= 1
        n_waiting += _waits(st, jobs[first])
    end = first
    for i in range(first, n):
        if _waits(st, jobs[i]):
            jobs[end] = jobs[i]
            end += 1
    st.state_i[N_QUEUE] = end
    return n_waiting > 1


@inlined
def _waits(st, j):
    return not st.state_gone[j] and not has_started(st, j)


@inlined
def _n_due(st, now):
    """Return the number of the last calculation until now."""
    period_s = st.w_setting[PERIOD]
    n = math.floor(now / period_s)
    while (n + 1) * period_s <= now:  # the quotient is rounded
        n += 1
    while n * period_s > now:
        n -= 1
    return n


@inlined
def _catch_up(st, n):
    """Calculate usage `n` times, every period, and the last time the factors, too."""
    period_s = st.w_setting[PERIOD]
    _forget(st)
    if n > 1:
        n_running = _list_running(st)
        while n > 1 and _last_start(st, n_running) > st.state_f[AT]:
            decay_to(st, (st.state_i[N_CALCULATED] + 1) * period_s, n_running)
            st.state_i[N_CALCULATED] += 1
            n -= 1
        if n > 1:
            decay_often(st, n - 1, period_s, n_running)
            st.state_i[N_CALCULATED] += n - 1
    calculate(st, (st.state_i[N_CALCULATED] + 1) * period_s)
    st.state_i[N_CALCULATED] += 1


@inlined
def _last_start(st, n):
    """Return the last start of the listed jobs, s; 0 for none."""
    last = 0.0
    for i in range(n):
        last = max(last, st.w_start[st.state_listed[i]])
    return last


@jit
def calculate(st, at_s):
    """Calculate usage and the factors of fair share at a time, s."""
    _forget(st)
    if not st.state_i[FAIR_TREE]:
        set_effective_above(st)
    n_running = _list_running(st)
    decay_to(st, at_s, n_running)
    if st.state_i[FAIR_TREE]:
        rank_tree(st)
    else:
        set_classic(st, n_running)


@part
def _list_running(st):
    """List the gangs that run, and return their number; count the ended tasks of other jobs."""
    n = 0
    for is_gang in range(2):
        n = 0
        for i in range(st.state_i[N_PRESENT]):
            j = st.state_present[i]
            if has_started(st, j) and st.w_is_gang[j] == is_gang:
                st.state_listed[n] = j
                n += 1
        if not is_gang:
            add_tasks(st, n)
    return n


@part
def _end(st, now, kinds, rows):
    """Add the usage of jobs that ended since the last calculation."""
    for is_gang in range(2):
        n = 0
        for i in range(len(kinds)):
            j = rows[i]
            if (kinds[i] == JOB_DONE or kinds[i] == JOB_FAILED) and st.w_is_gang[j] == is_gang:
                st.state_gone[j] = 1
                if not is_gang or has_started(st, j):
                    st.state_listed[n] = j
                    n += 1
        if is_gang:
            add_run(st, n, now)
        else:
            add_tasks(st, n)


@part
def _forget(st):
    """Leave out the jobs that have ended."""
    n = 0
    for i in range(st.state_i[N_PRESENT]):
        j = st.state_present[i]
        if not st.state_gone[j]:
            st.state_present[n] = j
            n += 1
    st.state_i[N_PRESENT] = n


@inlined
def _list_waiting(st):
    """Keep the jobs that still wait, of the queue or, where a start may be forgotten, of all."""
    jobs, end = st.state_queue, st.state_i[N_QUEUE]
    if st.state_i[LAGS] and not st.state_i[RIGID]:
        _forget(st)
        jobs, end = st.state_present, st.state_i[N_PRESENT]
    n = 0
    for i in range(end):
        if _waits(st, jobs[i]):
            st.state_queue[n] = jobs[i]
            n += 1
    st.state_i[N_QUEUE] = n


@inlined
def _arrive(st, now, kinds, rows):
    """Append the jobs that come now: submitted, or eligible only now."""
    for i in range(len(kinds)):
        if kinds[i] == JOB_ARRIVED:
            j = rows[i]
            st.state_since[j] = now
            st.state_present[st.state_i[N_PRESENT]] = j
            st.state_queue[st.state_i[N_QUEUE]] = j
            st.state_i[N_PRESENT] += 1
            st.state_i[N_QUEUE] += 1
            if not st.state_i[FAIR_TREE]:
                set_unknown(st, st.w_association[j])
            _calculate_key(st, j)


@part
def _calculate_key(st, j):
    """Set the key of job `j`, as of the last calculation, or of a later submission."""
    st.state_key[j] = st.w_tier_key[j] - weigh(st, j)


@jit
def weigh(st, j):
    """Return the priority of job `j`, and set its factors, each times its weight."""
    age_s = max(st.state_f[AT] - st.state_since[j], 0.0)
    share = st.state_factor[st.w_association[j]]
    st.state_weighted[0] = st.w_setting[WEIGHT_AGE] * min(age_s / st.w_setting[MAX_AGE], 1.0)
    st.state_weighted[1] = st.w_setting[WEIGHT_FAIR_SHARE] * share
    for i in range(st.w_constant.shape[1]):
        st.state_weighted[2 + i] = st.w_constant[j, i]
    priority = 0.0
    for i in range(len(st.state_weighted)):
        priority += st.state_weighted[i]
    return float(math.floor(max(priority, 1.0)))


@part
def _hand_over(st, j, n_changed):
    """Put the key of job `j` in the plan, the next after `n_changed`; return their number."""
    st.out_key[j] = st.state_key[j]
    st.out_changed[n_changed] = j
    return n_changed + 1


@inlined
def _keep_order(st, n_before):
    """Sort the queue, in which jobs from number `n_before` on are new, and the plan with it.

    The new ones get their keys, and so do those between the first and the last that are out of
    order in the plan, and as many before and after these as then are. Return the number of changes.
    """
    jobs, key, n, n_changed = st.state_queue, st.out_key, st.state_i[N_QUEUE], 0
    for i in range(n_before, n):
        n_changed = _hand_over(st, jobs[i], n_changed)
    if n_changed > 0 or st.state_i[IS_STALE]:
        _sort(st)
    first, end = n, 0  # of those that get their keys
    for i in range(1, n):
        if _goes_first(key, jobs[i], jobs[i - 1]):
            first, end = min(first, i - 1), i + 1
    for i in range(first, end):
        if key[jobs[i]] != st.state_key[jobs[i]]:
            n_changed = _hand_over(st, jobs[i], n_changed)
    while 0 < first < n and _goes_first(key, jobs[first], jobs[first - 1]):
        first -= 1
        n_changed = _hand_over(st, jobs[first], n_changed)
    while 0 < end < n and _goes_first(key, jobs[end], jobs[end - 1]):
        n_changed = _hand_over(st, jobs[end], n_changed)
        end += 1
    return n_changed


@inlined
def _sort(st):
    queue = st.state_queue
    for i in range(1, st.state_i[N_QUEUE]):
        j, k = queue[i], i
        while k > 0 and _goes_first(st.state_key, j, queue[k - 1]):
            queue[k] = queue[k - 1]
            k -= 1
        queue[k] = j


@part
def _goes_first(key, a, b):
    return key[a] < key[b] or (key[a] == key[b] and a < b)
