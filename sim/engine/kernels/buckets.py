"""Waiting stages by queue and demand, for placements that look past the first.

A *bucket* holds the waiting stages of one kernel queue and one kind: tasks of one kind have the
same demand and may run on the same machines, so where one of them fits all do. Waiting gangs,
which start by jobs, are a kind of their own. The stages of a bucket are a skew heap, in the order
of their queue; where remaining work lowers the score, by remaining work before that, so that the
score of a stage bounds the scores of those below it.

The buckets are one list, in no order, with a copy of the demands beside it, resource by resource:
a few vector loops try all of them on a machine. A bucket is *new* until it has been tried on every
machine; a stage that enters a bucket that is not new fits nowhere either. The list begins with the
N_REFUSED new ones that this dispatch refused because of a cap, then has the other new ones, up to
N_NEW, then the rest, up to N_BUCKETS. Room and caps only get tighter within a dispatch.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import CAPS, FLAVORS, GANGS, SCORED
from sim.engine.kernels.heaps import before
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.state import (
    BUCKETS_MADE,
    N_BUCKETS,
    N_NEW,
    N_REFUSED,
    PACK_REMAINING,
)
from sim.engine.kernels.worth import remaining_over_worth

FITS_NOTHING = 2.0**63
"""Demand of waiting gangs, whose stages start no single tasks: more quanta than an int64 counts."""


@part
def is_waiting_gang(st, j):
    """Tell whether job `j` is a gang that has no slots yet."""
    return st.w_job_min_tasks[j] > 0 and st.state_job_idle_held[j] < 0


@part
def bucket_insert(st, queue, g):
    """Insert stage `g`, which waits in `queue`, into its bucket."""
    kind = st.w_stage_kind[g]
    if CAPS and st.state_job_counted[st.w_stage_job[g]]:
        kind = st.w_stage_running_kind[g]
    if GANGS and is_waiting_gang(st, st.w_stage_job[g]):
        kind = gang_kind(st)
    bucket = _bucket_of(st, queue, kind, g)
    st.state_stage_bucket[g] = bucket
    st.state_queue_waiting[queue] += 1
    _add(st, st.state_bucket_position[bucket], g)


@part
def bucket_remove(st, g):
    """Remove stage `g` from its bucket."""
    position = st.state_bucket_position[st.state_stage_bucket[g]]
    st.state_stage_bucket[g] = -1
    st.state_queue_waiting[st.state_bucket_queue[position]] -= 1
    _detach(st, position, g)
    if st.state_bucket_root[position] < 0:
        _drop_bucket(st, position)


@inlined
def regroup(st, j):
    """Move the waiting stages of job `j` to other buckets.

    It is a gang that has its slots now, or a job that begins to run, or runs no more.
    """
    g = st.state_job_ready_head[j]
    while g >= 0:
        if st.state_stage_bucket[g] >= 0:
            bucket_remove(st, g)
            bucket_insert(st, st.state_job_wait_queue[j], g)
        g = st.state_stage_ready_next[g]


@part
def retry_job(st, j):
    """Let the next dispatch try the waiting stages of job `j` on every machine."""
    g = st.state_job_ready_head[j]
    while g >= 0:
        if st.state_stage_bucket[g] >= 0:
            position = st.state_bucket_position[st.state_stage_bucket[g]]
            if position >= st.state_i[N_NEW]:
                _mark_new(st, position)
        g = st.state_stage_ready_next[g]


@part
def reposition_job(st, j):
    """Move the waiting stages of job `j` to where their changed keys belong."""
    g = st.state_job_ready_head[j]
    while g >= 0:
        if st.state_stage_bucket[g] >= 0:
            _reposition(st, g)
        g = st.state_stage_ready_next[g]


@part
def follow_remaining(st, j):
    """Move the waiting stages of job `j`, whose remaining work may have changed."""
    if is_by_remaining(st):
        reposition_job(st, j)


@part
def is_by_remaining(st):
    """Tell whether remaining work orders the stages of a bucket."""
    return SCORED and st.p_pack[PACK_REMAINING] > 0


@part
def _reposition(st, g):
    """Move stage `g` within its bucket to where its changed key belongs."""
    parent, left, right = st.state_stage_prev[g], st.state_stage_child[g], st.state_stage_sibling[g]
    if (
        (parent < 0 or not _goes_first(st, g, parent))
        and (left < 0 or not _goes_first(st, left, g))
        and (right < 0 or not _goes_first(st, right, g))
    ):
        return
    position = st.state_bucket_position[st.state_stage_bucket[g]]
    _detach(st, position, g)
    _add(st, position, g)


@part
def gang_kind(st):
    """Return the kind of waiting gangs."""
    return len(st.state_kind_bucket) - 1


@part
def end_dispatch(st):
    """End a dispatch: no bucket is new any more, except those refused because of a cap.

    With flavors all are, as one that lacked the quota of a flavor may have room there.
    """
    st.state_i[N_NEW] = st.state_i[N_BUCKETS] if FLAVORS else st.state_i[N_REFUSED]
    st.state_i[N_REFUSED] = 0


@part
def refuse(st, position):
    """Refuse the bucket at `position` for the rest of this dispatch, because of a cap."""
    if position >= st.state_i[N_NEW]:
        _mark_new(st, position)
        position = st.state_i[N_NEW] - 1
    _swap(st, position, st.state_i[N_REFUSED])
    st.state_i[N_REFUSED] += 1


@part
def mark_tried(st, position):
    """Mark the new bucket at `position` as tried on every machine."""
    st.state_i[N_NEW] -= 1
    _swap(st, position, st.state_i[N_NEW])


@part
def list_bucket(st, position):
    """List the stages of the bucket at `position` in ``state_stage_stack``; return their number.

    Of waiting gangs, which differ in what they need, all are looked at.
    """
    stages, n, i = st.state_stage_stack, 1, 0
    stages[0] = st.state_bucket_root[position]
    while i < n:
        for child in (st.state_stage_child[stages[i]], st.state_stage_sibling[stages[i]]):
            if child >= 0:
                stages[n] = child
                n += 1
        i += 1
    return n


@part
def is_listed_before(st, a, b):
    """Tell whether stage `a` comes before stage `b`: by kernel queue, then in its order."""
    queue_a = st.state_job_wait_queue[st.w_stage_job[a]]
    queue_b = st.state_job_wait_queue[st.w_stage_job[b]]
    return before(st, a, b) if queue_a == queue_b else queue_a < queue_b


@inlined
def _bucket_of(st, queue, kind, g):
    """Return the bucket of `queue` and `kind`; make it, for stage `g`, if there is none.

    Waiting gangs are new every time: each has a size of its own.
    """
    bucket, is_tried = st.state_kind_bucket[kind], False
    is_gang = GANGS and kind == gang_kind(st)
    while bucket >= 0:
        position = st.state_bucket_position[bucket]
        if st.state_bucket_queue[position] == queue:
            if is_gang and position >= st.state_i[N_NEW]:
                _mark_new(st, position)
            return bucket
        is_tried |= position >= st.state_i[N_NEW]  # no machine has room for this kind
        bucket = st.state_bucket_next[bucket]
    position = st.state_i[N_BUCKETS]
    st.state_i[N_BUCKETS] = position + 1
    st.state_i[BUCKETS_MADE] += 1
    bucket = st.state_bucket_at[position]
    st.state_bucket_next[bucket] = st.state_kind_bucket[kind]
    st.state_kind_bucket[kind] = bucket
    st.state_bucket_queue[position] = queue
    st.state_bucket_kind[position] = kind
    st.state_bucket_root[position] = -1
    for r in range(st.state_bucket_demand.shape[0]):
        st.state_bucket_demand[r, position] = st.w_stage_demand[demand_row(st, g), r]
        if is_gang:
            st.state_bucket_demand[r, position] = FITS_NOTHING
    if is_gang or not is_tried or FLAVORS:  # another queue may have other flavors
        _mark_new(st, position)
    return bucket


@inlined
def _drop_bucket(st, position):
    """Remove the empty bucket at `position` from the list and from its kind."""
    kind, bucket = st.state_bucket_kind[position], st.state_bucket_at[position]
    previous = st.state_kind_bucket[kind]
    if previous == bucket:
        st.state_kind_bucket[kind] = st.state_bucket_next[bucket]
    else:
        while st.state_bucket_next[previous] != bucket:
            previous = st.state_bucket_next[previous]
        st.state_bucket_next[previous] = st.state_bucket_next[bucket]
    for end in (N_REFUSED, N_NEW, N_BUCKETS):
        last = st.state_i[end] - 1
        if position <= last:
            _swap(st, position, last)
            st.state_i[end] = last
            position = last


@part
def _mark_new(st, position):
    """Move the bucket at `position`, which is not new, to the new ones."""
    _swap(st, position, st.state_i[N_NEW])
    st.state_i[N_NEW] += 1


@part
def _swap(st, i, k):
    """Swap the buckets at two positions of the list."""
    if i == k:
        return
    for column in (
        st.state_bucket_at, st.state_bucket_queue, st.state_bucket_kind, st.state_bucket_root
    ):  # fmt: skip
        value = column[i]
        column[i] = column[k]
        column[k] = value
    st.state_bucket_position[st.state_bucket_at[i]] = i
    st.state_bucket_position[st.state_bucket_at[k]] = k
    for r in range(st.state_bucket_demand.shape[0]):
        demand = st.state_bucket_demand[r, i]
        st.state_bucket_demand[r, i] = st.state_bucket_demand[r, k]
        st.state_bucket_demand[r, k] = demand


@part
def _add(st, position, g):
    """Add stage `g` to the heap of the bucket at `position`."""
    st.state_stage_child[g] = st.state_stage_sibling[g] = st.state_stage_prev[g] = -1
    root = st.state_bucket_root[position]
    st.state_bucket_root[position] = g if root < 0 else _merge(st, root, g)


@part
def _detach(st, position, g):
    """Remove stage `g` from the heap of the bucket at `position`.

    Its children take its position. If the key of `g` has changed they may belong above its parent.
    """
    child, sibling, prev = st.state_stage_child, st.state_stage_sibling, st.state_stage_prev
    left, right, parent = child[g], sibling[g], prev[g]
    rest = left
    if left < 0:
        rest = right
    elif right >= 0:
        rest = _merge(st, left, right)
    is_above = parent >= 0 and rest >= 0 and _goes_first(st, rest, parent)
    if parent >= 0:
        replaced = -1 if is_above else rest
        if child[parent] == g:
            child[parent] = replaced
        else:
            sibling[parent] = replaced
    if rest >= 0:
        prev[rest] = -1 if is_above else parent
    if parent < 0:
        st.state_bucket_root[position] = rest
    elif is_above:
        st.state_bucket_root[position] = _merge(st, st.state_bucket_root[position], rest)


@part
def _merge(st, a, b):
    """Merge two heaps, of roots `a` and `b`; return the root."""
    child, sibling, prev = st.state_stage_child, st.state_stage_sibling, st.state_stage_prev
    if _goes_first(st, b, a):
        a, b = b, a
    root = a
    prev[root] = -1
    while b >= 0:  # b goes below a, on its right side, which becomes its left one
        rest = sibling[a]
        sibling[a] = child[a]
        if rest >= 0 and _goes_first(st, rest, b):
            rest, b = b, rest
        child[a] = b
        prev[b] = a
        a, b = b, rest
    return root


@part
def _goes_first(st, a, b):
    """Tell whether stage `a` goes before stage `b` in the heap of their bucket."""
    if is_by_remaining(st):
        left_a = remaining_over_worth(st, st.w_stage_job[a])
        left_b = remaining_over_worth(st, st.w_stage_job[b])
        if left_a != left_b:
            return left_a < left_b
    return before(st, a, b)
