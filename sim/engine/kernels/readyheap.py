"""Waiting stages in queue order: one pairing heap a queue, its nodes the stages themselves.

A node is a stage with a ready task, so a job that changes queue, limit or key moves its nodes and
leaves no stale entry. Order: the job's rank, then the stage's key, then the row of the stage.
"""

from sim.base.jit import inlined, part


@part
def before(st, a, b):
    """Tell whether stage `a` goes before stage `b` in one queue."""
    rank_a = st.state_job_rank[st.w_stage_job[a]]
    rank_b = st.state_job_rank[st.w_stage_job[b]]
    if rank_a != rank_b:
        return rank_a < rank_b
    key_a, key_b = st.p_stage_key[a], st.p_stage_key[b]
    if key_a != key_b:
        return key_a < key_b
    return a < b


@inlined
def heap_insert(st, queue, g):
    """Add stage `g` to the heap of `queue`."""
    st.state_stage_child[g] = -1
    st.state_stage_sibling[g] = -1
    st.state_stage_prev[g] = -1
    root = st.state_queue_root[queue]
    st.state_queue_root[queue] = g if root < 0 else _meld(st, root, g)


@inlined
def heap_remove(st, queue, g):
    """Take stage `g`, wherever it stands, out of the heap of `queue`."""
    rest = _merge_pairs(st, st.state_stage_child[g])
    st.state_stage_child[g] = -1
    if st.state_queue_root[queue] == g:
        st.state_queue_root[queue] = rest
        return
    _cut(st, g)
    if rest >= 0:
        st.state_queue_root[queue] = _meld(st, st.state_queue_root[queue], rest)


@inlined
def heap_fewer(st, queue, g):
    """Restore order after the rank of stage `g` became smaller."""
    root = st.state_queue_root[queue]
    if root != g:
        _cut(st, g)
        st.state_queue_root[queue] = _meld(st, root, g)


@part
def _meld(st, a, b):
    if before(st, b, a):
        a, b = b, a
    child = st.state_stage_child[a]
    st.state_stage_sibling[b] = child
    if child >= 0:
        st.state_stage_prev[child] = b
    st.state_stage_prev[b] = a
    st.state_stage_child[a] = b
    return a


@part
def _cut(st, g):
    prev = st.state_stage_prev[g]
    sibling = st.state_stage_sibling[g]
    if st.state_stage_child[prev] == g:
        st.state_stage_child[prev] = sibling
    else:
        st.state_stage_sibling[prev] = sibling
    if sibling >= 0:
        st.state_stage_prev[sibling] = prev
    st.state_stage_prev[g] = -1
    st.state_stage_sibling[g] = -1


@inlined
def _merge_pairs(st, first):
    """Meld a list of siblings, in pairs and then from the back; returns the root or -1."""
    if first < 0:
        return first
    sibling, prev = st.state_stage_sibling, st.state_stage_prev
    pairs = -1  # melded pairs, linked backwards through sibling
    node = first
    while node >= 0:
        other = sibling[node]
        if other < 0:
            follow = -1
            merged = node
        else:
            follow = sibling[other]
            sibling[node] = -1
            sibling[other] = -1
            merged = _meld(st, node, other)
        sibling[merged] = pairs
        pairs = merged
        node = follow
    root = pairs
    rest = sibling[root]
    sibling[root] = -1
    while rest >= 0:
        follow = sibling[rest]
        sibling[rest] = -1
        root = _meld(st, root, rest)
        rest = follow
    prev[root] = -1
    return root
