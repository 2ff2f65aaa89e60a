"""Which queue is served next: the lower tier, then the least use over weight."""

from sim.base.jit import inlined, part
from sim.engine.kernels.features import EVICTS
from sim.engine.kernels.state import RELEASED, SHARE

FOR_ROOM, BY_CAP = 1, 2


@part
def use(st, used, row):
    """Return the use in row `row` of `used`: the dominant share, or that of one resource."""
    resource = st.state_i[SHARE]
    if resource >= 0:
        return used[row, resource] * st.c_scale[resource]
    share = 0.0
    for r in range(used.shape[1]):
        share = max(share, used[row, r] * st.c_scale[r])
    return share


@part
def goes_first(st, a, b):
    """Tell whether kernel queue `a` is served before kernel queue `b`."""
    n = len(st.p_queue_weight)
    org_a, org_b = a // n, b // n
    level_a, level_b = a - org_a * n, b - org_b * n
    if st.p_queue_tier[level_a] != st.p_queue_tier[level_b]:
        return st.p_queue_tier[level_a] < st.p_queue_tier[level_b]
    if org_a != org_b:
        use_a = use(st, st.state_org_used, org_a) / st.c_org_weight[org_a]
        use_b = use(st, st.state_org_used, org_b) / st.c_org_weight[org_b]
        return use_a < use_b or (use_a == use_b and org_a < org_b)
    use_a = use(st, st.state_queue_used, a) / st.p_queue_weight[level_a]
    use_b = use(st, st.state_queue_used, b) / st.p_queue_weight[level_b]
    return use_a < use_b or (use_a == use_b and level_a < level_b)


@inlined
def pick_queue(st):
    """Return the queue to serve next among those with an unblocked head, -1 for none."""
    n = len(st.state_queue_root)
    best = -1
    for q in range(n):
        if st.state_queue_root[q] < 0 or st.state_queue_blocked[q]:
            continue
        if best < 0 or goes_first(st, q, best):
            best = q
    return best


@inlined
def unblock(st):
    """Before a dispatch: queues look again after a release, or behind a new head.

    Always where tasks make way for others: those that would may have started since.

    A queue that waits for room keeps ``state_queue_blocked_stage`` while its head stays, since
    only the machines freed since need a look. One that waits for its own cap looks again, with
    nothing kept, once its organisation has given something back.
    """
    released = EVICTS or st.state_i[RELEASED]
    n = len(st.p_queue_weight)
    for q in range(len(st.state_queue_root)):
        blocked = st.state_queue_blocked[q]
        if not blocked:
            continue
        has_new_head = st.state_queue_blocked_stage[q] != st.state_queue_root[q]
        given_back = EVICTS or st.state_org_freed[q // n]
        if has_new_head or (blocked == BY_CAP and given_back):
            st.state_queue_blocked[q] = 0
            st.state_queue_blocked_stage[q] = -1
        elif blocked == FOR_ROOM and released:
            st.state_queue_blocked[q] = 0
    for org in range(len(st.state_org_freed)):
        st.state_org_freed[org] = 0
    st.state_i[RELEASED] = 0
