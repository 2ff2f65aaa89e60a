"""Queues of waiting stages: the queue in which a job waits, its rank there, and the next queue.

The stages with a ready task form a list in their job. They stand in the heap of the kernel queue
``state_job_wait_queue`` (strict order), in a bucket (skip and pack) or in the sorted list (plans
and reservations), or in none while the job is parked because its run limit or its start gate binds.
The next queue is that of the lower tier, then of the least use over weight.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import bucket_insert, bucket_remove, reposition_job
from sim.engine.kernels.features import (
    LIMITS,
    QUOTAS,
    REPLANS,
    RESERVES,
    RUNS_ON,
    STRICT,
    TIERS,
    USAGE,
)
from sim.engine.kernels.heaps import (
    before,
    has_other_tier,
    heap_decrease,
    heap_insert,
    heap_remove,
    is_of_higher_tier,
)
from sim.engine.kernels.scanlist import scan_insert, scan_remove
from sim.engine.kernels.state import BY_SHARE, RELEASED, RESERVATIONS, SHARE
from sim.engine.kernels.worth import remaining_over_worth

KEY, FIFO, REMAINING_ORDER, ATTAINED_ORDER, SHARE_ORDER = range(5)


@part
def kernel_queue(st, j, queue):
    """Return the kernel queue of job `j` in the policy's `queue`."""
    return st.w_job_org[j] * len(st.p_queue_weight) + queue


@part
def stage_ready(st, g):
    """Add stage `g`, which has a ready task again, to its job's list and to its queue."""
    j = st.w_stage_job[g]
    first = st.state_job_ready_head[j]
    st.state_stage_ready_next[g] = first
    st.state_stage_ready_prev[g] = -1
    if first >= 0:
        st.state_stage_ready_prev[first] = g
    st.state_job_ready_head[j] = g
    queue = st.state_job_wait_queue[j]
    if queue >= 0:
        _enter(st, queue, g)


@part
def stage_drained(st, g):
    """Remove stage `g`, which has no ready task left, from its job's list and from its queue."""
    j = st.w_stage_job[g]
    nxt, prev = st.state_stage_ready_next[g], st.state_stage_ready_prev[g]
    if prev >= 0:
        st.state_stage_ready_next[prev] = nxt
    else:
        st.state_job_ready_head[j] = nxt
    if nxt >= 0:
        st.state_stage_ready_prev[nxt] = prev
    queue = st.state_job_wait_queue[j]
    if queue >= 0:
        _leave(st, queue, g)


@part
def update_wait_queue(st, j):
    """Move the stages of job `j` to the queue that its limits and columns give it now."""
    queue = _target_queue(st, j)
    if queue == st.state_job_wait_queue[j]:
        return
    g = st.state_job_ready_head[j]
    if st.state_job_wait_queue[j] >= 0:
        while g >= 0:
            _leave(st, st.state_job_wait_queue[j], g)
            g = st.state_stage_ready_next[g]
    st.state_job_wait_queue[j] = queue
    if queue >= 0:
        st.state_job_rank[j] = rank(st, j)
        g = st.state_job_ready_head[j]
        while g >= 0:
            _enter(st, queue, g)
            g = st.state_stage_ready_next[g]


@part
def update_queue(st, j):
    """Follow ``p_job_queue``: change the kernel queue of job `j`, and the use of both queues."""
    old = st.state_job_queue[j]
    new = kernel_queue(st, j, st.p_job_queue[j])
    if old == new:
        return
    st.state_job_queue[j] = new
    if USAGE:
        used = st.state_job_used
        for r in range(used.shape[1]):
            st.state_queue_used[old, r] -= used[j, r]
            st.state_queue_used[new, r] += used[j, r]


@part
def rank(st, j):
    """Return the value by which its queue orders job `j`."""
    order = st.p_queue_order[st.state_job_wait_queue[j] % len(st.p_queue_order)]
    if order == FIFO:
        return float(st.state_job_turn[j])
    if order == REMAINING_ORDER:
        return remaining_over_worth(st, j)
    if order == ATTAINED_ORDER:
        return st.state_job_attained[j]
    if order == SHARE_ORDER:
        return _share_of_job(st, j)
    return st.p_job_key[j]


@part
def update_rank(st, j):
    """Move the stages of job `j` to the position that its rank gives them now."""
    queue = st.state_job_wait_queue[j]
    if queue < 0:
        return
    old, new = st.state_job_rank[j], rank(st, j)
    if new == old:
        return
    g = st.state_job_ready_head[j]
    if g < 0:
        st.state_job_rank[j] = new
    elif STRICT and new < old and st.state_stage_ready_next[g] < 0:
        st.state_job_rank[j] = new
        heap_decrease(st, queue, g)
    else:
        _reinsert(st, j, queue, new)


@inlined
def reorder_job(st, j):
    """Move job `j` to its position after the policy changed its columns."""
    queue = st.state_job_wait_queue[j]
    if queue < 0:
        return
    new = rank(st, j)
    in_list = is_listed(st)
    if not in_list or new != st.state_job_rank[j] or _key_changed(st, j):
        _reinsert(st, j, queue, new)


@inlined
def _key_changed(st, j):
    g = st.state_job_ready_head[j]
    while g >= 0:
        if st.state_scan_key[st.state_scan_position[g]] != st.p_stage_key[g]:
            return True
        g = st.state_stage_ready_next[g]
    return False


@part
def _reinsert(st, j, queue, new):
    if STRICT or is_listed(st):
        g = st.state_job_ready_head[j]
        while g >= 0:
            _leave(st, queue, g)
            g = st.state_stage_ready_next[g]
        st.state_job_rank[j] = new
        g = st.state_job_ready_head[j]
        while g >= 0:
            _enter(st, queue, g)
            g = st.state_stage_ready_next[g]
        return
    st.state_job_rank[j] = new
    reposition_job(st, j)


@inlined
def _target_queue(st, j):
    """Return the queue in which job `j` waits now, -1 if it is parked.

    By its run limit, by its start gate, or by the policy, which lets it run nowhere.
    """
    if RUNS_ON and st.p_job_runs_on[j] == 0:
        return -1
    if LIMITS:
        is_blocked = st.state_job_running[j] >= st.p_job_run_limit[j]
        if is_blocked or st.state_job_started[j] >= st.p_job_start_gate[j]:
            overflow = st.p_job_overflow_queue[j]
            return -1 if overflow < 0 else kernel_queue(st, j, overflow)
    return st.state_job_queue[j]


@inlined
def _share_of_job(st, j):
    share = 0.0
    for r in range(st.state_job_used.shape[1]):
        share = max(share, st.state_job_used[j, r] * st.c_scale[r])
    return share


@part
def is_listed(st):
    """Tell whether waiting stages are one sorted list, which plans and reservations go through."""
    return REPLANS or (RESERVES and st.state_i[RESERVATIONS] > 0)


@part
def _enter(st, queue, g):
    if STRICT:
        heap_insert(st, queue, g)
        return
    if is_listed(st):
        scan_insert(st, queue, g)
        return
    bucket_insert(st, queue, g)


@part
def _leave(st, queue, g):
    if not STRICT:
        if is_listed(st):
            scan_remove(st, g)
            return
        bucket_remove(st, g)
        return
    heap_remove(st, queue, g)
    if st.state_queue_blocked_stage[queue] == g:
        st.state_queue_blocked_stage[queue] = -1
        st.state_queue_blocked[queue] = 0


FOR_ROOM, BY_CAP = 1, 2
UNTRIED = 4  # since an earlier dispatch, and in this one its turn has not come


@part
def queue_use(st, used, row):
    """Return the use in row `row` of `used`: the dominant share, or that of one resource."""
    resource = st.state_i[SHARE]
    if resource >= 0:
        return used[row, resource] * st.c_scale[resource]
    share = 0.0
    for r in range(used.shape[1]):
        share = max(share, used[row, r] * st.c_scale[r])
    return share


@part
def precedes(st, a, b):
    """Tell whether kernel queue `a` is served before kernel queue `b`."""
    n = len(st.p_queue_weight)
    org_a, org_b = a // n, b // n
    level_a, level_b = a - org_a * n, b - org_b * n
    if st.p_queue_tier[level_a] != st.p_queue_tier[level_b]:
        return st.p_queue_tier[level_a] < st.p_queue_tier[level_b]
    if QUOTAS:
        order = _tree_order(st, a, b)
        if order != 0:
            return order < 0
    elif org_a != org_b:
        use_a = queue_use(st, st.state_org_used, org_a) / st.c_org_weight[org_a]
        use_b = queue_use(st, st.state_org_used, org_b) / st.c_org_weight[org_b]
        return use_a < use_b or (use_a == use_b and org_a < org_b)
    use_a = queue_use(st, st.state_queue_used, a) / st.p_queue_weight[level_a]
    use_b = queue_use(st, st.state_queue_used, b) / st.p_queue_weight[level_b]
    return use_a < use_b or (use_a == use_b and level_a < level_b)


@part
def _tree_order(st, a, b):
    """Compare kernel queues `a` and `b` by their nodes of the tree of quotas; negative: `a` first.

    Where both borrow as far up: by their first stages, or, from the root down, one that does not
    borrow there, then least use over weight. 0 for queues of one node.
    """
    if not st.state_i[BY_SHARE]:
        difference = st.state_queue_height[a] - st.state_queue_height[b]
        if difference == 0:
            difference = -1 if before(st, st.state_queue_head[a], st.state_queue_head[b]) else 1
        return difference
    n = len(st.p_queue_weight)
    path_a, path_b = st.c_org_path[a // n], st.c_org_path[b // n]
    for d in range(len(path_a)):
        bit_a, bit_b = st.state_queue_borrows[a] >> d & 1, st.state_queue_borrows[b] >> d & 1
        if bit_a != bit_b:
            return bit_a - bit_b
        node_a, node_b = path_a[d], path_b[d]
        if node_a == node_b:
            continue
        use_a = queue_use(st, st.state_node_used, node_a) / st.c_node_weight[node_a]
        use_b = queue_use(st, st.state_node_used, node_b) / st.c_node_weight[node_b]
        if use_a != use_b:
            return -1 if use_a < use_b else 1
        return node_a - node_b
    return 0


@part
def goes_before(st, a, b):
    """Tell whether waiting stage `a` is served before `b`: by queue, then in its order.

    By the tier of their partitions before that.
    """
    if TIERS and has_other_tier(st, a, b):
        return is_of_higher_tier(st, a, b)
    queue_a = st.state_job_wait_queue[st.w_stage_job[a]]
    queue_b = st.state_job_wait_queue[st.w_stage_job[b]]
    if queue_a == queue_b:
        return before(st, a, b)
    if QUOTAS and not st.state_i[BY_SHARE]:
        return _by_height(st, a, b, queue_a, queue_b)
    return precedes(st, queue_a, queue_b)


@part
def _by_height(st, a, b, queue_a, queue_b):
    """Tell whether stage `a` is served before `b` of another queue: it borrows less, or ranks."""
    n = len(st.p_queue_weight)
    tier_a, tier_b = st.p_queue_tier[queue_a % n], st.p_queue_tier[queue_b % n]
    if tier_a != tier_b:
        return tier_a < tier_b
    height_a, height_b = st.state_queue_height[queue_a], st.state_queue_height[queue_b]
    return height_a < height_b if height_a != height_b else before(st, a, b)


@part
def next_queue(st):
    """Return the queue to serve next among those with an unblocked head, -1 for none.

    A job at its run limit may move, within a dispatch, to the front of a queue that is blocked. If
    the turn of that queue has come before, its old head bars the job; else the job is tried.
    """
    while True:
        q = _first_open(st)
        if not LIMITS or q < 0 or not st.state_queue_blocked[q]:
            return q
        if st.state_queue_root[q] != st.state_queue_blocked_stage[q]:
            st.state_queue_blocked[q] = 0
            st.state_queue_blocked_stage[q] = -1
            return q
        st.state_queue_blocked[q] -= UNTRIED  # nothing was released for it since


@inlined
def _first_open(st):
    """Return the first queue in order with a head that is not refused in this dispatch, or -1."""
    best = -1
    for q in range(len(st.state_queue_root)):
        if _is_open(st, q) and (best < 0 or precedes(st, q, best)):
            best = q
    return best


@inlined
def _is_open(st, q):
    """Tell whether queue `q` has a head that is not refused in this dispatch."""
    if st.state_queue_root[q] < 0:
        return False
    return not st.state_queue_blocked[q] or (LIMITS and st.state_queue_blocked[q] >= UNTRIED)


@inlined
def is_contested(st, q):
    """Tell whether starts from queue `q` may let another unblocked queue of its tier be next."""
    n = len(st.p_queue_weight)
    tier = st.p_queue_tier[q % n]
    for p in range(len(st.state_queue_root)):
        if p != q and _is_open(st, p) and st.p_queue_tier[p % n] == tier:
            return True
    return False


@inlined
def unblock(st):
    """Before a dispatch: unblock queues after a release, or behind a new head.

    A queue that waits for room keeps ``state_queue_blocked_stage`` while its head stays, since
    only the machines freed since need a try. One that waits for its own cap is tried again, with
    nothing kept, once its organisation, or with quotas any, has released something.
    """
    released = st.state_i[RELEASED]
    n = len(st.p_queue_weight)
    for q in range(len(st.state_queue_root)):
        blocked = st.state_queue_blocked[q] & ~UNTRIED
        if not blocked:
            continue
        has_new_head = st.state_queue_blocked_stage[q] != st.state_queue_root[q]
        org_released = st.state_org_freed[q // n] or (QUOTAS and released)
        if has_new_head or (blocked == BY_CAP and org_released):
            st.state_queue_blocked[q] = 0
            st.state_queue_blocked_stage[q] = -1
        elif blocked == FOR_ROOM and released:
            st.state_queue_blocked[q] = 0
        elif LIMITS:
            st.state_queue_blocked[q] = blocked | UNTRIED
    for org in range(len(st.state_org_freed)):
        st.state_org_freed[org] = 0
    st.state_i[RELEASED] = 0
