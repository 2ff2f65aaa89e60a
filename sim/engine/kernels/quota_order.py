"""Order between queues with quotas: within their quota first, then those that borrow.

A queue borrows at a node of the tree if its first waiting job, whether it fits or not, would take
the node beyond its quota; one that takes nothing of what is limited waits with those that borrow.
``state_queue_borrows`` has a bit for each node on the way from the root, ``state_queue_height`` the
number of nodes up to which it borrows.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_by_remaining, is_waiting_gang, list_bucket
from sim.engine.kernels.features import FLAVORS, GANGS, STRICT
from sim.engine.kernels.flavors import NONE, open_for
from sim.engine.kernels.heaps import before
from sim.engine.kernels.quotas import borrowed_bits, borrowed_height
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.state import FLAVOR, N_BUCKETS, N_SCAN, OPEN_FLAVORS
from sim.engine.kernels.waiting import is_listed


@part
def note_borrowing(st):
    """Note the first waiting stage of each queue, and where it would borrow.

    In the flavor that it would take by caps and quotas; if none allows it now, in the first.
    """
    open_flavors, flavor = st.state_i[OPEN_FLAVORS], st.state_i[FLAVOR]
    _find_heads(st)
    for q in range(len(st.state_queue_head)):
        g = st.state_queue_head[q]
        if g < 0:
            continue
        if FLAVORS and open_for(st, g, NONE, True) == NONE:
            open_for(st, g, NONE, False)
        j = st.w_stage_job[g]
        if GANGS and is_waiting_gang(st, j):
            _note_nodes(st, q, j, st.w_job_total, j)
        else:
            _note_nodes(st, q, j, st.w_stage_demand, demand_row(st, g))
    st.state_i[OPEN_FLAVORS], st.state_i[FLAVOR] = open_flavors, flavor


@inlined
def _find_heads(st):
    heads = st.state_queue_head
    if STRICT:
        heads[:] = st.state_queue_root
        return
    heads[:] = -1
    if is_listed(st):
        for position in range(st.state_i[N_SCAN]):
            g, q = st.state_scan[position], st.state_scan_queue[position]
            if g >= 0 and heads[q] < 0:
                heads[q] = g
        return
    for position in range(st.state_i[N_BUCKETS]):
        q = st.state_bucket_queue[position]
        n = list_bucket(st, position) if is_by_remaining(st) else 0
        for i in range(max(n, 1)):
            g = st.state_stage_stack[i] if n > 0 else st.state_bucket_root[position]
            if heads[q] < 0 or before(st, g, heads[q]):
                heads[q] = g


@part
def _note_nodes(st, q, j, demand, row):
    """Note where queue `q` borrows if job `j` takes the demand in `row`."""
    bits = borrowed_bits(st, st.w_job_org[j], demand, row)
    st.state_queue_borrows[q] = bits
    st.state_queue_height[q] = borrowed_height(st, st.w_job_org[j], bits)
