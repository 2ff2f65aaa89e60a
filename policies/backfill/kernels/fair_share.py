"""Usage of associations, which decays, and the two factors of fair share."""

# mypy: disable-error-code="no-untyped-def"

import math

from policies.backfill.kernels.priority_record import (
    AT,
    DECAY,
    LAST_FACTOR,
    LAST_PERIOD,
    N_PRESENT,
    SEEN,
)
from sim.base.jit import inlined, part
from sim.base.maths.kernels.power import power


@inlined
def has_started(st, j):
    """Tell whether job `j` has started, before the time up to which starts count."""
    return st.w_start[j] < st.state_f[SEEN]


@part
def decay_to(st, now, n):
    """Decay usage, and add that of the first `n` listed jobs, which run, until `now`."""
    factor = _factor(st, now - st.state_f[AT])
    for a in range(len(st.state_usage)):
        st.state_usage[a] *= factor
    add_run(st, n, now)
    st.state_f[AT] = now


@part
def decay_often(st, periods, period_s, n):
    """Decay usage so many times, every `period_s`, while the same `n` listed jobs run."""
    factor = _factor(st, period_s)
    decay = power(factor, float(periods))
    total = (1 - decay) / (1 - factor) if factor < 1 else periods  # of factor^i, i < periods
    for a in range(len(st.state_usage)):
        st.state_usage[a] *= decay
    for i in range(n):
        st.state_added[i] = st.w_cpus[st.state_listed[i]] * (period_s * factor * total)
    _add(st, n)
    st.state_f[AT] += periods * period_s


@part
def _factor(st, for_s):
    """Return what is left of usage after `for_s` seconds; most periods are as long."""
    if for_s != st.state_f[LAST_PERIOD] or for_s == 0:
        st.state_f[LAST_PERIOD] = for_s
        st.state_f[LAST_FACTOR] = power(st.w_setting[DECAY], for_s)
    return st.state_f[LAST_FACTOR]


@part
def add_run(st, n, now):
    """Add what the first `n` listed jobs have used until `now` since the last calculation.

    It is decayed by its own length.
    """
    for i in range(n):
        j = st.state_listed[i]
        for_s = max(now - max(st.w_start[j], st.state_f[AT]), 0.0)
        st.state_added[i] = for_s * power(st.w_setting[DECAY], for_s) * st.w_cpus[j]
    _add(st, n)


@part
def add_tasks(st, n):
    """Add what ended tasks of the first `n` listed jobs have used, since they were last counted."""
    for i in range(n):
        j = st.state_listed[i]
        work_s = st.w_done_work[j]
        st.state_added[i] = (work_s - st.state_counted[j]) * st.w_cpus[j]
        st.state_counted[j] = work_s
    _add(st, n)


@part
def _add(st, n):
    """Add what jobs used to their associations, the jobs of each taken together first."""
    for i in range(n):
        st.state_sum[st.w_association[st.state_listed[i]]] += st.state_added[i]
    for i in range(n):
        a = st.w_association[st.state_listed[i]]
        st.state_usage[a] += st.state_sum[a]
        st.state_sum[a] = 0.0


@part
def _sum_up(st):
    """Set the usage of each node: its own associations' and those below, CPU seconds."""
    total = st.state_node_usage
    total[:] = 0.0
    first = len(total) - len(st.state_usage)
    for a in range(len(st.state_usage)):
        total[first + a] = st.state_usage[a]
    for i in range(len(st.w_level_node)):
        node = st.w_level_node[i]
        total[st.w_parent[node]] += total[node]


@part
def rank_tree(st):
    """Set the factor of each association in Fair Tree: its rank over their number.

    The level fair share of a node is its share of its level over its share of their usage. Siblings
    are ranked by it, then the children of each; siblings of equal level fair share are ranked as
    one, users first, and a user equals the first user of an equal account.
    """
    _sum_up(st)
    usage, level, n = st.state_node_usage, st.state_node_level, len(st.state_usage)
    for node in range(1, len(level)):
        above, share = usage[st.w_parent[node]], st.w_share[node]
        used = usage[node] / above if above > 0 else 0.0
        level[node] = 0.0
        if share > 0:
            level[node] = share / used if used > 0 else math.inf
    order = st.state_rank
    for i in range(1, n):
        a = order[i]
        if not _ranks_before(st, a, order[i - 1]):
            continue
        low, high = 0, i - 1
        while low < high:
            middle = (low + high) >> 1
            if _ranks_before(st, a, order[middle]):
                high = middle
            else:
                low = middle + 1
        for k in range(i, low, -1):
            order[k] = order[k - 1]
        order[low] = a
    first = 0
    for i in range(n):
        if i > 0 and not _equals_next(st, order[i - 1], order[i]):
            first = i
        st.state_factor[order[i]] = float(n - first) / n


@part
def _ranks_before(st, a, b):
    """Tell whether association `a` is before `b`: by level fair share, depth and row."""
    if _are_siblings(st, a, b):
        level_a, level_b = _own_level(st, a), _own_level(st, b)
        return level_a > level_b or (level_a == level_b and a < b)
    depth_a, depth_b = st.w_depth[a], st.w_depth[b]
    for d in range(st.w_path.shape[1]):
        level_a = st.state_node_level[st.w_path[a, d]] if d < depth_a else math.inf
        level_b = st.state_node_level[st.w_path[b, d]] if d < depth_b else math.inf
        if level_a != level_b:
            return level_a > level_b
    return depth_a < depth_b or (depth_a == depth_b and a < b)


@part
def _equals_next(st, a, b):
    """Tell whether `b`, the next in order, is as good as `a`, down to the level of `a`."""
    if _are_siblings(st, a, b):
        return _own_level(st, a) == _own_level(st, b)
    for d in range(st.w_depth[a]):
        level_b = st.state_node_level[st.w_path[b, d]] if d < st.w_depth[b] else math.inf
        if st.state_node_level[st.w_path[a, d]] != level_b:
            return False
    return True


@inlined
def _are_siblings(st, a, b):
    first = len(st.w_parent) - len(st.state_usage)
    return st.w_parent[first + a] == st.w_parent[first + b]


@inlined
def _own_level(st, a):
    return st.state_node_level[len(st.state_node_level) - len(st.state_usage) + a]


@part
def set_effective_above(st):
    """Set the effective usage of each association's account; the root's is 1.

    Classic fair share: that of a node is its part of all usage, mixed with its parent's effective
    usage by its share of its level; below the root it is not mixed.
    """
    _sum_up(st)
    usage, part_of_all = st.state_node_usage, st.state_node_level
    for node in range(len(usage)):
        part_of_all[node] = usage[node] / usage[0] if usage[0] > 0 else 0.0
    for a in range(len(st.state_usage)):
        above = 1.0
        for d in range(st.w_depth[a] - 1):
            node = st.w_path[a, d]
            own = part_of_all[node]
            above = own + (above - own) * st.w_share[node] if d > 0 else own
        st.state_above[a] = above


@part
def set_classic(st, n_running):
    """Set the classic factors, given what the listed running jobs added to usage.

    As the plugin does: usage of accounts is from before this calculation. Jobs are looked at in the
    order of submission, running ones to add to the usage, and the first waiting one of a user to
    calculate the factor. That of users with no waiting job is left to their next job.
    """
    first, n_jobs, total = st.state_first, len(st.w_start), 0.0
    for a in range(len(first)):
        first[a] = n_jobs
        total += st.state_usage[a]
        st.state_factor[a] = math.nan
    for i in range(st.state_i[N_PRESENT]):
        j = st.state_present[i]
        if not has_started(st, j):
            a = st.w_association[j]
            first[a] = min(first[a], j)
    running = st.state_listed
    for i in range(n_running):
        a = st.w_association[running[i]]
        st.state_sum[a] += 0.0 if running[i] < first[a] else st.state_added[i]
    _sort(running, st.state_added, n_running)
    for a in range(len(first)):
        if first[a] < n_jobs:
            after, i = 0.0, n_running
            while i > 0 and running[i - 1] >= first[a]:
                i -= 1
                after += st.state_added[i]
            _set_factor(st, a, st.state_usage[a] - st.state_sum[a], total - after)
    st.state_sum[:] = 0.0


@inlined
def _sort(jobs, added, n):
    """Sort jobs, nearly sorted, by row, and what each added with them."""
    for i in range(1, n):
        j, value, k = jobs[i], added[i], i
        while k > 0 and jobs[k - 1] > j:
            jobs[k] = jobs[k - 1]
            added[k] = added[k - 1]
            k -= 1
        jobs[k] = j
        added[k] = value


@part
def set_unknown(st, a):
    """Set the classic factor of association `a`, if it is not known since the last calculation."""
    if math.isnan(st.state_factor[a]):
        total = 0.0
        for other in range(len(st.state_usage)):
            total += st.state_usage[other]
        _set_factor(st, a, st.state_usage[a], total)


@part
def _set_factor(st, a, own, total):
    """Set the classic factor of association `a`: 2 to the minus effective usage over shares."""
    used = own / total if total > 0 else 0.0
    node, share = len(st.w_share) - len(st.state_usage) + a, st.w_root_share[a]
    if st.w_depth[a] > 1:
        used += (st.state_above[a] - used) * st.w_share[node]
    st.state_factor[a] = power(2.0, -(used / share)) if share > 0 else 0.0
