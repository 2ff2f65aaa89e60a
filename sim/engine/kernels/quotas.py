"""Quotas: the use of each node of the tree of queues, and what a job may use or must borrow.

A node keeps what it does not lend (``c_node_local``) for the queues below it; what they use beyond
counts against the quota of its parent. `sim.cluster.quotas` has the rules and their source. Nodes
are rows: the organisations first, each before its parent. Columns are resources, or pairs of a
resource and a flavor (`sim.engine.kernels.flavors`).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import FLAVORS
from sim.engine.kernels.state import FLAVOR


@inlined
def column(st, r):
    """Return the column of resource `r` in the flavor that is tried now."""
    return st.c_flavor_column[st.state_i[FLAVOR], r] if FLAVORS else r


@inlined
def column_on(st, machine, r):
    """Return the column of resource `r` on `machine`."""
    return st.c_flavor_column[st.c_mach_flavor[machine], r] if FLAVORS else r


@part
def count_in_tree(st, org, machine, r, amount):
    """Add `amount` of resource `r` on `machine`, negative for a release, to the use of `org`.

    And to that of all nodes above.
    """
    node, counted, k = org, amount, column_on(st, machine, r)
    while node >= 0:
        local, before = st.c_node_local[node, k], st.state_node_taken[node, k]
        st.state_node_used[node, r] += amount
        st.state_node_taken[node, k] = before + counted
        counted = max(before + counted - local, 0) - max(before - local, 0)
        node = st.c_node_parent[node]


@part
def within_quota(st, taken, org, k, amount):
    """Tell whether organisation `org` may use `amount` more of column `k`.

    `taken`: use that counts at each node, now or at another time.
    """
    node = org
    while node >= 0 and amount > 0:
        if taken[node, k] + amount > st.c_node_limit[node, k]:
            return False
        amount -= max(min(amount, st.c_node_local[node, k] - taken[node, k]), 0)
        node = st.c_node_parent[node]
    return True


@part
def is_borrowing(st, node):
    """Tell whether a node of the tree uses more than its quota of some resource."""
    for k in range(st.c_node_nominal.shape[1]):
        if st.state_node_taken[node, k] > st.c_node_nominal[node, k]:
            return True
    return False


@part
def may_reclaim(st, j, demand, row, times):
    """Tell whether job `j` may take back what other queues of its tree borrow.

    So it is if `times` the demand in `row` more keeps its own queue within its quota.
    """
    org = st.w_job_org[j]
    for r in range(st.c_alignment_scale.shape[1]):
        amount, k = times * demand[row, r], column(st, r)
        taken = st.state_node_taken[org, k] + amount
        if amount > 0 and (taken > st.c_node_nominal[org, k] or taken > st.c_node_limit[org, k]):
            return False
    return True


@part
def lends_to(st, org, other):
    """Tell whether two organisations are in one tree, so that either may use the other's quota."""
    return st.c_org_path[org, 0] == st.c_org_path[other, 0]


@part
def path_length(st, org):
    """Return the number of nodes from the root to an organisation."""
    depth = st.c_org_path.shape[1]
    while st.c_org_path[org, depth - 1] < 0:
        depth -= 1
    return depth


@part
def borrowed_bits(st, org, demand, row):
    """Return at which nodes, from the root down, `org` borrows if it takes the demand in `row`.

    As bits; where that is nothing that is limited, at all that may borrow.
    """
    path, depth = st.c_org_path[org], path_length(st, org)
    bits, takes_limited = 0, False
    for r in range(st.c_alignment_scale.shape[1]):
        amount, k = demand[row, r], column(st, r)
        takes_limited |= amount > 0 and st.c_quota_limits[r] > 0
        for d in range(depth - 1, -1, -1):
            node = path[d]
            taken = st.state_node_taken[node, k]
            if amount > 0 and taken + amount > st.c_node_nominal[node, k]:
                bits |= 1 << d
            amount -= max(min(amount, st.c_node_local[node, k] - taken), 0)
    if not takes_limited:
        for d in range(depth):
            bits |= st.c_node_borrows[path[d]] << d
    return bits


@part
def borrowed_height(st, org, bits):
    """Return the number of nodes, up from `org`, up to the topmost of those of the bits."""
    depth = path_length(st, org)
    for d in range(depth):
        if bits >> d & 1:
            return depth - d
    return 0
