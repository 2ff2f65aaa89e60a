"""Quotas: the use of each node of the tree of queues, and what a job may use or must borrow.

A node keeps what it does not lend (``c_node_local``) for the queues below it; what they use beyond
counts against the quota of its parent. `sim.cluster.quotas` has the rules and their source. Nodes
are rows: the organisations first, each before its parent.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part


@part
def count_in_tree(st, org, r, amount):
    """Add `amount` of resource `r`, negative for a release, to the use of `org` and all above."""
    node, counted = org, amount
    while node >= 0:
        local, before = st.c_node_local[node, r], st.state_node_taken[node, r]
        st.state_node_used[node, r] += amount
        st.state_node_taken[node, r] = before + counted
        counted = max(before + counted - local, 0) - max(before - local, 0)
        node = st.c_node_parent[node]


@part
def within_quota(st, taken, org, r, amount):
    """Tell whether organisation `org` may use `amount` more of resource `r`.

    `taken`: use that counts at each node, now or at another time.
    """
    node = org
    while node >= 0 and amount > 0:
        if taken[node, r] + amount > st.c_node_limit[node, r]:
            return False
        amount -= max(min(amount, st.c_node_local[node, r] - taken[node, r]), 0)
        node = st.c_node_parent[node]
    return True


@part
def is_borrowing(st, node):
    """Tell whether a node of the tree uses more than its quota of some resource."""
    for r in range(st.c_alignment_scale.shape[1]):
        if st.state_node_taken[node, r] > st.c_node_nominal[node, r]:
            return True
    return False


@part
def may_reclaim(st, j, demand, row, times):
    """Tell whether job `j` may take back what other queues of its tree borrow.

    So it is if `times` the demand in `row` more keeps its own queue within its quota.
    """
    org = st.w_job_org[j]
    for r in range(st.c_alignment_scale.shape[1]):
        amount = times * demand[row, r]
        over = st.state_node_taken[org, r] + amount > st.c_node_nominal[org, r]
        if amount > 0 and (over or st.state_org_used[org, r] + amount > st.c_node_limit[org, r]):
            return False
    return True


@part
def lends_to(st, org, other):
    """Tell whether two organisations are in one tree, so that either may use the other's quota."""
    return st.c_org_path[org, 0] == st.c_org_path[other, 0]
